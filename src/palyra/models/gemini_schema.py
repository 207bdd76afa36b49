"""JSON Schema as far as Gemini takes it: a subset by an allow-list, with references put in place.

What is left out is checked here all the same, when the model calls: a schema is a help to it, not
our guard.
"""

from typing import Any, Final

_KEPT: Final = (
    "title",
    "description",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
)
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_FORMATS: Final = {
    "string": ("enum", "date-time"),
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}
# References may go in circles.
_DEEPEST: Final = 12


def cleaned(schema: dict[str, Any]) -> dict[str, Any]:
    """Empty for an object without properties, which is refused."""
    definitions = {
        **(schema.get("definitions") or {}),
        **(schema.get("$defs") or {}),
    }
    made = _clean(schema, definitions, 0)
    return {} if made.get("type") == "OBJECT" and not made.get("properties") else made


def _clean(schema: Any, definitions: dict[str, Any], depth: int) -> dict[str, Any]:
    schema = _resolved(schema, definitions, depth)
    if depth > _DEEPEST:
        return {"type": "STRING"}
    made = {key: schema[key] for key in _KEPT if key in schema}
    kind, nullable = _type(schema)
    given = schema.get("anyOf") or schema.get("oneOf")
    choices = given if isinstance(given, list) else []
    concrete = [each for each in choices if not _is_null(each)]
    nullable = nullable or len(concrete) < len(choices)
    if len(concrete) == 1:
        made = {**_clean(concrete[0], definitions, depth + 1), **made}
    elif concrete:
        made["anyOf"] = [_clean(each, definitions, depth + 1) for each in concrete]
    else:
        made |= _of_type(kind, schema, definitions, depth)
    if nullable:
        made["nullable"] = True
    return made


def _of_type(
    kind: str, schema: dict[str, Any], definitions: dict[str, Any], depth: int
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind.upper()}
    match kind:
        case "object":
            given = schema.get("properties")
            properties = {
                name: _clean(each, definitions, depth + 1)
                for name, each in (given.items() if isinstance(given, dict) else ())
            }
            if properties:
                made["properties"] = properties
                required = [each for each in schema.get("required") or () if each in properties]
                made |= {"required": required} if required else {}
        case "array":
            made["items"] = _clean(schema.get("items") or {}, definitions, depth + 1)
        case "string":
            values = [schema["const"]] if "const" in schema else schema.get("enum") or []
            texts = [each for each in values if isinstance(each, str)]
            made |= {"enum": texts} if texts else {}
    if schema.get("format") in _FORMATS.get(kind, ()):
        made["format"] = schema["format"]
    return made


def _type(schema: dict[str, Any]) -> tuple[str, bool]:
    """The one type it has, guessed from what else it says, and whether it may be null."""
    said = schema.get("type")
    said = said if isinstance(said, list) else [said]
    found = next((each for each in said if each in _TYPES), "")
    if not found:
        found = "object" if "properties" in schema else "array" if "items" in schema else "string"
    return found, "null" in said or bool(schema.get("nullable"))


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _resolved(schema: Any, definitions: dict[str, Any], depth: int) -> dict[str, Any]:
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return {}
        name = schema.get("$ref")
        if isinstance(name, str):
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            found = definitions.get(name.rpartition("/")[2])
            schema = {**(found if isinstance(found, dict) else {}), **beside}
            continue
        parts = schema.get("allOf")
        if not isinstance(parts, list) or not parts:
            return schema
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        schema = _together([*(_resolved(each, definitions, depth + 1) for each in parts), rest])
    return {}


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for part in parts:
        properties = {**(made.get("properties") or {}), **(part.get("properties") or {})}
        required = [*(made.get("required") or ()), *(part.get("required") or ())]
        made |= part
        made |= {"properties": properties} if properties else {}
        made |= {"required": required} if required else {}
    return made
