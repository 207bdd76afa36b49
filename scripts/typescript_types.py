"""TypeScript types from the daemon's own schema, so that neither a program nor a page can expect
what the wire does not carry.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from palyra.api import routes as openapi
from palyra.api.routes import Route
from palyra.core.events import LiveEvent
from palyra.serve import routes as table

_HEAD = (
    "// Written by scripts/clients.py from the daemon's schema. What has a default may be absent on"
    " the wire.\n"
)
_REF = "#/components/schemas/{name}"
_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def text(routes: Sequence[Route[Any, Any]] = table.ROUTES) -> str:
    """The types of these routes, of errors and of all events."""
    schemas: dict[str, Any] = openapi.document(routes, "")["components"]["schemas"]
    (live,), more = msgspec.json.schema_components([LiveEvent], ref_template=_REF)
    schemas = {**schemas, **more}
    parts = [_HEAD]
    parts += [
        f"export interface {name_of(name)} {object_of(schemas[name])}\n" for name in sorted(schemas)
    ]
    parts.append(f"export type AnyEvent = {type_of(schemas['Entry']['properties']['event'])};\n")
    parts.append(f"export type LiveEvent = {type_of(live)};\n")
    return "\n".join(parts)


def name_of(component: str) -> str:
    """Names of two modules that would be the same are written with dots."""
    return re.sub(r"\W+", "_", component)


def object_of(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for name, each in schema.get("properties", {}).items():
        tag = name == "kind" and len(each.get("enum", ())) == 1
        lines.append(f"  {name}{'' if tag or name in required else '?'}: {type_of(each)};")
    return "{\n" + "\n".join(lines) + "\n}" if lines else "{}"


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return name_of(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(value).decode() for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(type_of(each) for each in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return f"({type_of(schema.get('items') or {})})[]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"{{ [name: string]: {type_of(inner) if isinstance(inner, dict) else 'unknown'} }}"
    return _PLAIN.get(kind or "", "unknown")
