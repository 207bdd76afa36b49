"""uvicorn as our HTTP server: its protocol behind the intake budget, and a shutdown that is ours.

uvicorn also looks ten times a second whether it is to end and what time it is: ours is told the
one, and looks at the other when asked.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Generator
from typing import Any

from uvicorn.config import Config
from uvicorn.server import Server

from palyra.api.app import App
from palyra.api.http_connection import Protocol
from palyra.api.intake import budget_for
from palyra.api.limits import ApiLimits
from palyra.api.listen_sockets import BACKLOG
from palyra.api.unauthenticated_limits import Doorstep, TlsListener

_KEEP_ALIVE_S = 30
_GRACE_S = 3
_LINGER_S = 1.0
# Connections whose TLS is not there yet.
_SHAKING_HANDS_FROM_ONE_PLACE = 128
_SHAKING_HANDS = 256


class HttpServer(Server):
    """Serves an App on a socket until it is told to stop. Signals are not its business."""

    def __init__(self, app: App, limits: ApiLimits, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(_config(app, limits))
        self._app = app
        self._tls = tls
        self._header_s = limits.header_s
        self._stopping = asyncio.Event()

    async def run_on(self, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        self.lifespan = self.config.lifespan_class(self.config)
        if self._tls is None:
            server: Any = await asyncio.get_running_loop().create_server(
                self._protocol, sock=listener, backlog=BACKLOG
            )
        else:
            doorstep = Doorstep(from_one_place=_SHAKING_HANDS_FROM_ONE_PLACE, in_all=_SHAKING_HANDS)
            # Who does not say goodbye is not waited for.
            server = TlsListener(
                listener,
                self._tls,
                self._protocol,
                doorstep,
                handshake_s=self._header_s,
                shutdown_s=_LINGER_S,
            )
            server.open()
        self.servers, self.started = [server], True
        on_ready()
        await self._stopping.wait()
        self._app.close()
        await self.shutdown(sockets=[listener])

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


def _config(app: App, limits: ApiLimits) -> Config:
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


def _shared(app: App, limits: ApiLimits) -> dict[str, Any]:
    """What all connections of a server have in common."""
    budget = budget_for(limits)
    silent = Doorstep(from_one_place=budget.silent_from_one_place, in_all=budget.silent)
    return {"limits": limits, "budget": budget, "silent": silent, "strangers": app.strangers}


def _websocket(config: Config, **options: Any) -> asyncio.Protocol:
    # Loaded when the first WebSocket comes: half of the daemons never see one.
    from palyra.api.websocket_connection import WebSocketConnection

    http: Any = config.http_protocol_class
    return WebSocketConnection(http.budget, config=config, **options)
