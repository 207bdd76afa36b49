"""uvicorn as our HTTP server: its protocol with the limits it lacks, and a shutdown that is ours.

uvicorn reads headers without end and waits for them without end; both are bounded here, before the application sees anything.
It also looks ten times a second whether it is to end and what time it is: ours is told the one, and looks at the other when asked.
"""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Generator
from email.utils import formatdate
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import Server

from palyra.domain.errors import InvalidInput, PalyraError, Unavailable
from palyra.transports.doorstep import Doorstep, TlsListener
from palyra.transports.http.app import App
from palyra.transports.http.errors import BodyTooSlow, TooManyHeaders, body_of, status_of
from palyra.transports.http.streams import headers_of
from palyra.transports.limits import Limits
from palyra.transports.listening import BACKLOG

_HEADER_BYTES = 64 << 10
_KEEP_ALIVE_S = 30
_GRACE_S = 3
_LINGER_S = 1.0
# Connections whose TLS is not there yet.
_SHAKING_HANDS_FROM_ONE_PLACE = 128
_SHAKING_HANDS = 256


class Protocol(HttpToolsProtocol):
    """One connection. What is wrong with a request before it is one is answered in the same shape as everything else."""

    # Beyond what uvicorn's own has: more names than Python shares between objects would cost each connection a dictionary.
    __slots__ = ("_dated", "_deadline", "_header_bytes", "_refused")

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._header_bytes = self._dated = 0
        self._refused = False
        self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)
        most = 2 * self.limits.exchanges
        if len(self.connections) > most:
            self._refuse(Unavailable(f"{most} connections are open: try again when some have ended"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._deadline.cancel()
        if (now := int(time.time())) != self._dated:
            self._dated = now
            self.server_state.default_headers = [(b"date", formatdate(now, usegmt=True).encode())]
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def _count(self, size: int) -> None:
        self._header_bytes += size
        # Some more than the application allows, so that it can say so itself to anybody who is merely over the limit.
        if self._header_bytes > _HEADER_BYTES or len(self.headers) > 4 * self.limits.headers:
            self._refuse(TooManyHeaders(f"the headers of a request may have {_HEADER_BYTES} bytes", limit=_HEADER_BYTES))
            raise InvalidInput("too many headers")

    def _too_slow(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._refuse(BodyTooSlow(f"the headers of the request did not arrive within {self.limits.header_s:g} s"))

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidInput("this is not a valid HTTP request"))

    def _refuse(self, error: PalyraError) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        body = body_of(error)
        lines = [STATUS_LINE[status_of(error)]]
        for name, value in (*headers_of(()), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))):
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join((*lines, b"connection: close\r\n\r\n", body)))
        # Closing with unread data resets the connection, and the client never learns why: what still comes is thrown away.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)


def _websocket(**options: Any) -> asyncio.Protocol:
    # Loaded when the first WebSocket comes: half of the daemons never see one.
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**options)


class HttpServer(Server):
    """Serves an App on a socket until it is told to stop. Signals are not its business."""

    def __init__(self, app: App, limits: Limits, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(_config(app, limits))
        self._app = app
        self._tls = tls
        self._header_s = limits.header_s
        self._stopping = asyncio.Event()

    async def run_on(self, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        self.lifespan = self.config.lifespan_class(self.config)
        if self._tls is None:
            server: Any = await asyncio.get_running_loop().create_server(self._protocol, sock=listener, backlog=BACKLOG)
        else:
            doorstep = Doorstep(from_one_place=_SHAKING_HANDS_FROM_ONE_PLACE, in_all=_SHAKING_HANDS)
            # Who does not say goodbye is not waited for.
            server = TlsListener(listener, self._tls, self._protocol, doorstep, handshake_s=self._header_s, shutdown_s=_LINGER_S)
            server.open()
        self.servers, self.started = [server], True
        on_ready()
        await self._stopping.wait()
        self._app.close()
        await self.shutdown(sockets=[listener])

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(config=self.config, server_state=self.server_state, app_state={})  # type: ignore[call-arg]

    def stop(self) -> None:
        """Stop accepting, end streams, answer what is being asked; asked twice, drop everything."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _config(app: App, limits: Limits) -> Config:
    config = Config(
        app,
        http=type("LimitedProtocol", (Protocol,), {"limits": limits}),
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
