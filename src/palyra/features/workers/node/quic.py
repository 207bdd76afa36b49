"""A worker's way to its daemon by QUIC. It loads aioquic, and only if it is used."""

import asyncio
import socket
import ssl
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from palyra.core.errors import Unauthenticated, Unavailable
from palyra.features.tls import authority
from palyra.features.workers.door.quic import ALPN, StreamCarrier
from palyra.features.workers.node.dial import CONNECT_S, DaemonConnection
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import DAEMON_NAME, AskChallenge, Challenge, Prove, challenge

_IDLE_S = 60.0


class Dialled(StreamCarrier):
    """Connection with its socket, which is given up when the connection is over."""

    def ended(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def dial(home: Home, host: str, port: int, *, older: bool = False) -> DaemonConnection:
    """A line to whoever has a certificate of our authority, on which the daemon knows who we
    are.
    """
    carrier = await _connected(settings_for(home), host, port)
    line = DaemonConnection(carrier)
    try:
        said = await line.ask(AskChallenge())
        if not isinstance(said, Challenge):
            raise Unavailable(f"{host}:{port} does not speak the worker protocol")
        pair = home.pair(older=older)
        line.post(
            Prove(
                certificate=pair.certificate.decode(),
                signature=authority.sign(pair.key, challenge(said.nonce)),
            )
        )
    except BaseException:
        line.close()
        raise
    return line


def settings_for(home: Home) -> QuicConfiguration:
    settings = QuicConfiguration(
        is_client=True, alpn_protocols=[ALPN], server_name=DAEMON_NAME, idle_timeout=_IDLE_S
    )
    settings.load_verify_locations(cadata=home.authority.read_bytes())
    settings.verify_mode = ssl.CERT_REQUIRED
    return settings


async def _connected(settings: QuicConfiguration, host: str, port: int) -> Dialled:
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise Unavailable(f"{host} cannot be found: {error.strerror or error}") from None
    family, _, _, _, address = infos[0]
    found: Any
    transport, found = await loop.create_datagram_endpoint(
        lambda: Dialled(QuicConnection(configuration=settings)),
        family=family,
        local_addr=("::" if family == socket.AF_INET6 else "0.0.0.0", 0),
    )
    try:
        found.connect(address)
        async with asyncio.timeout(CONNECT_S):
            await found.wait_connected()
    except TimeoutError:
        transport.close()
        raise Unavailable(f"{host}:{port} does not answer by QUIC") from None
    except ConnectionError:
        transport.close()
        raise Unauthenticated(
            f"{host}:{port} is not the daemon of this worker, or does not let it in"
        ) from None
    assert isinstance(found, Dialled)
    return found
