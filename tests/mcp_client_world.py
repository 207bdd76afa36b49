"""The daemon's own MCP server in the test's process, over a real socket, and the tools that the
conformance suite wants to find.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palyra.api import listen_sockets
from palyra.api.app import App
from palyra.api.auth import Access
from palyra.api.calls import Input, Receive, Scope, Send
from palyra.api.http_server import HttpServer
from palyra.api.limits import ApiLimits
from palyra.features.mcp_server import jsonrpc
from palyra.features.mcp_server.ask_tool import (
    McpToolResult,
    ServedProgress,
    ServedTool,
    ToolInvocation,
)
from palyra.features.mcp_server.http import McpEndpoint
from palyra.models.scripted import Turn
from palyra.serve.process import http_app
from palyra.serve.wiring.daemon import Daemon
from tests import inprocess

LIMITS = ApiLimits(requests_per_second=100_000)


@dataclass
class World:
    daemon: Daemon
    access: Access
    app: App
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def door(self) -> McpEndpoint:
        """The one that serves; for tests that give it more tools."""
        (found,) = (
            route.handler
            for route in self.app.routes
            if (route.method, route.path) == ("POST", "/mcp")
        )
        return found.__self__  # type: ignore[attr-defined,no-any-return]

    async def mint(self, name: str, scope: Any) -> str:
        return (await self.access.mint("user:owner", name, scope, principal="user:owner"))[0]


class _Known(App):
    """Lets in who shows no token: the suite cannot show one. Everything else is as it is."""

    secret = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if all(name != b"authorization" for name, _ in scope["headers"]):
            scope["headers"] = [
                *scope["headers"],
                (b"authorization", b"Bearer " + self.secret.encode()),
            ]
        await super().__call__(scope, receive, send)


@asynccontextmanager
async def world(
    folder: Path, model: Sequence[Turn] | dict[str, Sequence[Turn]], *, known: bool = False
) -> AsyncIterator[World]:
    """A daemon that serves HTTP; with `known`, everybody who calls it is its owner."""
    async with inprocess.daemon(folder, model) as daemon:
        access = Access(daemon.db, daemon.clock, daemon.redactor.redact)
        secret, _ = await access.mint("user:owner", "test", "owner", principal="user:owner")
        with listen_sockets.bind("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            app = await http_app(daemon, access, LIMITS, f"http://127.0.0.1:{port}", {})
            if known:
                app.__class__ = _Known
                app.secret = secret  # type: ignore[attr-defined]
            server = HttpServer(app, LIMITS)
            ready = asyncio.Event()
            serving = asyncio.create_task(server.run_on(listener, ready.set))
            await asyncio.wait_for(ready.wait(), 30)
            try:
                yield World(daemon, access, app, port, secret)
            finally:
                server.stop()
                await asyncio.wait_for(serving, 30)


_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_RESOURCE = {
    "type": "resource",
    "resource": {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    },
}


class Nothing(Input, frozen=True, kw_only=True):
    """No arguments."""


def _gives(name: str, result: McpToolResult) -> ServedTool:
    async def gives(asked: ToolInvocation, wanted: Nothing) -> McpToolResult:
        return result

    return ServedTool(
        name=name, title=name, description=name, takes=Nothing, like="GET /v1/sessions", gives=gives
    )


async def _progress(
    asked: ToolInvocation, wanted: Nothing
) -> AsyncGenerator[ServedProgress | McpToolResult, None]:
    for at in (0, 50, 100):
        yield ServedProgress(f"{at} %", at)
    yield McpToolResult(text="done")


async def _incapable(asked: ToolInvocation, wanted: Nothing) -> McpToolResult:
    raise asked.request.refused(
        jsonrpc.MISSING_CAPABILITY,
        "this needs sampling",
        {"requiredCapabilities": {"sampling": {}}},
    )


SUITES_TOOLS = (
    _gives("test_simple_text", McpToolResult(text="This is a simple text response for testing.")),
    _gives(
        "test_image_content",
        McpToolResult(blocks=({"type": "image", "data": _PIXEL, "mimeType": "image/png"},)),
    ),
    _gives(
        "test_audio_content",
        McpToolResult(blocks=({"type": "audio", "data": _SOUND, "mimeType": "audio/wav"},)),
    ),
    _gives("test_embedded_resource", McpToolResult(blocks=(_RESOURCE,))),
    _gives(
        "test_multiple_content_types",
        McpToolResult(
            text="Multiple content types test:",
            blocks=({"type": "image", "data": _PIXEL, "mimeType": "image/png"}, _RESOURCE),
        ),
    ),
    _gives(
        "test_error_handling",
        McpToolResult(text="This tool intentionally returns an error for testing", is_error=True),
    ),
    _gives("test_logging_tool", McpToolResult(text="nothing is logged")),
    _gives("test_streaming_elicitation", McpToolResult(text="nobody is asked")),
    ServedTool(
        name="test_tool_with_progress",
        title="",
        description="a test",
        takes=Nothing,
        like="GET /v1/sessions",
        streams=_progress,
    ),
    ServedTool(
        name="test_missing_capability",
        title="",
        description="a test",
        takes=Nothing,
        like="GET /v1/sessions",
        gives=_incapable,
    ),
)
