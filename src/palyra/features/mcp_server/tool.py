"""What a tool of the MCP server is: its arguments as a type, the endpoint whose right it needs, and
what it gives.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from palyra.api.calls import ApiCall, Nothing, Upload
from palyra.api.limits import OpenStreams
from palyra.core.labels import CLEAN, Label
from palyra.features.mcp_server.jsonrpc import McpRequest

# As text and as data together; what is longer says how to ask for less.
MOST_RESULT = 128 << 10


class AwaitedCall(Struct):
    """A call that takes its time: the run that it waits for, and whether the client has taken it
    back.
    """

    run_id: str = ""
    withdrawn: bool = False


class ToolInvocation(Struct, frozen=True):
    """One call of a tool: who calls, with which token, and the message it came in."""

    call: ApiCall[Nothing, Upload]
    request: McpRequest
    running: AwaitedCall

    @property
    def leaving_cancels(self) -> bool:
        """Whether a client that goes away means the run to end. A daemon that goes away does
        not.
        """
        return self.request.modern and not self.call.services.get(OpenStreams).closing

    @property
    def principal(self) -> str:
        return self.call.principal


class ServedProgress(Struct, frozen=True):
    """`seq`: the entry of the session's tape that it tells of; 0 on nobody's tape. It grows, as the
    protocol wants it to.
    """

    message: str
    seq: int


class McpToolResult(Struct, frozen=True, kw_only=True):
    """`text`: for a model; without it, the data as JSON. `label`: of what it was made from.
    `blocks`: content that is no text.
    """

    text: str = ""
    data: dict[str, Any] | None = None
    is_error: bool = False
    label: Label = CLEAN
    blocks: tuple[dict[str, Any], ...] = ()

    def wire(self) -> dict[str, Any]:
        text = self.text or (
            msgspec.json.encode(self.data).decode() if self.data is not None else ""
        )
        if len(text) > MOST_RESULT:
            return McpToolResult(
                text=(
                    f"the result has {len(text)} characters, more than {MOST_RESULT}: ask for fewer"
                ),
                is_error=True,
            ).wire()
        content: list[dict[str, Any]] = (
            [{"type": "text", "text": text}] if text or not self.blocks else []
        )
        value: dict[str, Any] = {"content": [*content, *self.blocks], "isError": self.is_error}
        if self.data is not None:
            value["structuredContent"] = self.data
        if self.label != CLEAN:
            value["_meta"] = {"palyra/label": msgspec.to_builtins(self.label)}
        return value


Gives = Callable[[ToolInvocation, Any], Awaitable[McpToolResult]]
Streams = Callable[[ToolInvocation, Any], AsyncGenerator[ServedProgress | McpToolResult, None]]


class ServedTool(Struct, frozen=True, kw_only=True):
    """`like`: the endpoint that does the same; whoever may not call that may not call this. Either
    `gives` or `streams` does it.
    """

    name: str
    title: str
    description: str
    takes: type[Struct]
    like: str
    gives: Gives | None = None
    streams: Streams | None = None
    read_only: bool = True
    schema: dict[str, Any] | None = None

    def shown(self) -> dict[str, Any]:
        """As tools/list says it."""
        hints = {"readOnlyHint": self.read_only, "openWorldHint": False}
        if not self.read_only:
            hints |= {"destructiveHint": self.name == "ask", "idempotentHint": False}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema if self.schema is not None else _schema(self.takes),
            "annotations": hints,
        }


def _schema(takes: type[Struct]) -> dict[str, Any]:
    """The type's JSON Schema, whole: no reference leads out of it."""
    (root,), parts = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = dict(parts.pop(str(root["$ref"]).rpartition("/")[2]))
    schema.pop("title", None)
    schema.setdefault("properties", {})
    if parts:
        schema["$defs"] = parts
    return schema
