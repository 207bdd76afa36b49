"""A server's tool as one of ours: same catalogue, same policy, same tape. What it returns was
written by others, and says so.

What a server says about one of its tools, cleaned and bounded, with a fingerprint of exactly
what a model will be shown.
"""

import difflib
import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from palyra.core import argument_roles
from palyra.core.argument_roles import ArgumentUse, ToolUse
from palyra.core.errors import InvalidInput
from palyra.core.labels import merge, private, untrusted
from palyra.core.ports import CallContext
from palyra.core.tools import Effect, Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.features.mcp import jsonrpc
from palyra.features.mcp.acceptances import AcceptedTool
from palyra.features.mcp.results import MOST_TEXT
from palyra.features.mcp.session import Progress
from palyra.features.mcp.settings import Pending, ServerConfig
from palyra.tools.catalogue import Arguments, Checker

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
    """Parse a tool. Raise InvalidInput that names it and says what is wrong with it."""
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


MOST_ARGUMENT_BYTES = 256 << 10
# Our own limit comes first, so that the server is told that nobody waits any more. A server may
# have to be started before.
_GRACE_MS = 35_000
_TOOLS_MOST_WORDS = 200


class McpArguments(Arguments, frozen=True, kw_only=True):
    """Arguments whose shape only the server's schema knows."""

    values: dict[str, Any]


class Caller(Protocol):
    """The connection that a tool's calls go through."""

    async def call(
        self, tool: Declared, arguments: dict[str, Any], progress: Progress
    ) -> ToolResult: ...


class McpTool:
    """The spec is all that a model and a policy see of it."""

    argument_type = McpArguments

    def __init__(
        self,
        config: ServerConfig,
        declared: Declared,
        caller: Caller,
        use: ToolUse | None = None,
    ) -> None:
        """`use` is what the operator accepted about its arguments."""
        self.declared = declared
        self._config = config
        self._caller = caller
        self._checker = Checker(declared.schema)
        self.spec = ToolSpec(
            name=f"{config.source}/{declared.name}",
            description=declared.description,
            parameters=declared.schema,
            effect=declared.effect(trusted=config.trusted),
            capabilities=(
                ("network",)
                if config.url
                else ("process", "network")
                if config.hosts
                else ("process",)
            ),
            limits=Limits(
                time_ms=config.timeout_ms + _GRACE_MS,
                input_bytes=MOST_ARGUMENT_BYTES,
                output_bytes=MOST_TEXT,
            ),
            tier="none" if config.url else config.tier,
            source=config.source,
            # A server may show the user's own mails or files; nobody can tell from outside.
            yields=private(config.source)
            if use is not None and use.trusted_results
            else merge(untrusted(config.source), private(config.source)),
            use=use,
        )

    def parse(self, arguments: Mapping[str, Any]) -> tuple[Arguments, dict[str, Any]]:
        """The arguments as they are, if the server's schema agrees. Raises InvalidInput."""
        values = dict(arguments)
        size = len(msgspec.json.encode(values))
        if size > MOST_ARGUMENT_BYTES:
            raise InvalidInput(
                f"{self.spec.name}: the arguments have {size:,} bytes; at most"
                f" {MOST_ARGUMENT_BYTES:,} can be sent"
            )
        try:
            self._checker.check(self.spec.name, values)
        except InvalidInput:
            # Null for "left out" is harmless, as with our own tools, unless the schema knows null
            # as a value.
            fewer = {key: value for key, value in values.items() if value is not None}
            if len(fewer) == len(values):
                raise
            self._checker.check(self.spec.name, fewer)
            values = fewer
        return McpArguments(values=values), values

    def scope(self, arguments: object, workspace: str) -> Scope:
        if self._config.url:
            return Scope(hosts=(self._config.authority,))
        named = Scope(program=PurePath(self._config.command).name, hosts=self._config.hosts)
        if not self._config.folder:
            return named
        return msgspec.structs.replace(
            named, paths=(os.path.realpath(self._config.folder),), workspace=workspace
        )

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return (Subject(self.spec.name, "tool"),)

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, McpArguments)
        body = msgspec.json.format(msgspec.json.encode(arguments.values)).decode()
        return Preview(
            "request",
            f"{self.spec.name} at {self._config.authority or self._config.command}",
            f"{body}\n{self._about()}",
        )

    def _about(self) -> str:
        """Return what a person should know about the server that will do it."""
        words = jsonrpc.clean(self.declared.description.partition("\n")[0], _TOOLS_MOST_WORDS)
        said = [f"it says of itself: {words}"] if words else []
        if not self._config.url:
            said.append(f"sandbox: tier {self._config.tier}")
            said.append(
                "folder:"
                f" {self._config.folder or 'its own'}{'' if self._config.writable else ', to look at only'}"  # noqa: E501
            )
            said.append(f"network: {', '.join(self._config.hosts) or 'none'}")
        return "\n".join(said)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, McpArguments)
        return await self._caller.call(self.declared, arguments.values, context.progress)


_MOST_DIFF_LINES = 400
_MOST_CHANGES, _MOST_WORDS = 12, 120


def pending(server: str, declared: Declared, accepted: AcceptedTool | None) -> Pending:
    before = _lines(accepted.shown) if accepted else []
    lines = list(
        difflib.unified_diff(before, _lines(declared.shown()), "accepted", "now", lineterm="", n=2)
    )[2:]
    if len(lines) > _MOST_DIFF_LINES:
        lines = [*lines[:_MOST_DIFF_LINES], f"… and {len(lines) - _MOST_DIFF_LINES} more lines"]
    words = _in_words(accepted.shown, declared.shown()) if accepted else "a new tool"
    return Pending(
        server,
        declared.name,
        declared.fingerprint,
        accepted is None,
        "\n".join(lines),
        words,
        proposed_use(server, declared, accepted),
    )


def proposed_use(server: str, declared: Declared, accepted: AcceptedTool | None) -> ToolUse:
    """Return the default use of a tool's arguments, unless the operator says otherwise: what they
    said of those that stay as they were, and what the names of the others suggest.
    """
    found = argument_roles.proposed(
        server, declared.called, declared.schema, read_only=declared.read_only
    )
    if accepted is None or accepted.use is None:
        return found
    before = accepted.use
    old, new = _arguments(accepted.shown.get("schema")), _arguments(declared.schema)
    return msgspec.structs.replace(
        found,
        arguments=tuple(
            ArgumentUse(each.name, before.role(each.name))
            if each.name in old and old[each.name] == new.get(each.name)
            else each
            for each in found.arguments
        ),
        reads_only=found.reads_only and before.reads_only,
        high_impact=found.high_impact or before.high_impact,
        trusted_results=found.trusted_results and before.trusted_results,
    )


def _in_words(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return what has changed, named and not quoted."""
    said = (
        ["its description is another one"]
        if before.get("description") != now["description"]
        else []
    )
    old, new = _arguments(before.get("schema")), _arguments(now["schema"])
    said += [f"it takes a new argument {name}" for name in new if name not in old]
    said += [f"it no longer takes {name}" for name in old if name not in new]
    said += [
        f"its argument {name} is described otherwise"
        for name in new
        if name in old and old[name] != new[name]
    ]
    if before.get("schema") != now["schema"] and old == new:
        said.append("its arguments are described otherwise")
    for key, claim in (("read_only", "changes nothing"), ("idempotent", "may be repeated")):
        if before.get(key) != now[key]:
            said.append(f"it {'says now' if now[key] else 'no longer says'} that it {claim}")
    return (
        "; ".join(jsonrpc.clean(each, _MOST_WORDS) for each in said[:_MOST_CHANGES])
        or "its name is another one"
    )


def _arguments(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _lines(shown: dict[str, Any]) -> list[str]:
    """One fact on a line. Long texts are cut into sentences' length, so that a change in them does
    not hide.
    """
    lines = []
    for key, value in shown.items():
        if isinstance(value, str):
            pieces = [
                line[at : at + 120]
                for line in value.splitlines() or [""]
                for at in range(0, max(len(line), 1), 120)
            ]
            lines += [f"{key}: {piece}" for piece in pieces]
        else:
            text = msgspec.json.format(msgspec.json.encode(value, order="sorted")).decode()
            lines += [f"{key}: {line}" for line in text.splitlines()]
    return lines
