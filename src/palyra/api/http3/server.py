"""HTTP/3 on a UDP port: the same application, limits and tokens as on HTTP's. Its listener loads
aioquic, and only if it is used.

Every address is made to answer before anything is kept for it, so that a forged one costs nothing.
No session is resumed, so that no request can come as early data and be replayed.
"""

import asyncio
import socket
from collections import Counter
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

from palyra.api.app import App
from palyra.api.http3.bounded_memory import CONNECTION_WINDOW, STREAM_WINDOW
from palyra.api.http3.connection import Http3Connection, MeteredServer
from palyra.api.intake import Share
from palyra.api.limits import ApiLimits, seat
from palyra.api.listen_sockets import Pair

MOST_CONNECTIONS = 256
MOST_FROM_ONE_PLACE = 32
_IDLE_S = 60.0
_GRACE_S = 3.0


class _Full(Exception):
    """No more connections, of all or of one place."""


class Http3(MeteredServer):
    def __init__(self, app: App, limits: ApiLimits, pair: Pair, server: tuple[str, int]) -> None:
        self._settings = QuicConfiguration(
            is_client=False,
            alpn_protocols=["h3"],
            idle_timeout=_IDLE_S,
            max_data=CONNECTION_WINDOW,
            max_stream_data=STREAM_WINDOW,
        )
        self.use(pair)
        super().__init__(configuration=self._settings, create_protocol=self._accept, retry=True)
        self.strangers = Share()
        self._app = app
        self._limits = limits
        self._server = server
        self._from = ""
        self._places: dict[Http3Connection, str] = {}
        self._by_place: Counter[str] = Counter()

    def use(self, pair: Pair) -> None:
        """Show this certificate from the next connection on."""
        certificate, *chain = load_pem_x509_certificates(pair.certificate)
        self._settings.certificate, self._settings.certificate_chain = certificate, chain
        self._settings.private_key = load_pem_private_key(pair.key, None)

    @property
    def connections(self) -> int:
        return len(self._places)

    def datagram_received(self, data: Any, addr: Any) -> None:
        self._from = seat(str(addr[0]))
        try:
            super().datagram_received(data, addr)
        except _Full:
            return

    def _accept(self, quic: QuicConnection, stream_handler: Any) -> Http3Connection:
        if (
            len(self._places) >= MOST_CONNECTIONS
            or self._by_place[self._from] >= MOST_FROM_ONE_PLACE
        ):
            raise _Full
        made = Http3Connection(quic, self._app, self._limits, self._server, self._ended)
        self._places[made] = self._from
        self._by_place[self._from] += 1
        return made

    def _ended(self, connection: Http3Connection) -> None:
        place = self._places.pop(connection, None)
        if place is not None:
            self._by_place[place] -= 1
            if not self._by_place[place]:
                del self._by_place[place]

    async def end(self) -> None:
        """End the server; what is being answered is still answered, for a moment."""
        if tasks := [task for each in self._places for task in each.answering]:
            await asyncio.wait(tasks, timeout=_GRACE_S)
            # What they sent last leaves with the next turn of the loop.
            await asyncio.sleep(0)
        self.close()


async def listen(bound: socket.socket, app: App, limits: ApiLimits, pair: Pair) -> Http3:
    address = bound.getsockname()[:2]
    _, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Http3(app, limits, pair, address), sock=bound
    )
    return server
