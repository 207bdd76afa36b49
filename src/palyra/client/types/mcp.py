"""Written by scripts/clients.py from the route table: types of the verbs about mcp."""

from typing import Any, Literal

from msgspec import Struct

from palyra.core.argument_roles import ToolUse

__all__ = [
    "Pending",
    "RpcAnswer",
    "RpcErrorBody",
    "SavedMcpServer",
    "ServerList",
    "ServerStatus",
    "ToolUse",
]


class Pending(Struct, frozen=True, kw_only=True):
    """A tool that is not offered yet. `words` says what is different from what was accepted,
    `change` shows it line by line. `use` is what will be accepted about its arguments.
    """

    server: str
    tool: str
    fingerprint: str
    new: bool
    change: str
    words: str = ""
    use: ToolUse | None = None


class ServerStatus(Struct, frozen=True, kw_only=True):
    """`starts` counts how often it was connected. `log` is the end of what it wrote to its standard
    error.
    """

    name: str
    state: Literal["disabled", "failed", "ready", "starting", "stopped", "waiting"]
    detail: str = ""
    transport: Literal["http", "stdio"] = "stdio"
    server: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()
    problems: tuple[str, ...] = ()
    starts: int = 0
    log: str = ""
    where: str = ""
    tier: str = ""
    package: str = ""
    fingerprint: str = ""
    late: int = 0
    uses: dict[str, ToolUse] = {}


class ServerList(Struct, frozen=True, kw_only=True):
    servers: tuple[ServerStatus, ...]


class SavedMcpServer(Struct, frozen=True, kw_only=True):
    """Name of a saved server. `GET /v1/mcp` has its state: a server takes a moment to start."""

    name: str


class RpcErrorBody(Struct, frozen=True, kw_only=True):
    code: int
    message: str
    data: Any = None


class RpcAnswer(Struct, frozen=True, kw_only=True):
    """A JSON-RPC answer, as MCP has it."""

    jsonrpc: str
    id: int | str | None
    result: dict[str, Any] | None = None
    error: RpcErrorBody | None = None
