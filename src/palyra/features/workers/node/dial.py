"""A worker's way to its daemon: TLS 1.3, to whoever has a certificate of the authority that the
owner named, and to nobody else.
"""

import asyncio
import ssl
from collections import deque
from hashlib import sha256

from palyra.core.errors import InvalidInput, Unauthenticated, Unavailable
from palyra.features.workers.door.link import Carrier, TlsCarrier
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import (
    DAEMON_NAME,
    AskAuthority,
    Authority,
    CallRefused,
    Down,
    Frames,
    WorkerMessage,
    frame,
    from_daemon,
)

CONNECT_S = 10.0
_READ = 64 << 10
# What may wait to be sent before progress is left out.
CROWDED = 1 << 20
# Messages that are heard in one turn of the event loop.
_AT_ONCE = 64


class DaemonConnection:
    """A connection that carries messages."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._frames = Frames()
        self._waiting: deque[bytes] = deque()
        self._heard = 0
        self._closed = False

    def post(self, message: WorkerMessage) -> None:
        if not self._closed:
            self._carrier.write(frame(message))

    async def send(self, message: WorkerMessage) -> None:
        self.post(message)
        await self._carrier.drain()

    @property
    def crowded(self) -> bool:
        return self._carrier.unsent > CROWDED

    async def receive(self) -> Down | None:
        """The next message; None when the daemon is gone."""
        while not self._waiting:
            data = await self._carrier.read(_READ)
            if not data:
                return None
            self._waiting.extend(self._frames.feed(data))
        self._heard += 1
        if self._heard % _AT_ONCE == 0:
            # Whatever the daemon sends, beats and deadlines are kept.
            await asyncio.sleep(0)
        return from_daemon(self._waiting.popleft())

    async def ask(self, message: WorkerMessage) -> Down:
        """Say something and hear the answer."""
        self.post(message)
        async with asyncio.timeout(CONNECT_S):
            said = await self.receive()
        if said is None:
            raise Unavailable("the daemon hung up: is this the port of workers.listen?")
        if isinstance(said, CallRefused):
            raise (
                Unauthenticated
                if said.code in ("unauthenticated", "limit_exceeded")
                else InvalidInput
            )(said.message)
        return said

    def close(self) -> None:
        self._closed = True
        self._carrier.close()


async def dial(host: str, port: int, context: ssl.SSLContext) -> DaemonConnection:
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=DAEMON_NAME
            )
    except ssl.SSLCertVerificationError as error:
        raise Unauthenticated(
            f"{host}:{port} is not the daemon of this worker: {error.verify_message}"
        ) from None
    except TimeoutError:
        raise Unavailable(f"{host}:{port} does not answer") from None
    except OSError as error:
        raise Unavailable(f"{host}:{port} cannot be reached: {error.strerror or error}") from None
    return DaemonConnection(TlsCarrier(reader, writer))


def trusting(authority: str) -> ssl.SSLContext:
    """Return a context for a daemon with a certificate of this authority (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise InvalidInput("what the daemon sent is no certificate of an authority") from None
    return context


def of(home: Home, *, older: bool = False) -> ssl.SSLContext:
    context = trusting(home.authority.read_text())
    home.show(context, older=older)
    return context


async def authority_at(host: str, port: int, fingerprint: str) -> str:
    """The authority's certificate, fetched from a stranger and believed only for its
    fingerprint.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    line = await dial(host, port, context)
    try:
        said = await line.ask(AskAuthority())
    finally:
        line.close()
    if not isinstance(said, Authority):
        raise InvalidInput(f"{host}:{port} does not speak the worker protocol")
    try:
        found = sha256(ssl.PEM_cert_to_DER_cert(said.certificate.strip())).hexdigest()
    except ValueError:
        raise InvalidInput(f"{host}:{port} does not speak the worker protocol") from None
    wanted = fingerprint.lower().removeprefix("sha256:").replace(":", "")
    if found != wanted:
        raise Unauthenticated(
            f"{host}:{port} has another authority ({found}): somebody may be in between, or the"
            " fingerprint was mistyped; nothing was sent"
        )
    return said.certificate
