"""A server's tool as one of ours: same catalogue, same policy, same tape. What it returns was
written by others, and says so.
"""

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Protocol

import msgspec

from palyra.core.errors import InvalidInput
from palyra.core.labels import merge, private, untrusted
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.features.mcp import jsonrpc
from palyra.features.mcp.declaration import Declared
from palyra.features.mcp.results import MOST_TEXT
from palyra.features.mcp.session import Progress
from palyra.features.mcp.settings import ServerConfig
from palyra.tools.catalogue import Arguments
from palyra.tools.json_schema import Checker

MOST_ARGUMENT_BYTES = 256 << 10
# Our own limit comes first, so that the server is told that nobody waits any more. A server may
# have to be started before.
_GRACE_MS = 35_000
_MOST_WORDS = 200


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

    def __init__(self, config: ServerConfig, declared: Declared, caller: Caller) -> None:
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
            yields=merge(untrusted(config.source), private(config.source)),
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
        """What a person should know about who will do it."""
        words = jsonrpc.clean(self.declared.description.partition("\n")[0], _MOST_WORDS)
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
