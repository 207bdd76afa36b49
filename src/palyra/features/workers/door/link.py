"""A connection that carries messages of the worker protocol, from the daemon's side, whatever bytes
go through.
"""

import asyncio
from collections import deque
from typing import Protocol

from palyra.api.intake import BUDGET, Meter
from palyra.core.errors import InvalidInput
from palyra.features.workers.protocol import (
    MOST_FIRST_FRAME,
    MOST_FRAME,
    Down,
    Frames,
    Up,
    frame,
    from_worker,
)

_READ = 64 << 10
# What may lie here unsent before a peer counts as one that does not read.
_MOST_UNSENT = 16 << 20


class Carrier(Protocol):
    """Bytes in and out, in order."""

    async def read(self, most: int) -> bytes:
        """Read bytes; empty when the peer is gone."""
        ...

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Wait while the peer is slow."""
        ...

    @property
    def unsent(self) -> int: ...

    def close(self) -> None: ...


class MessageLink:
    def __init__(self, carrier: Carrier, address: str) -> None:
        self._carrier = carrier
        self._frames = Frames(MOST_FIRST_FRAME)
        self._waiting: deque[bytes] = deque()
        self._meter = Meter()
        self._turn = 0.0
        self._closed = False
        self.address = address

    def admit(self) -> None:
        """Admit a known peer: its messages may be as large as any."""
        self._frames.most = MOST_FRAME

    def post(self, message: Down) -> None:
        if self._closed:
            return
        try:
            data = frame(message)
        except InvalidInput:
            self.close()
            raise
        if self._carrier.unsent > _MOST_UNSENT:
            self.close()
            return
        self._carrier.write(data)

    async def send(self, message: Down) -> None:
        self.post(message)
        try:
            await self._carrier.drain()
        except OSError:
            self.close()

    async def receive(self) -> Up | None:
        """The next message; None when the peer is gone. Raises InvalidInput for what is none."""
        while not self._waiting:
            try:
                data = await self._carrier.read(_READ)
            except OSError:
                return None
            if not data:
                return None
            self._waiting.extend(self._frames.feed(data))
        body = self._waiting.popleft()
        await self._pay(BUDGET.message + len(body) / 1024 * BUDGET.per_kilobyte)
        return from_worker(body)

    async def _pay(self, cost: float) -> None:
        """Limit the rate: a peer that says too much is not read for a while, and none has the event
        loop for longer than a turn.
        """
        self._turn += cost
        wait = self._meter.spend(cost)
        if wait or self._turn > BUDGET.per_turn:
            self._turn = 0.0
            await asyncio.sleep(wait)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._carrier.close()


class TlsCarrier:
    """A TLS connection as a carrier."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.read = reader.read
        self.write = writer.write
        self.drain = writer.drain
        self.close = writer.close

    @property
    def unsent(self) -> int:
        return self._writer.transport.get_write_buffer_size()
