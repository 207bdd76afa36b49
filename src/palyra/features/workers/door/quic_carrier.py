"""One stream of a QUIC connection as a carrier of the worker protocol, the same on both sides: what
is read lets more come.
"""

import asyncio
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived, StreamReset

from palyra.api.http3.bounded_memory import BoundedConnection
from palyra.api.intake import Share

ALPN = "palyra-worker"
# The only stream there is: the first that a client opens.
STREAM = 0
_CROWDED = 1 << 20


class StreamCarrier(QuicConnectionProtocol):
    def __init__(self, quic: QuicConnection, stream_handler: Any = None) -> None:
        self.quic = BoundedConnection.bind(quic)
        super().__init__(self.quic)
        self._reader = asyncio.StreamReader()
        self._moved = asyncio.Event()
        self._over = False
        self._share = Share()

    async def read(self, most: int) -> bytes:
        data = await self._reader.read(most)
        if data:
            self.quic.held[STREAM] = self.quic.held.get(STREAM, 0) - len(data)
            self._transmit_soon()
        return data

    def write(self, data: bytes) -> None:
        if not self._over:
            self.quic.send_stream_data(STREAM, data)
            self._transmit_soon()

    async def drain(self) -> None:
        while self.unsent > _CROWDED and not self._over:
            self._moved.clear()
            await self._moved.wait()

    @property
    def unsent(self) -> int:
        return self.quic.unsent(STREAM)

    def close(self, *_: Any, **__: Any) -> None:
        """What was written last may still leave; then the connection is over."""
        if not self._over:
            self._over = True
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        self.transmit()
        super().close()
        self._reader.feed_eof()
        self._moved.set()

    def datagram_received(self, data: Any, addr: Any) -> None:
        if self._share.spent:
            return
        try:
            with self._share.taking():
                super().datagram_received(data, addr)
        except Exception:  # noqa: BLE001  whatever a peer sends ends its own connection and nothing else
            self.close()
        self._moved.set()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            if event.stream_id != STREAM:
                self.close()
                return
            if event.data:
                self.quic.held[STREAM] = self.quic.held.get(STREAM, 0) + len(event.data)
                self._reader.feed_data(event.data)
            if event.end_stream:
                self._reader.feed_eof()
            self.opened()
        elif isinstance(event, ConnectionTerminated | StreamReset):
            self._over = True
            self._reader.feed_eof()
            self._moved.set()
            if isinstance(event, ConnectionTerminated):
                self.ended()

    def opened(self) -> None:
        """Something came."""

    def ended(self) -> None:
        """The connection is over."""
