"""An answer in the form of a JSON Schema: what is said stands in the first text that the schema
asks for, the rest is empty.
"""

from typing import Any

_DEEPEST = 12
_EMPTY: dict[str, Any] = {"integer": 0, "number": 0, "boolean": False, "null": None}


def fitting(schema: dict[str, Any], text: str) -> Any:
    """A value that fits most schemas. One with rules about what is in a text is beyond it, and its
    answer is refused.
    """
    return _Shaper(schema, text).value(schema, 0)


class _Shaper:
    def __init__(self, root: dict[str, Any], text: str) -> None:
        self._root = root
        self._text: str | None = text

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        match schema:
            case {"enum": [first, *_]}:
                return first
            case {"$ref": str() as name}:
                return self.value(self._named(name), depth + 1)
            case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
                return self.value(first, depth + 1)
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "string":
            said, self._text = self._text or "", None
            return said
        if kind == "array":
            wanted = schema.get("minItems", 0)
            return [self.value(schema.get("items"), depth + 1)] if wanted else []
        if kind in _EMPTY:
            return (
                max(_EMPTY[kind], schema.get("minimum", 0))
                if kind in ("integer", "number")
                else _EMPTY[kind]
            )
        inside = schema.get("properties")
        return (
            {name: self.value(each, depth + 1) for name, each in inside.items()}
            if isinstance(inside, dict)
            else {}
        )

    def _named(self, name: str) -> Any:
        """What a reference inside of the schema leads to."""
        found: Any = self._root
        for part in name.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        return found
