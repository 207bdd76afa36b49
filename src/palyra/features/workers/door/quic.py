"""Workers by QUIC, on a UDP port: a link that lives on when a machine changes its network.

From Python no client's certificate can be asked for in QUIC, so a worker proves in the first
messages that it has the key of its certificate. No session is resumed, so nothing comes as early
data that could be replayed.

One stream of a QUIC connection as a carrier of the worker protocol, the same on both sides: what
is read lets more come.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived, StreamReset

from palyra.api.http3.bounded_memory import CONNECTION_WINDOW, STREAM_WINDOW, BoundedConnection
from palyra.api.http3.connection import MeteredServer
from palyra.api.intake import Share
from palyra.api.limits import seat
from palyra.core.errors import InvalidInput, PalyraError, Unauthenticated
from palyra.features.tls import authority
from palyra.features.workers.door.door import Reception
from palyra.features.workers.door.link import MessageLink
from palyra.features.workers.protocol import (
    DAEMON_NAME,
    AskChallenge,
    CallRefused,
    Challenge,
    Prove,
    challenge,
)
from palyra.system.thread_pool import everyday

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
        """Close the connection; what was written last may still leave."""
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
        """Note that something came."""

    def ended(self) -> None:
        """The connection is over."""


_IDLE_S = 60.0
_MOST_FROM_ONE_PLACE = 64
_MOST = 1_024


class _Full(Exception):
    """Error: no more connections, of all or of one place."""


class _Came(StreamCarrier):
    def __init__(
        self,
        quic: QuicConnection,
        on_open: "Callable[[_Came], None]",
        on_end: "Callable[[_Came], None]",
    ) -> None:
        super().__init__(quic)
        self._on_open: Callable[[_Came], None] | None = on_open
        self._on_end = on_end

    def opened(self) -> None:
        if self._on_open is not None:
            tell, self._on_open = self._on_open, None
            tell(self)

    def ended(self) -> None:
        self._on_end(self)


class QuicDoor(MeteredServer):
    """Door by QUIC, beside the one by TLS, with the same reception. Enrolling is done there."""

    def __init__(self, reception: Reception, certificate: str) -> None:
        settings = QuicConfiguration(
            is_client=False,
            alpn_protocols=[ALPN],
            idle_timeout=_IDLE_S,
            max_data=CONNECTION_WINDOW,
            max_stream_data=STREAM_WINDOW,
        )
        settings.load_cert_chain(certificate, certificate)
        super().__init__(configuration=settings, create_protocol=self._accept, retry=True)
        self.strangers = Share()
        self._reception = reception
        self._from = ""
        self._places: dict[_Came, str] = {}
        self._by_place: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def datagram_received(self, data: Any, addr: Any) -> None:
        self._from = seat(str(addr[0]))
        try:
            super().datagram_received(data, addr)
        except _Full:
            return

    def _accept(self, quic: QuicConnection, stream_handler: Any) -> _Came:
        if len(self._places) >= _MOST or self._by_place[self._from] >= _MOST_FROM_ONE_PLACE:
            raise _Full
        made = _Came(quic, self._opened, self._ended)
        self._places[made] = self._from
        self._by_place[self._from] += 1
        return made

    def _opened(self, came: _Came) -> None:
        if self._reception.full:
            came.close()
            return
        task = asyncio.ensure_future(
            self._reception.receive(self._places.get(came, ""), partial(self._meet, came))
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _ended(self, came: _Came) -> None:
        place = self._places.pop(came, None)
        if place is not None:
            self._by_place[place] -= 1

    async def _meet(self, came: _Came) -> tuple[MessageLink, bytes] | None:
        link = MessageLink(came, came.quic.peer[0])
        try:
            return link, await self._proven(link)
        except PalyraError as error:
            link.post(CallRefused(code=error.code, message=error.message[:2_000]))
            link.close()
            return None
        except BaseException:
            link.close()
            raise

    async def _proven(self, link: MessageLink) -> bytes:
        if not isinstance(await link.receive(), AskChallenge):
            raise InvalidInput(
                "a worker that comes by QUIC asks for a challenge first; enrol by TLS"
            )
        nonce = os.urandom(32)
        link.post(Challenge(nonce=nonce))
        said = await link.receive()
        good = isinstance(said, Prove) and await everyday.run(
            authority.proves, said.certificate, challenge(nonce), said.signature
        )
        if not good or not isinstance(said, Prove):
            self._reception.workers.refusals.note(
                "certificate", address=link.address, detail="it has not the key"
            )
            raise Unauthenticated(
                "this certificate is not yours: the challenge was not signed with its key"
            )
        return said.certificate.encode()

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        self.close()


async def listen(bound: socket.socket, reception: Reception) -> QuicDoor:
    certificate = str(await reception.certificates.for_workers(DAEMON_NAME))
    loop = asyncio.get_running_loop()
    _, door = await loop.create_datagram_endpoint(
        lambda: QuicDoor(reception, certificate), sock=bound
    )
    return door
