"""A TLS connection that carries messages of the worker protocol, from the daemon's side."""

import asyncio

from palyra.domain.errors import InvalidInput
from palyra.domain.workers import Down, Frames, Message, Up, frame, from_worker

_READ = 64 << 10
# What may lie here unsent before a peer counts as one that does not read.
_MOST_UNSENT = 16 << 20


class StreamLink:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames()
        self._waiting: list[bytes] = []
        self._closed = False
        self.address = address

    def post(self, message: Down) -> None:
        self._write(message)

    async def send(self, message: Down) -> None:
        self._write(message)
        try:
            await self._writer.drain()
        except (ConnectionError, OSError):
            self.close()

    def _write(self, message: Message) -> None:
        if self._closed:
            return
        try:
            data = frame(message)
        except InvalidInput:
            self.close()
            raise
        if self._writer.transport.get_write_buffer_size() > _MOST_UNSENT:
            self.close()
            return
        self._writer.write(data)

    async def receive(self) -> Up | None:
        """The next message; None when the peer is gone. Raises InvalidInput for what is none."""
        while not self._waiting:
            try:
                data = await self._reader.read(_READ)
            except (ConnectionError, OSError):
                return None
            if not data:
                return None
            self._waiting = self._frames.feed(data)
        return from_worker(self._waiting.pop(0))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._writer.close()
