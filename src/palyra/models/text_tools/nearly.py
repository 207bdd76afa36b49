"""Matches of what a weak model wrote with the only tool or argument offered that it can mean."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Words for the same thing, each with the one that names of tools and arguments prefer.
_SAME: Final[Mapping[str, str]] = {
    "files": "fs",
    "file": "fs",
    "filesystem": "fs",
    "folder": "fs",
    "folders": "fs",
    "dir": "fs",
    "directory": "fs",
    "directories": "fs",
    "bash": "shell",
    "terminal": "shell",
    "command": "shell",
    "cmd": "shell",
    "execute": "run",
    "exec": "run",
    "web": "http",
    "url": "http",
    "webpage": "http",
    "website": "http",
    "download": "fetch",
    "create": "write",
    "save": "write",
    "ls": "list",
    "cat": "read",
    "grep": "search",
    "find": "search",
    "edit": "patch",
    "remember": "memory write",
}
_SAME_ARGUMENT: Final[Mapping[str, str]] = {
    "file": "path",
    "filename": "path",
    "file_name": "path",
    "filepath": "path",
    "file_path": "path",
    "folder": "path",
    "directory": "path",
    "dir": "path",
    "cmd": "command",
    "script": "command",
    "contents": "content",
    "text": "content",
    "body": "content",
    "data": "content",
    "query": "pattern",
    "regex": "pattern",
    "link": "url",
    "uri": "url",
    "address": "url",
    "old": "search",
    "new": "replace",
    "replacement": "replace",
}
_LIKE: Final = 0.8
_JSON_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def tool(written: str, offered: Collection[str]) -> str:
    """The one offered tool that a name can mean, or nothing."""
    spelled = "".join(_words(written))
    same = [name for name in offered if "".join(_words(name)) == spelled]
    if len(same) == 1:
        return same[0]
    wanted = _meaning(written)
    if not wanted:
        return ""
    # All that one of the two says, the other says too.
    fitting = [
        name for name in offered if (said := frozenset(_words(name))) and _fits(wanted, said)
    ]
    return fitting[0] if len(fitting) == 1 else ""


def _fits(wanted: frozenset[str], said: frozenset[str]) -> bool:
    return said <= wanted if len(wanted) >= len(said) else wanted <= said


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _meaning(written: str) -> frozenset[str]:
    return frozenset(
        word for each in _words(written[:128]) for word in _SAME.get(each, each).split()
    )


def arguments(given: dict[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Arguments under the names that the schema has, and what was renamed. Values stay as they
    are.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") not in (None, False):
        return given, []
    unknown = [key for key in given if key not in properties]
    if not unknown:
        return given, []
    wrapped = _wrapped(given, properties)
    if wrapped:
        return {wrapped: [given]}, [f"put the arguments into {wrapped!r}"]
    free = [name for name in properties if name not in given]
    renamed: dict[str, str] = {}
    for key in unknown:
        left = [
            name
            for name in free
            if name not in renamed.values() and _is_typed(given[key], properties[name])
        ]
        found = _argument(key, left)
        if found:
            renamed[key] = found
    return (
        {renamed.get(key, key): value for key, value in given.items()},
        [f"read {key!r} as {name!r}" for key, name in renamed.items()],
    )


def _argument(key: str, left: list[str]) -> str:
    low = key.lower()
    same = _SAME_ARGUMENT.get(low, low)
    if same in left:
        return same
    near = get_close_matches(low, left, n=2, cutoff=_LIKE)
    return near[0] if len(near) == 1 else ""


def _is_typed(value: Any, schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    wanted = _JSON_TYPES.get(kind) if isinstance(kind, str) else None
    return wanted is None or isinstance(value, wanted)


def _wrapped(given: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    """The list of objects of which somebody gave one object's parts, or nothing."""
    fitting = [
        name
        for name, schema in properties.items()
        if isinstance(schema, dict)
        and isinstance(items := schema.get("items"), dict)
        and isinstance(parts := items.get("properties"), dict)
        and set(given) <= set(parts)
        and set(items.get("required", ())) <= set(given)
    ]
    return fitting[0] if len(fitting) == 1 else ""
