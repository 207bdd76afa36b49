"""One QUIC connection with its HTTP/3 requests: how large, and for how long. What is wrong with it
ends it and nothing else.

QUIC behind the intake budget: nobody takes more of the event loop than their share, and no
datagram is larger than a path's.

A datagram costs a hundred times what reading it from the socket costs, and what is inside may cost
more. Nothing can be paused here: a datagram that is too much is dropped, as a busy network would
drop it, and whoever means it sends it again.

One request over HTTP/3 and its answer, as ASGI knows them. Both ways wait for the slower
side.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
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
from palyra.api.calls import Scope
from palyra.api.http3.bounded_memory import BoundedConnection, BoundedH3
from palyra.api.intake import BUDGET, Share
from palyra.api.limits import ApiLimits

_LONG_HEADER = 0x80


class MeteredServer(QuicServer):
    """Datagrams of no connection share one meter: answering them takes a key, and they have no
    other.
    """

    strangers: Share

    def datagram_received(self, data: Any, addr: Any) -> None:
        if not data or len(data) > BUDGET.datagram_bytes:
            return
        if self._addressed(data) in self._protocols:
            super().datagram_received(data, addr)
        elif not self.strangers.spent:
            with self.strangers.taking():
                super().datagram_received(data, addr)

    def _addressed(self, data: bytes) -> bytes:
        """The connection that a datagram names."""
        if data[0] & _LONG_HEADER:
            return bytes(data[6 : 6 + data[5]]) if len(data) > 6 else b""
        return bytes(data[1 : 1 + self._configuration.connection_id_length])


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
        """Return whether a stream has to wait: for itself, or, if it has some on the way, for all
        of the connection's.
        """
        own = self.quic.unsent(stream_id)
        return own > MOST_UNSENT or (own > PIECE and self._unsent() > MOST_UNSENT_TOGETHER)

    def _unsent(self) -> int:
        return sum(self.quic.unsent(stream_id) for stream_id in self._exchanges)

    def waits(self, exchange: "Exchange") -> None:
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

    def ended(self, exchange: "Exchange") -> None:
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


PIECE = 16 << 10
# These belong to a connection, and a stream has none of its own.
_NOT_HERE = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})


class Exchange:
    """Small: a thousand watchers are a thousand of these, and most of them wait."""

    __slots__ = (
        "_body",
        "_complete",
        "_connection",
        "_head",
        "_news",
        "_room",
        "_said",
        "_scope",
        "_whole",
        "gone",
        "stream_id",
    )

    def __init__(self, connection: "Http3Connection", stream_id: int, scope: Scope) -> None:
        self._connection = connection
        self.stream_id = stream_id
        self._scope: Scope | None = scope
        self._head = scope["method"] == "HEAD"
        self._body = b""
        # Made by who waits: for something to come, and for room to send.
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        # The request has come whole; that it has was said; the answer has left whole; nobody is
        # there any more.
        self._whole = self._said = self._complete = self.gone = False

    def heard(self, data: bytes, *, whole: bool) -> None:
        if data and not self.gone:
            self._body += data
            self._connection.hold(self.stream_id, len(data))
        self._whole = self._whole or whole
        _wake(self._news)

    def lost(self) -> None:
        """The client gave up, or is gone."""
        self.gone = True
        _wake(self._news)
        _wake(self._room)

    def drained(self) -> None:
        _wake(self._room)

    async def run(self) -> None:
        connection, stream_id = self._connection, self.stream_id
        scope, self._scope = self._scope, None
        assert scope is not None
        try:
            await connection.app(scope, self._receive, self._send)
        except Exception:
            log.exception("an answer over HTTP/3 broke off")
        finally:
            if not self.gone:
                if not self._complete:
                    connection.quic.reset_stream(stream_id, ErrorCode.H3_INTERNAL_ERROR)
                if not self._whole:
                    # The answer does not depend on the rest of the request.
                    connection.quic.stop_stream(stream_id, ErrorCode.H3_NO_ERROR)
            connection.ended(self)

    async def _receive(self) -> dict[str, Any]:
        while not self.gone and not self._body and (self._said or not self._whole):
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self.gone:
            return {"type": "http.disconnect"}
        data, self._body = self._body, b""
        self._connection.take(self.stream_id, len(data))
        self._said = self._whole
        return {"type": "http.request", "body": data, "more_body": not self._whole}

    async def _send(self, message: Any) -> None:
        if self.gone or self._complete:
            return
        if message["type"] == "http.response.start":
            # At once: a stream may have nothing to say for a while, and its client wants to know
            # that it is open.
            self._connection.send_headers(self.stream_id, _headers(message))
            return
        body = b"" if self._head else message.get("body", b"")
        more = message.get("more_body", False)
        for at in range(0, len(body), PIECE):
            await self._make_room()
            if self._is_gone():
                return
            self._complete = not more and at + PIECE >= len(body)
            self._connection.send_data(self.stream_id, body[at : at + PIECE], end=self._complete)
        if not more and not self._complete:
            self._complete = True
            self._connection.send_data(self.stream_id, b"", end=True)

    def _is_gone(self) -> bool:
        return self.gone

    async def _make_room(self) -> None:
        while not self.gone and self._connection.crowded(self.stream_id):
            self._room = asyncio.get_running_loop().create_future()
            self._connection.waits(self)
            await self._room


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _headers(start: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    given = [(name, value) for name, value in start["headers"] if name not in _NOT_HERE]
    return [
        (b":status", b"%d" % start["status"]),
        (b"date", formatdate(time.time(), usegmt=True).encode()),
        *given,
    ]


def scope_of(
    headers: list[tuple[bytes, bytes]], client: tuple[str, int], server: tuple[str, int]
) -> Scope:
    """A request's headers as ASGI has them: what HTTP/3 says before them, in its place; cookies in
    one piece.
    """
    said = {name: value for name, value in headers if name.startswith(b":")}
    authority = said.get(b":authority", b"")
    given: list[tuple[bytes, bytes]] = [(b"host", authority)]
    cookies = []
    for name, value in headers:
        if name == b"cookie":
            cookies.append(value)
        elif not name.startswith(b":") and (name, value) != (b"host", authority):
            given.append((name, value))
    if cookies:
        given.append((b"cookie", b"; ".join(cookies)))
    raw, _, query = said.get(b":path", b"").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "3",
        "method": said[b":method"].decode("latin-1"),
        "scheme": "https",
        "path": unquote(raw.decode("latin-1")),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": given,
        "client": client,
        "server": server,
    }
