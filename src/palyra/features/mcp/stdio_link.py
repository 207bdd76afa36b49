"""A link over the standard streams of a program: one message on a line.

The rule: a server that does not read, floods or talks nonsense costs a bounded amount of memory,
and only its own connection.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from palyra.core.errors import PalyraError, Unavailable
from palyra.features.mcp import jsonrpc
from palyra.features.mcp.jsonrpc import Malformed, NotSent, OutgoingRpc
from palyra.features.mcp.process import ServerProcess
from palyra.features.mcp.session import Receiver

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

    def __init__(self, start: Callable[[], Awaitable[ServerProcess]], log: StderrTail) -> None:
        self._start = start
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
        """However one direction ends, the conversation is over."""
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
        return f"the program has ended{f'; it said: {words}' if words else ''}"

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
    """Cuts a stream into lines. Raises Unavailable for one that does not end; costs linear time
    whatever the chunks are.
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
