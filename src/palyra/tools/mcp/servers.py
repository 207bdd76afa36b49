"""All MCP servers of the daemon. Starting them delays nobody, and nothing one of them does reaches further than its own tools."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from palyra.domain.errors import ConfigInvalid, NotFound
from palyra.tools.mcp import child
from palyra.tools.mcp.child import Child, Spawn
from palyra.tools.mcp.config import ServerConfig
from palyra.tools.mcp.connection import Connection, Pace, Status
from palyra.tools.mcp.http import HttpLink, OpenHttp, open_http
from palyra.tools.mcp.known import Known, Pending
from palyra.tools.mcp.session import Link
from palyra.tools.mcp.stdio import Log, StdioLink
from palyra.tools.mcp.tool import McpTool

log = logging.getLogger("palyra.mcp")


def _nobody() -> None:
    return


class Servers:
    """`work` is where each program has a folder of its own, as its home. `changed` is called when `tools()` gives another list."""

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        known: Known,
        work: Path,
        *,
        spawn: Spawn = child.spawn,
        http: OpenHttp = open_http,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        changed: Callable[[], None] = _nobody,
    ) -> None:
        names = [config.name for config in configs]
        if len(set(names)) != len(names):
            raise ConfigInvalid("two MCP servers have the same name")
        self.changed = changed
        self._configs = {config.name: config for config in configs}
        self._work = work
        self._spawn = spawn
        self._http = http
        self._tasks: list[asyncio.Task[None]] = []
        self._connections = {config.name: self._connection(config, known, pace) for config in configs if config.enabled}

    async def start(self) -> None:
        """Begin to connect, in the background."""
        for name, connection in self._connections.items():
            task = asyncio.create_task(connection.run(), name=f"mcp:{name}")
            task.add_done_callback(partial(_ended, name, connection))
            self._tasks.append(task)

    def tools(self) -> tuple[McpTool, ...]:
        """The tools that are accepted, in a stable order. Those of a server that is away stay: calling them says that it is."""
        return tuple(tool for connection in self._connections.values() for tool in connection.tools)

    def pending(self) -> tuple[Pending, ...]:
        """The tools that nobody has accepted yet, or that are not what was accepted."""
        return tuple(each for connection in self._connections.values() for each in connection.pending)

    async def accept(self, server: str, tool: str, fingerprint: str = "") -> None:
        """Offer this tool from now on, for as long as it stays as it is. Raises NotFound, or Conflict for another fingerprint."""
        connection = self._connections.get(server)
        if connection is None:
            raise NotFound(f"there is no MCP server {server[:64]!r} that is enabled")
        await connection.accept(tool, fingerprint)

    def status(self) -> tuple[Status, ...]:
        return tuple(
            self._connections[name].status()
            if config.enabled
            else Status(name, "disabled", transport="http" if config.url else "stdio")
            for name, config in self._configs.items()
        )

    async def close(self) -> None:
        """End every connection and every program."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connection(self, config: ServerConfig, known: Known, pace: Pace) -> Connection:
        errors = Log()

        def link() -> Link:
            if config.url:
                return HttpLink(config.url, config.headers, self._http)
            return StdioLink(self._starter(config), errors)

        return Connection(config, known, link, pace=pace, changed=lambda: self.changed(), log=errors.tail)

    def _starter(self, config: ServerConfig) -> Callable[[], Awaitable[Child]]:
        async def start() -> Child:
            folder = self._work / config.name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return await self._spawn((config.command, *config.args), child.environment(str(folder), config.env), str(folder))

        return start


def _ended(name: str, connection: Connection, task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        connection.crashed(error)
        log.error("the connection to the MCP server %s failed", name, exc_info=error)
