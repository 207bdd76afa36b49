"""The route table: one row says everything about an endpoint. Dispatch and the OpenAPI document are
made from the same rows.

The OpenAPI 3.1 document, made from the route table and the types themselves, so that it cannot
say anything else.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic

import msgspec
from msgspec import Struct

from palyra.api.calls import (
    JSON,
    ULID_PATTERN,
    ApiCall,
    B,
    HttpResponse,
    Nothing,
    Q,
    StreamingResponse,
)
from palyra.api.errors import ErrorBody, body_of
from palyra.core.errors import PalyraError
from palyra.core.events import AnyEvent
from palyra.store.tokens import TokenScope

PARAMETERS: dict[str, str] = {
    "session_id": ULID_PATTERN,
    "run_id": ULID_PATTERN,
    "approval_id": ULID_PATTERN,
    "token_id": ULID_PATTERN,
    "memory_id": ULID_PATTERN,
    "candidate_id": ULID_PATTERN,
    "task_id": ULID_PATTERN,
    "schedule_id": ULID_PATTERN,
    "incident_id": ULID_PATTERN,
    "task_kind": "^[a-z][a-z0-9_.]{0,63}$",
    "artifact_id": "^[0-9a-f]{64}$",
    "fingerprint": "^[0-9a-f]{64}$",
    "budget": "^[a-z0-9][a-z0-9_-]{0,62}$",
    "position": "^[1-9][0-9]{0,14}$",
    "seq": "^[1-9][0-9]{0,14}$",
    "skill": "^[a-z0-9][a-z0-9-]{0,63}$",
    "asset": r"^[A-Za-z0-9_-]{1,80}(\.[A-Za-z0-9_-]{1,40}){0,3}\.(js|css|svg|png)$",
    "backup": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
    "channel": "^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$",
    "reply_id": "^[0-9A-Z]{26}[a-z]?$",
    "server": "^[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?$",
    "worker": "^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$",
    "response": "^resp_[A-Za-z0-9_-]{1,100}$",
    "conversation": "^conv_[A-Za-z0-9_-]{1,100}$",
    "model": "^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}$",
}
# What takes the rest of a path, with its slashes.
_REST = frozenset({"model"})
PATTERNS = {name: re.compile(pattern.replace("$", r"\Z")) for name, pattern in PARAMETERS.items()}


@dataclass(frozen=True)
class Gives:
    """Content of a status: a type as JSON, or another media type."""

    status: int
    type: Any = None
    media: bytes = JSON


def json_of(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    """One answer: a type as JSON."""
    return (Gives(status, type_),)


@dataclass(frozen=True)
class Takes:
    """A body that is not JSON: its media type, and how large it may be. The handler gets it as an
    Upload.
    """

    media: bytes
    most: int


@dataclass(frozen=True, kw_only=True)
class Route(Generic[Q, B]):
    """`scope` None: no token is needed. `counted`: requests count towards
    limits.requests_per_second. `errors` are statuses beyond those that follow from the rest of the
    row.
    """

    method: str
    path: str
    summary: str
    handler: Callable[[ApiCall[Q, B]], Awaitable[HttpResponse | StreamingResponse]]
    gives: tuple[Gives, ...]
    scope: TokenScope | None = "viewer"
    # Whether answering uses something up, though it is a GET.
    once: bool = False
    # Whether a token of scope client may call it, for its own sessions.
    client: bool = False
    counted: bool = True
    query: type[Q] = Nothing  # type: ignore[assignment]
    body: type[B] | None = None
    takes: Takes | None = None
    # How large a JSON body may be; 0: as large as every other.
    most: int = 0
    errors: tuple[int, ...] = ()
    # Request headers that change the answer, by name, for the document.
    headers: tuple[tuple[str, str], ...] = ()
    # Whether the handler is told which names of the body nobody reads.
    tells_unread: bool = False
    # How an error looks, and its type for the document.
    refuse: Callable[[PalyraError], bytes] = body_of
    problem: type[Struct] = ErrorBody

    @property
    def has_effects(self) -> bool:
        return self.method != "GET"

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def body_required(self) -> bool:
        return self.body is not None and any(
            field.required for field in msgspec.structs.fields(self.body)
        )

    @property
    def query_required(self) -> bool:
        return any(field.required for field in msgspec.structs.fields(self.query))


class Endpoint:
    """A route, ready to be called: its decoders are made once."""

    __slots__ = ("decode", "default_body", "default_query", "label", "route")

    def __init__(self, route: Route[Any, Any]) -> None:
        self.route = route
        self.label = f"{route.method} {route.path}"
        self.decode = msgspec.json.Decoder(route.body).decode if route.body is not None else None
        self.default_body = (
            Nothing() if route.body is None else None if route.body_required else route.body()
        )
        self.default_query = None if route.query_required else route.query()


class _Node:
    __slots__ = ("children", "endpoints", "parameter")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.parameter: tuple[str, _Node] | None = None
        self.endpoints: dict[str, Endpoint] = {}


class Table:
    """Routes by path, part by part. A part that is written out wins over a parameter."""

    def __init__(self, routes: Sequence[Route[Any, Any]]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                node = _following(node, part)
            assert route.method not in node.endpoints, (
                f"{route.method} {route.path} is in the table twice"
            )
            node.endpoints[route.method] = Endpoint(route)

    def find(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]] | None:
        """The endpoints of a path by method, and the values of its parameters."""
        node, values = self._root, {}
        parts = path.split("/")[1:]
        for at, part in enumerate(parts):
            child = node.children.get(part)
            if child is not None:
                node = child
            elif node.parameter is not None and part:
                name, node = node.parameter
                values[name] = part
                if name in _REST:
                    values[name] = "/".join(parts[at:])
                    break
            else:
                return None
        return (node.endpoints, values) if node.endpoints else None


def _following(node: _Node, part: str) -> _Node:
    if not part.startswith("{"):
        return node.children.setdefault(part, _Node())
    name = part[1:-1]
    assert name in PARAMETERS, f"there is no pattern for the parameter {name}"
    if node.parameter is None:
        node.parameter = (name, _Node())
    assert node.parameter[0] == name, f"{name} and {node.parameter[0]} stand at the same place"
    return node.parameter[1]


_REF = "#/components/schemas/{name}"
_ALWAYS = (421, 429, 431, 500, 503)
_WITH_TOKEN = (401, 403)
_WITH_INPUT = (400,)
_WITH_BODY = (400, 408, 413, 415)
_WITH_PATH = (400, 404)
_HEADERS = {"Last-Event-ID": "^[0-9]{1,15}$"}
# What has a tape can have been put away.
_OF_A_TAPE = frozenset({"session_id", "run_id"})


def document(routes: Sequence[Route[Any, Any]], version: str) -> dict[str, Any]:
    types: list[Any] = [ErrorBody, AnyEvent, *{route.problem: None for route in routes}]
    for route in routes:
        types += [give.type for give in route.gives if give.type is not None]
        types += [each for each in (route.query, route.body) if each is not None]
    unique = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    schema_of = dict(zip(unique, schemas, strict=True))
    # An entry carries its event as the bytes that were stored; on the wire they are one of these.
    components["Entry"]["properties"]["event"] = schema_of[AnyEvent]
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schema_of, components
        )
    bodies = {route.body for route in routes}
    for query in {route.query for route in routes} - bodies:
        # Query types stand in the document as parameters, not as schemas.
        components.pop(_component(schema_of[query]), None)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Palyra", "version": version, "summary": "The HTTP API of the daemon"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "browser": {"type": "apiKey", "in": "cookie", "name": "palyra_session"},
            },
        },
    }


def _component(schema: dict[str, Any]) -> str:
    """The name that a type has in the document: longer than its own where two are called the
    same.
    """
    return str(schema["$ref"]).rpartition("/")[2]


def _operation(
    route: Route[Any, Any], schema_of: dict[Any, Any], components: dict[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _name(route),
        "summary": route.summary,
        "responses": _responses(route, schema_of),
        "security": [{"token": []}, {"browser": []}] if route.scope is not None else [],
    }
    if route.scope is not None:
        operation["description"] = f"Needs a token with scope {route.scope} or more."
    parameters = [
        *_path_parameters(route),
        *_query_parameters(route, schema_of, components),
        *_header_parameters(route),
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": schema_of[route.body]}}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    elif route.takes is not None:
        binary = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {
            "required": True,
            "content": {route.takes.media.decode(): binary},
        }
    return operation


def _name(route: Route[Any, Any]) -> str:
    words = [
        part.strip("{}").replace(".", "_").replace("-", "_")
        for part in route.path.split("/")
        if part not in ("", "v1")
    ]
    return "_".join([route.method.lower(), *words])


def _path_parameters(route: Route[Any, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": PARAMETERS[name]},
        }
        for name in route.parameters
    ]


def _query_parameters(
    route: Route[Any, Any], schema_of: dict[Any, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    if route.query is Nothing:
        return []
    schema = components[_component(schema_of[route.query])]
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _without_empty_default(each),
        }
        for name, each in schema["properties"].items()
    ]


def _without_empty_default(schema: dict[str, Any]) -> dict[str, Any]:
    """An empty text means "left out", and need not match the pattern."""
    return {key: value for key, value in schema.items() if not (key == "default" and value == "")}


def _header_parameters(route: Route[Any, Any]) -> list[dict[str, Any]]:
    # OpenAPI ignores parameters named Accept: there it is the media types of the answer that say
    # it.
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": about,
            "schema": {"type": "string", "pattern": _HEADERS.get(name, "^[!-~]{1,200}$")},
        }
        for name, about in route.headers
        if name != "Accept"
    ]


def _responses(route: Route[Any, Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    statuses: set[int] = {*_ALWAYS, *route.errors}
    if route.scope is not None:
        statuses.update(_WITH_TOKEN)
    if route.query is not Nothing:
        statuses.update(_WITH_INPUT)
    if route.parameters:
        statuses.update(_WITH_PATH)
    if not _OF_A_TAPE.isdisjoint(route.parameters):
        statuses.add(409)
    if route.body is not None or route.takes is not None:
        statuses.update(_WITH_BODY)
    error = {"application/json": {"schema": schema_of[route.problem]}}
    responses: dict[str, Any] = {
        str(status): {"description": _phrase(status), "content": dict(error)}
        for status in sorted(statuses)
    }
    for give in route.gives:
        _add(responses, give, schema_of)
    return dict(sorted(responses.items()))


def _add(responses: dict[str, Any], give: Gives, schema_of: dict[Any, Any]) -> None:
    response = responses.setdefault(str(give.status), {"description": _phrase(give.status)})
    if give.type is not None:
        schema = schema_of[give.type]
        content = response.setdefault("content", {})
        known = content.get("application/json")
        # The same status may carry an error or an answer of its own, as when the daemon says that
        # it is not ready.
        content["application/json"] = {
            "schema": {"anyOf": [schema, known["schema"]]} if known else schema
        }
    elif give.status == 200:
        media = give.media.decode().partition(";")[0]
        response.setdefault("content", {})[media] = (
            {"schema": {"type": "string"}} if media != "*/*" else {}
        )


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase.lower()
