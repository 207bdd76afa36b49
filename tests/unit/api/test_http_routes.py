"""The table finds what is in it and nothing else; what does not fit a route's types does not get
through.
"""

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.api import decoding
from palyra.api.routes import PARAMETERS, Endpoint, Table
from palyra.core import input_checks
from palyra.core.errors import InvalidInput
from palyra.serve.routes import ROUTES

TABLE = Table(ROUTES)
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def endpoint(method: str, path: str) -> Endpoint:
    found = TABLE.find(path)
    assert found is not None
    return found[0][method]


def test_every_route_is_found_by_its_own_path_and_gets_its_parameters() -> None:
    for route in ROUTES:
        found = TABLE.find(re.sub(r"\{\w+\}", "VALUE", route.path))
        assert found is not None
        endpoints, values = found
        assert endpoints[route.method].route is route
        assert values == dict.fromkeys(route.parameters, "VALUE")


def test_every_route_has_one_row() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_a_written_part_wins_over_a_parameter() -> None:
    assert endpoint("GET", "/v1/sessions/search").route.path == "/v1/sessions/search"
    assert endpoint("GET", f"/v1/sessions/{ULID}").route.path == "/v1/sessions/{session_id}"


@given(
    st.lists(
        st.sampled_from(["v1", "sessions", "runs", "", ULID, "events", "x", "..", "search"]),
        max_size=6,
    )
)
def test_whatever_is_found_was_asked_for(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    found = TABLE.find(path)
    if found is not None:
        endpoints, values = found
        for each in endpoints.values():
            assert each.route.path.format(**values) == path
        assert "" not in values.values()


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(
    "value", ["", " ", "\n", ULID + "\n", "../etc", "x" * 5_000, "0", "-1", "%00"]
)
def test_parameters_of_a_path_are_what_they_should_be(name: str, value: str) -> None:
    if value == "0" and name in (
        "skill",
        "server",
        "budget",
        "backup",
        "channel",
        "model",
        "worker",
    ):
        return  # They may be called that.
    with pytest.raises(InvalidInput):
        decoding.check_path({name: value})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (False, "", 50)),
        ("archived=true&limit=7", (True, "", 7)),
        (f"before={ULID}", (False, ULID, 50)),
    ],
)
def test_a_query_becomes_typed_values(query: str, expected: tuple[Any, ...]) -> None:
    got = decoding.query(endpoint("GET", "/v1/sessions"), query.encode())
    assert (got.archived, got.before, got.limit) == expected


@given(st.text(), st.text())
def test_any_query_is_taken_or_refused_but_nothing_else(name: str, value: str) -> None:
    try:
        got = decoding.query(endpoint("GET", "/v1/sessions"), f"{name}={value}".encode())
    except InvalidInput:
        return
    assert 1 <= got.limit <= 500


@given(st.binary(max_size=200))
def test_any_body_is_taken_or_refused_but_nothing_else(raw: bytes) -> None:
    try:
        got = asyncio.run(
            decoding.body(endpoint("POST", f"/v1/sessions/{ULID}/messages"), raw, None)
        )
    except InvalidInput:
        return
    assert isinstance(got.text, str)


def test_a_body_may_be_left_out_where_nothing_in_it_is_required() -> None:
    assert (
        asyncio.run(decoding.body(endpoint("POST", "/v1/sessions"), b"", None)).must_exist is False
    )
    with pytest.raises(InvalidInput):
        asyncio.run(decoding.body(endpoint("POST", "/v1/tokens"), b"", None))


@pytest.mark.parametrize("depth", [1, 63, 64])
def test_nesting_up_to_the_limit_is_fine(depth: int) -> None:
    input_checks.check_json(b"[" * depth + b"]" * depth)
    input_checks.check_json(b'["' + b"[{" * 10_000 + b'"]' + b" [] {} " * 200)
    input_checks.check_json(b'{"a": "\\"' + b"[" * 1_000 + b'\\\\"}')


@pytest.mark.parametrize(
    "raw", [b"[" * 65, b'{"a":' * 100, b"[" * 1_000_000, b'["\\"]", ' + b"[" * 65]
)
def test_nesting_beyond_the_limit_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        input_checks.check_json(raw)
