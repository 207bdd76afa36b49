"""What a server says about one of its tools, cleaned and bounded, with a fingerprint of exactly
what a model will be shown.
"""

import re
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.tools import Effect
from palyra.features.mcp import jsonrpc

MOST_TOOLS = 128
_MOST_NAME = 64
_MOST_DESCRIPTION = 1000
_MOST_SCHEMA_BYTES = 32 << 10
_MOST_LEVELS = 32
_ODD = re.compile(r"[^A-Za-z0-9_.-]")
# An annotated parameter is also sent as a header; what may stand there is what HTTP allows in a
# header's name.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
HEADER = "x-mcp-header"


class Declared(Struct, frozen=True, kw_only=True):
    """`called` is the server's name for it, `name` ours. `mirrored`: paths of arguments that HTTP
    requests repeat as headers.
    """

    called: str
    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool = False
    idempotent: bool = False
    mirrored: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def fingerprint(self) -> str:
        return sha256(msgspec.json.encode(self.shown(), order="sorted")).hexdigest()

    def shown(self) -> dict[str, Any]:
        """All that a model is shown and a decision rests on. If any of it changes, it is another
        tool.
        """
        return {
            "name": self.called,
            "description": self.description,
            "schema": self.schema,
            "read_only": self.read_only,
            "idempotent": self.idempotent,
        }

    def effect(self, *, trusted: bool) -> Effect:
        """A server's word about its own harmlessness counts only where the operator said so."""
        if trusted and self.read_only:
            return "pure"
        return "idempotent" if trusted and self.idempotent else "once"


class ListedTools(Struct, frozen=True):
    """A server's tools in its order, and for each one left out why."""

    tools: tuple[Declared, ...]
    problems: tuple[str, ...] = ()


def listed(raw: list[Any]) -> ListedTools:
    found: dict[str, Declared] = {}
    problems: list[str] = []
    for each in raw:
        try:
            one = declared(each)
        except InvalidInput as problem:
            problems.append(problem.message)
            continue
        if one.name in found:
            problems.append(f"{one.name}: there are two tools of this name; the first one counts")
        elif len(found) == MOST_TOOLS:
            problems.append(f"{one.name}: a server can offer {MOST_TOOLS} tools")
        else:
            found[one.name] = one
    return ListedTools(tuple(found.values()), tuple(problems[:MOST_TOOLS]))


def declared(raw: Any) -> Declared:
    """Raises InvalidInput that names the tool and says what is wrong with it."""
    called = raw.get("name") if isinstance(raw, dict) else None
    if not isinstance(called, str) or not called or len(called) > 256:
        raise InvalidInput("a tool without a proper name")
    name = _name(called)
    annotations = raw.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    schema = _schema(name, raw.get("inputSchema"))
    return Declared(
        called=called,
        name=name,
        description=jsonrpc.clean(raw.get("description"), _MOST_DESCRIPTION)
        or jsonrpc.clean(raw.get("title"), _MOST_DESCRIPTION),
        schema=schema,
        # A tool that contradicts itself is not harmless.
        read_only=hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True,
        idempotent=hints.get("idempotentHint") is True,
        mirrored=_mirrored(name, schema),
    )


def _name(called: str) -> str:
    """The name with harmless characters only. A changed one carries a digest, so that no two become
    the same.
    """
    name = _ODD.sub("_", called)
    if name == called and len(name) <= _MOST_NAME:
        return name
    return f"{name[: _MOST_NAME - 9]}_{sha256(called.encode()).hexdigest()[:8]}"


def _schema(name: str, raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("type") != "object":
        raise InvalidInput(f"{name}: its arguments are not described as an object")
    if jsonrpc.deeper_than(raw, _MOST_LEVELS):
        raise InvalidInput(f"{name}: its schema has more than {_MOST_LEVELS} levels")
    schema = _without_invisible(raw)
    assert isinstance(schema, dict)
    if len(msgspec.json.encode(schema)) > _MOST_SCHEMA_BYTES:
        raise InvalidInput(f"{name}: its schema has more than {_MOST_SCHEMA_BYTES:,} bytes")
    return schema


def _without_invisible(node: Any) -> Any:
    """The schema with its words cleaned. What is compared with arguments stays as it is."""
    if isinstance(node, list):
        return [_without_invisible(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: (
            jsonrpc.clean(value, _MOST_DESCRIPTION)
            if key in ("description", "title", "$comment") and isinstance(value, str)
            else _without_invisible(value)
        )
        for key, value in node.items()
    }


def _mirrored(name: str, schema: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The annotated parameters. Raises InvalidInput for an annotation where none may be, or with a
    name that none may have.
    """
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    waiting: list[tuple[dict[str, Any], tuple[str, ...]]] = [(schema, ())]
    while waiting:
        node, path = waiting.pop()
        properties = node.get("properties")
        for key, each in properties.items() if isinstance(properties, dict) else ():
            if not isinstance(each, dict):
                continue
            waiting.append((each, (*path, key)))
            if HEADER not in each:
                continue
            header = each[HEADER]
            if (
                not isinstance(header, str)
                or not _TOKEN.fullmatch(header)
                or header.lower() in found
            ):
                raise InvalidInput(
                    f"{name}: the header for its argument {jsonrpc.clean(key, 64)!r} is not a"
                    " proper one"
                )
            if each.get("type") not in ("string", "integer", "boolean"):
                raise InvalidInput(
                    f"{name}: its argument {jsonrpc.clean(key, 64)!r} cannot be sent as a header"
                )
            found[header.lower()] = (header, (*path, key))
    if _annotations(schema) != len(found):
        raise InvalidInput(f"{name}: it wants a header for something that is not a plain argument")
    return tuple(sorted(found.values()))


def _annotations(node: Any) -> int:
    count, waiting = 0, [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            # A property that is called so is no annotation.
            count += isinstance(each.get(HEADER), str)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return count
