"""All MCP servers of the daemon. Starting them delays nobody, and nothing one of them does reaches
further than its own tools.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from palyra.core.errors import ConfigInvalid, NotFound
from palyra.features.mcp import process
from palyra.features.mcp.accepted_tools import AcceptanceStore
from palyra.features.mcp.connection import Resolve, RetryPace, ServerConnection, as_it_is
from palyra.features.mcp.http_link import HttpLink, OpenHttp, open_http
from palyra.features.mcp.model import Pending, ServerStatus
from palyra.features.mcp.process import ServerProcess, Spawn
from palyra.features.mcp.session import ServerLink
from palyra.features.mcp.settings import ServerConfig
from palyra.features.mcp.stdio_link import StderrTail, StdioLink
from palyra.features.mcp.tools import McpTool

log = logging.getLogger("palyra.mcp")


def _nobody() -> None:
    return


class Servers:
    """`work` is where each program has a folder of its own, as its home. `changed` is called when
    `tools()` gives another list.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        known: AcceptanceStore,
        work: Path,
        *,
        spawn: Spawn = process.spawn,
        http: OpenHttp = open_http,
        resolve: Resolve = as_it_is,
        pace: RetryPace = RetryPace(),  # noqa: B008 - frozen
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
        self._resolve = resolve
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._connections = {
            config.name: self._connection(config, known, pace)
            for config in configs
            if config.enabled
        }

    async def start(self) -> None:
        """Begin to connect, in the background."""
        for name in self._connections:
            self._begin(name)

    async def restart(self, server: str) -> None:
        """End the connection and its program, and begin anew at once. Its tools stay listed
        meanwhile. Raises NotFound.
        """
        self._connected(server)
        await _end([self._tasks.pop(server)] if server in self._tasks else [])
        self._begin(server)

    def _begin(self, name: str) -> None:
        connection = self._connections[name]
        task = asyncio.create_task(connection.run(), name=f"mcp:{name}")
        task.add_done_callback(partial(_ended, name, connection))
        self._tasks[name] = task

    def tools(self) -> tuple[McpTool, ...]:
        """The tools that are accepted, in a stable order. Those of a server that is away stay:
        calling them says that it is.
        """
        return tuple(tool for connection in self._connections.values() for tool in connection.tools)

    def pending(self) -> tuple[Pending, ...]:
        """The tools that nobody has accepted yet, or that are not what was accepted."""
        return tuple(
            each for connection in self._connections.values() for each in connection.pending
        )

    async def accept(self, server: str, tool: str, fingerprint: str = "") -> None:
        """Offer this tool from now on, for as long as it stays as it is. Raises NotFound, or
        Conflict for another fingerprint.
        """
        await self._connected(server).accept(tool, fingerprint)

    def _connected(self, server: str) -> ServerConnection:
        connection = self._connections.get(server)
        if connection is None:
            raise NotFound(f"there is no MCP server {server[:64]!r} that is enabled")
        return connection

    def status(self) -> tuple[ServerStatus, ...]:
        return tuple(
            (
                self._connections[name].status()
                if config.enabled
                else ServerStatus(
                    name,
                    "disabled",
                    transport="http" if config.url else "stdio",
                    where=config.authority or config.command,
                )
            )
            for name, config in self._configs.items()
        )

    async def close(self) -> None:
        """End every connection and every program."""
        tasks, self._tasks = self._tasks, {}
        await _end(list(tasks.values()))

    def _connection(
        self, config: ServerConfig, known: AcceptanceStore, pace: RetryPace
    ) -> ServerConnection:
        errors = StderrTail()

        def link(resolved: ServerConfig) -> ServerLink:
            if resolved.url:
                return HttpLink(resolved.url, resolved.headers, self._http)
            return StdioLink(self._starter(resolved), errors)

        return ServerConnection(
            config,
            known,
            link,
            resolve=self._resolve,
            pace=pace,
            changed=lambda: self.changed(),
            log=errors.tail,
        )

    def _starter(self, config: ServerConfig) -> Callable[[], Awaitable[ServerProcess]]:
        async def start() -> ServerProcess:
            folder = str(self._work / config.name)
            if not config.folder:
                os.makedirs(folder, mode=0o700, exist_ok=True)
            # Somebody's own folder is no place for a program's caches, so there its home is
            # whatever the sandbox makes up.
            env = process.environment("" if config.folder else folder, config.env)
            return await self._spawn((config.command, *config.args), env, config.folder or folder)

        return start


async def _end(tasks: "Sequence[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _ended(name: str, connection: ServerConnection, task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        connection.crashed(error)
        log.error("the connection to the MCP server %s failed", name, exc_info=error)
