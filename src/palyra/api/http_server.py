"""uvicorn as our HTTP server: its protocol behind the intake budget, and a shutdown that is ours.

uvicorn also looks ten times a second whether it is to end and what time it is: ours is told the
one, and looks at the other when asked.

One HTTP/1.1 connection: uvicorn's protocol behind the intake budget.

uvicorn reads headers, and queues requests that are sent before the last one was answered, without
end. Here the parser gets the next slice only when nothing is queued, and what is wrong before there
is a request is answered in the usual shape.
"""

import asyncio
import contextlib
import re
import socket
import ssl
import time
from collections.abc import Callable, Generator, Iterable
from email.utils import formatdate
from typing import Any
from typing import Protocol as Protocol_

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import Server

from palyra.api.calls import Receive, Scope, Send
from palyra.api.errors import BodyTooSlow, TooManyHeaders, body_of, status_of
from palyra.api.intake import BUDGET, Feed, Pool, budget_for
from palyra.api.limits import ApiLimits, Doorstep, TlsListener, Waiting
from palyra.api.listen_sockets import BACKLOG
from palyra.api.streams import headers_of
from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, PalyraError, Unavailable

# Of a body whose length is known: nothing else can be in there.
_BODY_SLICE = 64 << 10
# Headers that everybody may have, without being counted among the strangers'.
_FREE_HEADER_BYTES = 8 << 10


_AUTHORITY_END = re.compile(rb"[/?#]")


class _Flow(FlowControl):
    """uvicorn's wish to read or not. The feed decides, which knows what lies there unparsed."""

    def __init__(self, transport: asyncio.Transport, feed: Feed) -> None:
        super().__init__(transport)
        self._feed = feed

    def pause_reading(self) -> None:
        self.read_paused = True

    def resume_reading(self) -> None:
        self.read_paused = False
        self._feed.wake()


class Protocol(HttpToolsProtocol):
    """One connection. `_in_head`, `_in_body`: where the parser is; `_overhead`: what a body in
    pieces brings beside its bytes.
    """

    # Beyond what uvicorn's own has: more names than Python shares between objects would cost each
    # connection a dictionary.
    __slots__ = (
        "_body_left",
        "_cost",
        "_counted",
        "_dated",
        "_deadline",
        "_feed",
        "_header_bytes",
        "_in_body",
        "_in_head",
        "_overhead",
        "_refused",
        "_waiting",
    )

    # Set for all connections of a server.
    limits = ApiLimits()
    budget = BUDGET
    silent = Doorstep(from_one_place=BUDGET.silent_from_one_place, in_all=BUDGET.silent)
    strangers = Pool()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._feed = Feed(transport, self._parse, self._wants, self.budget, self._reads)
        self.flow = _Flow(transport, self._feed)
        self._header_bytes = self._dated = self._body_left = self._counted = self._overhead = 0
        self._cost = 0.0
        self._in_head = True
        self._in_body = self._refused = False
        self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)
        self._waiting: Waiting | None = self.silent.enter(
            self.client[0] if self.client else "", transport.abort
        )
        most = 2 * self.limits.exchanges
        if len(self.connections) > most:
            self._refuse(
                Unavailable(f"{most} connections are open: try again when some have ended")
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self._feed.stop()
        self._known()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            self._feed.take(data)

    def _wants(self) -> bool:
        """Return whether the parser may have more: not while a request is queued, or a body waits
        to be read.
        """
        return not self.pipeline and not self.flow.read_paused

    def _reads(self) -> bool:
        """Return whether the connection may be read: not before the application has what came, or
        the client's end would come first.
        """
        cycle = self.cycle
        return self._wants() and (cycle is None or cycle.response_complete or not cycle.body)

    def _parse(self, piece: memoryview) -> float:
        """Parse a slice, and return what it cost."""
        if self._refused:
            return 0.0
        self._cost = 0.0
        left = self._body_left
        super().data_received(piece)  # type: ignore[arg-type]
        if self._in_head:
            self._count(len(piece))
        elif self._in_body and not left:
            self._overhead += len(piece)
            self._check_pieces()
        self._feed.slice = max(self.budget.slice_bytes, min(self._body_left, _BODY_SLICE))
        return self._cost

    def handle_websocket_upgrade(self) -> None:
        self._feed.stop()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        self._header_bytes = self._body_left = self._overhead = 0
        self._in_head = True
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Some more than the application allows, so that it can say so itself to anybody who is
        # merely over the limit.
        if len(self.headers) > 4 * self.limits.headers:
            self._refuse(
                TooManyHeaders(f"a request may have {self.limits.headers} headers (limits.headers)")
            )
            raise InvalidInput("too many headers")
        super().on_header(name, value)
        if len(name) == 14 and name.lower() == b"content-length" and value.isdigit():
            self._body_left = int(value[:18])

    def on_headers_complete(self) -> None:
        self._check_target()
        self._in_head, self._in_body = False, True
        self._cost += self.budget.request
        self._deadline.cancel()
        self._known()
        if (now := int(time.time())) != self._dated:
            self._dated = now
            self.server_state.default_headers = [(b"date", formatdate(now, usegmt=True).encode())]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._cost += self.budget.piece
        self._overhead -= 2 * len(body)
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._deadline.cancel()
        self._body_left = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            if self._in_body:
                # It was answered before it was whole. The rest is thrown away, but not waited for
                # without end.
                self._deadline = self.loop.call_later(self.limits.body_s, self.transport.close)
            self._feed.wake()

    def _count(self, size: int) -> None:
        if self._refused:
            return
        self._header_bytes += size
        most = self.budget.header_bytes
        if self._header_bytes > most:
            self._refuse(
                TooManyHeaders(f"the headers of a request may have {most} bytes", limit=most)
            )
        elif self._header_bytes > _FREE_HEADER_BYTES:
            try:
                self.strangers.take(size)
            except Unavailable as error:
                self._refuse(error)
            else:
                self._counted += size

    def _check_target(self) -> None:
        """A target with a host of its own names the same one as the Host header, or two programs
        would see two servers.
        """
        url: bytes = self.url
        if url[:1] in (b"/", b"*") or b"://" not in url:
            return
        named = _AUTHORITY_END.split(url.partition(b"://")[2], maxsplit=1)[0].lower()
        if [value.lower() for name, value in self.headers if name == b"host"] != [named]:
            self._refuse(
                InvalidInput(
                    "the target names another host than the Host header: send the path alone"
                )
            )
            raise InvalidInput("another host")

    def _known(self) -> None:
        """Leave the doorstep: the connection has sent a request, or is gone, and its headers no
        longer count as a stranger's.
        """
        if self._waiting is not None:
            self.silent.leave(self._waiting)
            self._waiting = None
        if self._counted:
            self.strangers.give_back(self._counted)
            self._counted = 0

    def _check_pieces(self) -> None:
        most = self.budget.header_bytes
        if self._overhead > most and not self._refused:
            self._refuse(
                LimitExceeded(
                    f"the pieces of the body are too small: {most} bytes beside them are taken",
                    limit=most,
                )
            )

    def _too_slow(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._refuse(
                BodyTooSlow(
                    f"the headers of the request did not arrive within {self.limits.header_s:g} s"
                )
            )

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidInput("this is not a valid HTTP request"))

    def _refuse(self, error: PalyraError) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._feed.stop()
        cycle = self.cycle
        if cycle is not None and (self._in_body or not cycle.response_complete):
            # The application has a request: to it the client is gone. Whoever has an answer already
            # gets no second one.
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.close()
                return
        body = body_of(error)
        lines = [STATUS_LINE[status_of(error)]]
        for name, value in (
            *headers_of(()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ):
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join((*lines, b"connection: close\r\n\r\n", body)))
        # Closing with unread data resets the connection, and the client never learns why: what
        # still comes is thrown away.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)


_KEEP_ALIVE_S = 30
_GRACE_S = 3
_LINGER_S = 1.0
_BIND_TRIES = 20
_BIND_PAUSE_S = 0.05
# Connections whose TLS is not there yet.
_SHAKING_HANDS_FROM_ONE_PLACE = 128
_SHAKING_HANDS = 256


class ServedApp(Protocol_):
    """Application behind a listener."""

    @property
    def strangers(self) -> Pool: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None:
        """End every stream; what is being answered is still answered."""
        ...


class HttpServer(Server):
    """Server of an App on a socket until it is told to stop. Signals are not its business."""

    def __init__(self, app: ServedApp, limits: ApiLimits) -> None:
        super().__init__(_config(app, limits))
        self._app = app
        self._header_s = limits.header_s
        self._stopping = asyncio.Event()
        self._listener: socket.socket | None = None

    async def run_on(
        self,
        listener: socket.socket,
        on_ready: Callable[[], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.lifespan = self.config.lifespan_class(self.config)
        await self._open(listener, tls)
        self.started = True
        on_ready()
        await self._stopping.wait()
        self._app.close()
        assert self._listener is not None
        await self.shutdown(sockets=[self._listener])

    async def move(
        self, bind: Callable[[], socket.socket], tls: ssl.SSLContext | None, *, same: bool
    ) -> None:
        """Serve on another socket, or on the same one with other TLS.

        Whoever is connected the old way gets the answer that is under way, and is then
        disconnected: nobody stays on a connection that the settings no longer allow.
        """
        assert self._listener is not None
        held, connected = self._listener, tuple(self.server_state.connections)
        for server in self.servers:
            server.close()
        self.servers = []
        if not same:
            held.close()
            held = await _bound(bind)
        await self._open(held, tls)
        loop = asyncio.get_running_loop()
        loop.call_later(_LINGER_S, self._disconnect, connected)

    async def _open(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        """The loop's server closes its socket: it gets a copy, so that the port stays ours."""
        self._listener, taking = listener, listener.dup()
        if tls is None:
            server: Any = await asyncio.get_running_loop().create_server(
                self._protocol, sock=taking, backlog=BACKLOG
            )
        else:
            doorstep = Doorstep(from_one_place=_SHAKING_HANDS_FROM_ONE_PLACE, in_all=_SHAKING_HANDS)
            # Who does not say goodbye is not waited for.
            server = TlsListener(
                taking,
                tls,
                self._protocol,
                doorstep,
                handshake_s=self._header_s,
                shutdown_s=_LINGER_S,
            )
            server.open()
        self.servers = [server]

    def _disconnect(self, connected: Iterable[Any]) -> None:
        still = [each for each in connected if each in self.server_state.connections]
        for each in still:
            each.shutdown()
        # A stream would go on for ever.
        asyncio.get_running_loop().call_later(_GRACE_S, _drop, still)

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(
            config=self.config, server_state=self.server_state, app_state={}
        )  # type: ignore[call-arg]

    def stop(self) -> None:
        """Stop accepting, end streams, answer what is being asked; asked twice, drop everything."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _bound(bind: Callable[[], socket.socket]) -> socket.socket:
    """The loop lets go of a closed socket some turns later: until then its port is taken."""
    for _ in range(_BIND_TRIES):
        try:
            return bind()
        except Conflict:
            await asyncio.sleep(_BIND_PAUSE_S)
    return bind()


def _drop(connected: Iterable[Any]) -> None:
    for each in connected:
        if not each.transport.is_closing():
            each.transport.abort()


def _config(app: ServedApp, limits: ApiLimits) -> Config:
    config = Config(
        app,
        http=type("LimitedProtocol", (Protocol,), _shared(app, limits)),
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,
    )
    config.load()
    config.ws_protocol_class = _websocket  # type: ignore[assignment]
    return config


def _shared(app: ServedApp, limits: ApiLimits) -> dict[str, Any]:
    """Return what all connections of a server have in common."""
    budget = budget_for(limits)
    silent = Doorstep(from_one_place=budget.silent_from_one_place, in_all=budget.silent)
    return {"limits": limits, "budget": budget, "silent": silent, "strangers": app.strangers}


def _websocket(config: Config, **options: Any) -> asyncio.Protocol:
    # Loaded when the first WebSocket comes: half of the daemons never see one.
    from palyra.api.websocket_connection import WebSocketConnection

    http: Any = config.http_protocol_class
    return WebSocketConnection(http.budget, config=config, **options)
