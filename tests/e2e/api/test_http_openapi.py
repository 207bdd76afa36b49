"""The OpenAPI document is true: whatever is sent, the daemon answers as the document says, and
never with a failure of its own.
"""

from typing import Any

import jsonschema_rs
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from palyra.api import routes
from palyra.serve.routes import ROUTES
from tests.daemon import DaemonProcess

EXAMPLES = 8
# These answer for as long as anybody listens.
STREAMS = {"/v1/events", "/v1/sessions/{session_id}/events"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
OPERATIONS = [(route.method, route.path) for route in ROUTES if route.path not in STREAMS]
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/zip")
def as_zip(context: Any, value: Any) -> bytes:
    """Whatever is made up is sent as it is."""
    return value if isinstance(value, bytes) else msgspec.json.encode(value, enc_hook=str)


@pytest.fixture(scope="module")
def schema(served: DaemonProcess) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


@pytest.fixture(scope="module")
def known(served: DaemonProcess) -> dict[str, str]:
    """Things that exist, so that not every request ends at `not found`."""
    session_id, entries = served.run("hi")
    other = served.post("/v1/sessions")["session_id"]
    waiting = served.post(f"/v1/sessions/{other}/messages", {"text": "write"})["run_id"]
    for _, event, data in served.events(f"/v1/sessions/{other}/events"):
        if event == "entry" and data["kind"] == "approval.requested":
            return {
                "session_id": session_id,
                "run_id": waiting,
                "approval_id": data["event"]["approval_id"],
                "position": str(entries[0]["position"]),
            }
    raise AssertionError("the stream ended without an approval")


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "unfitting"]
)
def test_answers_are_as_documented(
    served: DaemonProcess,
    schema: Any,
    known: dict[str, str],
    method: str,
    path: str,
    mode: GenerationMode,
) -> None:
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (
        any("json" in each.media_type for each in operation.body)
        or operation.query
        or operation.path_parameters
    ):
        return
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]

    @bounded
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def ask(case: Any, real: bool) -> None:
        if mode is GenerationMode.POSITIVE and real:
            case.path_parameters = {
                **case.path_parameters,
                **{name: known[name] for name in case.path_parameters if name in known},
            }
        response = case.call(
            headers={"Authorization": f"Bearer {served.token}"}, allow_redirects=False, timeout=60
        )
        # What is too large is refused unread, which that check does not count as refused.
        too_large = response.status_code == 413
        case.validate_response(response, checks=CHECKS if too_large else checks)

    ask()


def test_every_route_is_in_the_document_with_every_status_it_can_give(
    served: DaemonProcess,
) -> None:
    document = served.request("GET", "/openapi.json", token="").json
    listed = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert listed == {(route.method, route.path) for route in ROUTES} | {("GET", "/openapi.json")}
    for route in ROUTES:
        responses = document["paths"][route.path][route.method.lower()]["responses"]
        assert {str(give.status) for give in route.gives} <= responses.keys()
        assert {"421", "429", "431", "500", "503"} <= responses.keys()
        assert route.scope is None or {"401", "403"} <= responses.keys()
        assert route.body is None or {"400", "408", "413", "415"} <= responses.keys()


def test_the_document_is_made_the_same_every_time() -> None:
    assert routes.document(ROUTES, "1") == routes.document(ROUTES, "1")


def test_entries_on_the_wire_fit_their_schema(served: DaemonProcess) -> None:
    """Every event of a run with a tool, an approval and an end, against the document's own schema
    of an entry.
    """
    document = served.request("GET", "/openapi.json", token="").json
    validator = jsonschema_rs.validator_for(
        {"$ref": "#/components/schemas/Entry", "components": document["components"]}
    )
    served.run("hi")
    lines = served.request("GET", "/v1/journal/export").body.splitlines()
    assert len(lines) > 5
    for line in lines:
        assert validator.is_valid(msgspec.json.decode(line)), line
    broken = msgspec.json.decode(lines[-1])
    broken["event"] = {"kind": "no.such.kind"}
    assert not validator.is_valid(broken)
