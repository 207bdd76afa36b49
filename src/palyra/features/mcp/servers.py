"""All MCP servers of the daemon. Starting them delays nobody, and nothing one of them does reaches
further than its own tools.

A link over the standard streams of a program: one message on a line.

The rule: a server that does not read, floods or talks nonsense costs a bounded amount of memory,
and only its own connection.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from palyra.core.argument_roles import ToolUse
from palyra.core.errors import ConfigInvalid, NotFound, PalyraError, Unavailable
from palyra.features.mcp import jsonrpc, packages, process, start_errors
from palyra.features.mcp.acceptances import AcceptanceStore
from palyra.features.mcp.accepted_tools import McpTool
from palyra.features.mcp.connection import Resolve, RetryPace, ServerConnection, as_it_is
from palyra.features.mcp.http_link import HttpLink, OpenHttp, open_http
from palyra.features.mcp.jsonrpc import Malformed, NotSent, OutgoingRpc
from palyra.features.mcp.package_store import PACKAGES, PackageStore, started_program
from palyra.features.mcp.process import ProgramStart, ServerProcess, Spawn
from palyra.features.mcp.session import Receiver, ServerLink
from palyra.features.mcp.settings import Pending, ServerConfig, ServerStatus

_MOST_UNSENT_BYTES = 4 << 20
_MOST_LOG_BYTES = 64 << 10
_MOST_NONSENSE = 1000


class StderrTail:
    """The last of what a server wrote to its standard error."""

    def __init__(self) -> None:
        self._text = b""

    def add(self, data: bytes) -> None:
        self._text = (self._text + data)[-_MOST_LOG_BYTES:]

    def tail(self, most: int = 4000) -> str:
        return jsonrpc.clean(self._text[-most:].decode("utf-8", "replace"), most)


class StdioLink:
    # A program that does not know a method may also stay silent.
    modern_first = False

    def __init__(
        self,
        start: Callable[[], Awaitable[ServerProcess]],
        log: StderrTail,
        hint: Callable[[str], str] = lambda said: "",
    ) -> None:
        self._start = start
        self._hint = hint
        self._log = log
        self._child: ServerProcess | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._unsent: deque[OutgoingRpc] = deque()
        self._unsent_bytes = 0
        self._more = asyncio.Event()
        self._closed = False

    async def open(self, receiver: Receiver) -> None:
        try:
            self._child = await self._start()
        except (PalyraError, OSError) as error:
            raise NotSent(f"the program could not be started: {error}") from error
        self._tasks = [
            asyncio.ensure_future(self._guard(self._hear(self._child, receiver), receiver)),
            asyncio.ensure_future(self._guard(self._speak(self._child), receiver)),
            asyncio.ensure_future(self._note(self._child)),
        ]

    def send(self, message: OutgoingRpc) -> None:
        if self._closed:
            raise NotSent("the program has ended")
        if self._unsent_bytes + len(message.body) > _MOST_UNSENT_BYTES:
            raise NotSent("the program does not read what is sent to it")
        self._unsent.append(message)
        self._unsent_bytes += len(message.body)
        self._more.set()

    def withdraw(self, request_id: int, notice: OutgoingRpc | None) -> None:
        if notice is not None:
            with suppress(NotSent):
                self.send(notice)

    def agreed(self, version: str, *, listens: bool = False) -> None:
        return  # Every message looks the same on a pipe, and changes are told without asking.

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return await self._child.look(called=called) if self._child is not None else ()

    async def close(self) -> None:
        self._closed = True
        child, self._child = self._child, None
        if child is None:
            return
        tasks, self._tasks = self._tasks, []
        try:
            # What it still says is read meanwhile, so that it can leave.
            await child.stop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await child.close()

    async def _guard(self, work: Coroutine[Any, Any, str], receiver: Receiver) -> None:
        """End the conversation when one direction ends, for whatever reason."""
        try:
            why = await work
        except (PalyraError, OSError) as error:
            why = str(error)
        self._closed = True
        receiver.closed(
            why, frozenset(message.id for message in self._unsent if message.id is not None)
        )

    async def _hear(self, child: ServerProcess, receiver: Receiver) -> str:
        nonsense = 0
        lines = LineReader()
        while data := await child.read():
            for line in lines.feed(data):
                try:
                    messages = jsonrpc.read(line)
                except Malformed:
                    # Many programs print a greeting. One that prints nothing else is not a server.
                    nonsense += 1
                    if nonsense > _MOST_NONSENSE:
                        raise Unavailable("it says too much that is not MCP") from None
                    continue
                for message in messages:
                    receiver.received(message)
            # A flood must not keep the loop from everybody else.
            await asyncio.sleep(0)
        words = self._log.tail(300)
        hint = self._hint(self._log.tail())
        return (
            f"the program has ended{f': {hint}' if hint else ''}"
            f"{f'; it said: {words}' if words else ''}"
        )

    async def _speak(self, child: ServerProcess) -> str:
        while True:
            while self._unsent:
                message = self._unsent.popleft()
                self._unsent_bytes -= len(message.body)
                await child.write(message.body + b"\n")
            self._more.clear()
            await self._more.wait()

    async def _note(self, child: ServerProcess) -> None:
        with suppress(OSError):
            while data := await child.read_errors():
                self._log.add(data)
                await asyncio.sleep(0)


class LineReader:
    """Reader that cuts a stream into lines. Raises Unavailable for one that does not end; costs
    linear time whatever the chunks are.
    """

    def __init__(self, most: int = jsonrpc.MOST_MESSAGE_BYTES) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        first, *rest = data.split(b"\n")
        self._keep(first)
        if not rest:
            return []
        found = [b"".join(self._parts), *rest[:-1]]
        self._parts.clear()
        self._size = 0
        self._keep(rest[-1])
        return [line for line in (each.strip() for each in found) if line]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            raise Unavailable(f"it sent a message of more than {self._most:,} bytes")
        if part:
            self._parts.append(part)


log = logging.getLogger("palyra.mcp")


def _nobody() -> None:
    return


class Servers:
    """`work` is where each program has a folder of its own, as its home; installed packages lie
    beside it. `changed` is called when `tools()` gives another list.
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
        self._packages = PackageStore(work.parent / PACKAGES)
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

    async def accept(
        self, server: str, tool: str, fingerprint: str = "", use: ToolUse | None = None
    ) -> None:
        """Offer this tool from now on, for as long as it stays as it is. Raises NotFound, or
        Conflict for another fingerprint.
        """
        await self._connected(server).accept(tool, fingerprint, use)

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
            return StdioLink(self._starter(resolved), errors, partial(start_errors.hint, resolved))

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
            os.makedirs(folder, mode=0o700, exist_ok=True)
            program = await asyncio.to_thread(started_program, config, self._packages)

            def placed(text: str) -> str:
                return packages.with_data(text, folder)

            env = {name: placed(value) for name, value in config.env.items()}
            return await self._spawn(
                ProgramStart(
                    tuple(map(placed, program.argv)),
                    process.environment(folder, env),
                    # Somebody's own folder is no place for a program's caches.
                    config.folder or folder,
                    program.readable,
                    folder if config.folder else "",
                )
            )

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
