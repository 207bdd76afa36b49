"""One QUIC connection with its HTTP/3 requests: how large, and for how long. What is wrong with it
ends it and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import ErrorCode
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)

from palyra.api.app import App
from palyra.api.http3.bounded_memory import BoundedConnection, BoundedH3
from palyra.api.http3.exchange import PIECE, Exchange, scope_of
from palyra.api.intake import BUDGET, Share
from palyra.api.limits import ApiLimits

log = logging.getLogger("palyra.quic")

# The largest frame that has to be whole before it means anything: a request's headers.
MOST_HEADER_BYTES = BUDGET.header_bytes
# What may be on its way without having been acknowledged: of one stream, and of all that have more
# than a piece there.
MOST_UNSENT = 256 << 10
MOST_UNSENT_TOGETHER = 1 << 20
_KEEP_ALIVE_S = 30.0
# Less than anybody sees.
_TOGETHER_S = 0.01
_SMALL = 1_000


class Http3Connection(QuicConnectionProtocol):
    def __init__(
        self,
        quic: QuicConnection,
        app: App,
        limits: ApiLimits,
        server: tuple[str, int],
        on_end: Callable[["Http3Connection"], None],
    ) -> None:
        self.quic = BoundedConnection.bind(quic)
        super().__init__(self.quic)
        self.app = app
        self._limits = limits
        self._server = server
        self._on_end = on_end
        self._h3: BoundedH3 | None = None
        self._exchanges: dict[int, Exchange] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[Exchange] = set()
        self._is_over = False
        self._share = Share()
        self._together_at = 0.0
        # Nobody may stay without asking for anything: first for the handshake, then between
        # requests.
        self._patience = self._loop.call_later(limits.header_s, self._give_up)

    @property
    def answering(self) -> "set[asyncio.Task[None]]":
        return self._tasks

    def datagram_received(self, data: Any, addr: Any) -> None:
        if self._share.spent:
            # Dropped, as a busy network would: whoever means it sends it again.
            return
        try:
            with self._share.taking():
                super().datagram_received(data, addr)
        except Exception:
            # The boundary: whatever a peer sends ends its own connection and nothing else.
            log.debug("a QUIC connection is dropped", exc_info=True)
            self._drop()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._h3 = BoundedH3(self.quic)
        elif isinstance(event, HandshakeCompleted):
            self._rest()
        elif isinstance(event, ConnectionTerminated):
            self._over()
        if self._h3 is None:
            return
        if isinstance(event, StopSendingReceived | StreamReset) and (
            exchange := self._exchanges.get(event.stream_id)
        ):
            exchange.lost()
        for heard in self._h3.handle_event(event):
            if isinstance(heard, HeadersReceived):
                self._headers(heard)
            elif isinstance(heard, DataReceived) and (
                found := self._exchanges.get(heard.stream_id)
            ):
                found.heard(heard.data, whole=heard.stream_ended)
        if (
            isinstance(event, StreamDataReceived)
            and self._h3.buffered(event.stream_id) > MOST_HEADER_BYTES
        ):
            self.close(ErrorCode.H3_EXCESSIVE_LOAD, f"a frame may have {MOST_HEADER_BYTES} bytes")

    def _headers(self, heard: HeadersReceived) -> None:
        exchange = self._exchanges.get(heard.stream_id)
        if exchange is not None:
            # Trailers: nothing of ours reads them.
            exchange.heard(b"", whole=heard.stream_ended)
            return
        exchange = Exchange(
            self, heard.stream_id, scope_of(heard.headers, self.quic.peer, self._server)
        )
        exchange.heard(b"", whole=heard.stream_ended)
        self._exchanges[heard.stream_id] = exchange
        self._patience.cancel()
        task = self._loop.create_task(exchange.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def hold(self, stream_id: int, size: int) -> None:
        self.quic.held[stream_id] = self.quic.held.get(stream_id, 0) + size

    def take(self, stream_id: int, size: int) -> None:
        """A request took what had come; its sender may send as much again."""
        if size and stream_id in self.quic.held:
            self.quic.held[stream_id] -= size
            self._transmit_soon()

    def crowded(self, stream_id: int) -> bool:
        """Whether a stream has to wait: for itself, or, if it has some on the way, for all of the
        connection's.
        """
        own = self.quic.unsent(stream_id)
        return own > MOST_UNSENT or (own > PIECE and self._unsent() > MOST_UNSENT_TOGETHER)

    def _unsent(self) -> int:
        return sum(self.quic.unsent(stream_id) for stream_id in self._exchanges)

    def waits(self, exchange: Exchange) -> None:
        self._waiting.add(exchange)

    def send_headers(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        assert self._h3 is not None
        self._h3.send_headers(stream_id, headers)
        self._transmit_soon()

    def send_data(self, stream_id: int, data: bytes, *, end: bool) -> None:
        assert self._h3 is not None
        self._h3.send_data(stream_id, data, end)
        if end or len(data) >= _SMALL:
            self._transmit_soon()
        else:
            self._transmit_together()

    def _transmit_together(self) -> None:
        """A datagram costs more than what is in it: small pieces that follow each other closely
        share one.
        """
        if self._transmit_task is None:
            self._transmit_task = self._loop.call_at(
                max(self._together_at, self._loop.time()), self.transmit
            )
            self._together_at = max(self._together_at, self._loop.time()) + _TOGETHER_S

    def ended(self, exchange: Exchange) -> None:
        self._exchanges.pop(exchange.stream_id, None)
        self.quic.held.pop(exchange.stream_id, None)
        self._waiting.discard(exchange)
        if not self._is_over:
            self._transmit_soon()
            if not self._exchanges:
                self._rest()

    def transmit(self) -> None:
        super().transmit()
        for exchange in [each for each in self._waiting if not self.crowded(each.stream_id)]:
            self._waiting.discard(exchange)
            exchange.drained()

    def _rest(self) -> None:
        self._patience.cancel()
        self._patience = self._loop.call_later(_KEEP_ALIVE_S, self._give_up)

    def _give_up(self) -> None:
        self.close(ErrorCode.H3_NO_ERROR)

    def _drop(self) -> None:
        """Forget it at once: its state is not to be trusted."""
        self._connection_terminated_handler()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._over()

    def _over(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._patience.cancel()
        for exchange in tuple(self._exchanges.values()):
            exchange.lost()
        self._on_end(self)
