"""Door of workers: one port, TLS 1.3 only. Who has a certificate of ours is let in as that worker;
who has none can enrol.

Reception of whoever comes to be a worker, by any transport: who it is and what it may say. Every
refusal is recorded.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from palyra.api.limits import Doorstep
from palyra.core.errors import InvalidInput, PalyraError, Unauthenticated
from palyra.features.tls.service import Certificates
from palyra.features.workers.door.link import MessageLink, TlsCarrier
from palyra.features.workers.protocol import (
    DAEMON_NAME,
    AskAuthority,
    Authority,
    CallRefused,
    Enrol,
    Enrolled,
    Hello,
)
from palyra.features.workers.service import Workers
from palyra.system.clock import Clock

GREETING_S = 10.0
# Connections at once that have not said who they are, from one place and from everywhere, and all
# of them.
_STRANGERS_FROM_ONE_PLACE = 32
_STRANGERS = 128
_MOST = 1_024


class Reception:
    def __init__(self, workers: Workers, certificates: Certificates) -> None:
        self.workers = workers
        self.certificates = certificates
        self._strangers = Doorstep(from_one_place=_STRANGERS_FROM_ONE_PLACE, in_all=_STRANGERS)
        self._all = 0

    @property
    def full(self) -> bool:
        return self._all >= _MOST

    async def receive(
        self, address: str, met: Callable[[], Awaitable[tuple[MessageLink, bytes] | None]]
    ) -> None:
        """One connection from its beginning to its end. `met` gives the link and the certificate,
        or None for who gave up.
        """
        task = asyncio.current_task()
        assert task is not None
        stranger = self._strangers.enter(address, task.cancel)
        self._all += 1
        try:
            async with asyncio.timeout(2 * GREETING_S):
                came = await met()
            if came is None:
                return
            link, certificate = came
            try:
                async with asyncio.timeout(GREETING_S):
                    hello = await self._introduced(link, certificate)
                if hello is not None:
                    self._strangers.leave(stranger)
                    await self._talk(link, certificate, hello)
            except PalyraError as error:
                link.post(CallRefused(code=error.code, message=error.message[:2_000]))
            except TimeoutError:
                link.post(
                    CallRefused(
                        code="limit_exceeded", message=f"nothing was said for {GREETING_S:g} s"
                    )
                )
            finally:
                link.close()
        except TimeoutError:
            return
        finally:
            self._all -= 1
            self._strangers.leave(stranger)

    async def _introduced(self, link: MessageLink, certificate: bytes) -> Hello | None:
        """Answer whoever only asks or enrols; give the greeting of who would work."""
        while (said := await link.receive()) is not None:
            match said:
                case AskAuthority():
                    link.post(Authority(certificate=(await self.certificates.trust()).decode()))
                case Enrol(code=code, request=request):
                    redeemed = await self.workers.desk.redeem(code, request, link.address)
                    link.post(Enrolled(name=redeemed.name, certificate=redeemed.certificate))
                case Hello():
                    if not certificate:
                        self.workers.refusals.note(
                            "certificate", address=link.address, detail="it showed none"
                        )
                        raise Unauthenticated(
                            "a worker needs its certificate: enrol it with `palyra worker enrol`"
                        )
                    return said
                case _:
                    raise InvalidInput("a worker says who it is before anything else")
        return None

    async def _talk(self, link: MessageLink, certificate: bytes, hello: Hello) -> None:
        workers = self.workers
        row = await workers.desk.known(certificate, link.address)
        link.admit()
        station = await workers.presence.join(row, link, hello)
        try:
            while (said := await link.receive()) is not None:
                await workers.hearing.hear(station, link, said)
        except InvalidInput as error:
            workers.refusals.note(
                "message", worker=row.name, address=link.address, detail=error.message
            )
            # What it holds cannot be told from its words any more: each call is settled as if the
            # worker were lost.
            await workers.presence.lose(station, list(station.held.values()), "lost")
            raise
        finally:
            workers.presence.leave(station, link)


log = logging.getLogger("palyra.workers")

_RENEW_MS = 24 * 3_600_000


class WorkerListener:
    def __init__(
        self, workers: Workers, certificates: Certificates, clock: Clock, listener: socket.socket
    ) -> None:
        self._workers = workers
        self._certificates = certificates
        self._clock = clock
        self._listener = listener
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tasks: set[asyncio.Task[None]] = set()
        self.reception = Reception(workers, certificates)
        self.port: int = listener.getsockname()[1]

    async def open(self) -> None:
        context = self._context
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0  # A resumed session would not show its certificate again.
        trusted = await self._certificates.trust()
        context.load_verify_locations(cadata=trusted.decode())
        context.load_cert_chain(await self._certificates.for_workers(DAEMON_NAME))
        self._workers.desk.port = self.port
        self._start(self._accept())
        self._start(self._renew())

    async def close(self) -> None:
        self._workers.desk.port = 0
        self._listener.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(_RENEW_MS)
            try:
                self._context.load_cert_chain(await self._certificates.for_workers(DAEMON_NAME))
            except PalyraError as error:
                log.error("the certificate for workers could not be renewed: %s", error.message)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listener)
            except OSError as error:
                log.error("a worker's connection could not be taken: %s", error)
                await self._clock.sleep(1_000)
                continue
            if self.reception.full:
                connection.close()
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            came_from = str(address[0])
            self._start(
                self.reception.receive(came_from, partial(self._meet, connection, came_from))
            )

    async def _meet(
        self, connection: socket.socket, address: str
    ) -> tuple[MessageLink, bytes] | None:
        """Meet a peer by TLS, with a certificate of ours, with none, or not at all."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=128 << 10)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=GREETING_S
            )
        except ssl.SSLError as error:
            detail = (error.reason or str(error)).lower().replace("_", " ")
            self._workers.refusals.note("certificate", address=address, detail=detail)
            connection.close()
            return None
        except (OSError, TimeoutError):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return (
            MessageLink(
                TlsCarrier(reader, asyncio.StreamWriter(transport, protocol, reader, loop)), address
            ),
            shown or b"",
        )
