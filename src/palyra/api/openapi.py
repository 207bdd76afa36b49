"""The OpenAPI 3.1 document, made from the route table and the types themselves, so that it cannot
say anything else.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from palyra.api.calls import Nothing
from palyra.api.errors import ErrorBody
from palyra.api.routes import PARAMETERS, Gives, Route
from palyra.core.events import AnyEvent

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
