"""Where workers come in: one port, TLS 1.3 only. Who has a certificate of ours is let in as that worker; who has none can enrol.

Every refusal is recorded. What has not said who it is within some seconds is cut off.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from palyra.domain.errors import InvalidInput, PalyraError, Unauthenticated
from palyra.domain.workers import DAEMON_NAME, AskAuthority, Authority, Enrol, Enrolled, Hello, Refused
from palyra.runtime.clock import Clock
from palyra.runtime.tls.certificates import Certificates
from palyra.runtime.workers.workers import Workers
from palyra.transports.workers.link import StreamLink

log = logging.getLogger("palyra.workers")

_GREETING_S = 10.0
# Connections at once that have not said who they are, and all of them.
_MOST_STRANGERS = 64
_MOST = 1_024
_RENEW_MS = 24 * 3_600_000


class Door:
    def __init__(self, workers: Workers, certificates: Certificates, clock: Clock, listener: socket.socket) -> None:
        self._workers = workers
        self._certificates = certificates
        self._clock = clock
        self._listener = listener
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers = 0
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
            if self._strangers >= _MOST_STRANGERS or len(self._tasks) >= _MOST:
                connection.close()
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._strangers += 1
            self._start(self._serve(connection, str(address[0])))

    async def _serve(self, connection: socket.socket, address: str) -> None:
        stranger = True
        try:
            link, certificate = await self._greet(connection, address)
            if link is None:
                return
            try:
                async with asyncio.timeout(_GREETING_S):
                    hello = await self._introduced(link, certificate, address)
                if hello is not None:
                    self._strangers -= 1
                    stranger = False
                    await self._talk(link, certificate, address, hello)
            except PalyraError as error:
                link.post(Refused(code=error.code, message=error.message[:2_000]))
            except TimeoutError:
                link.post(Refused(code="limit_exceeded", message=f"nothing was said for {_GREETING_S:g} s"))
            finally:
                link.close()
        finally:
            if stranger:
                self._strangers -= 1

    async def _greet(self, connection: socket.socket, address: str) -> tuple[StreamLink | None, bytes]:
        """TLS, with a certificate of ours, with none, or not at all."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=128 << 10)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=_GREETING_S
            )
        except ssl.SSLError as error:
            self._workers.refusals.note(
                "certificate", address=address, detail=(error.reason or str(error)).lower().replace("_", " ")
            )
            connection.close()
            return None, b""
        except (OSError, TimeoutError):
            connection.close()
            return None, b""
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return StreamLink(reader, asyncio.StreamWriter(transport, protocol, reader, loop), address), shown or b""

    async def _introduced(self, link: StreamLink, certificate: bytes, address: str) -> Hello | None:
        """Answer whoever only asks or enrols; give the greeting of who would work."""
        while (said := await link.receive()) is not None:
            match said:
                case AskAuthority():
                    link.post(Authority(certificate=(await self._certificates.trust()).decode()))
                case Enrol(code=code, request=request):
                    redeemed = await self._workers.desk.redeem(code, request, address)
                    link.post(Enrolled(name=redeemed.name, certificate=redeemed.certificate))
                case Hello():
                    if not certificate:
                        self._workers.refusals.note("certificate", address=address, detail="it showed none")
                        raise Unauthenticated("a worker needs its certificate: enrol it with `palyra worker enrol`")
                    return said
                case _:
                    raise InvalidInput("a worker says who it is before anything else")
        return None

    async def _talk(self, link: StreamLink, certificate: bytes, address: str, hello: Hello) -> None:
        workers = self._workers
        row = await workers.desk.known(certificate, address)
        station = await workers.presence.join(row, link, hello)
        try:
            while (said := await link.receive()) is not None:
                await workers.hearing.hear(station, link, said)
        except InvalidInput as error:
            workers.refusals.note("message", worker=row.name, address=address, detail=error.message)
            raise
        finally:
            with suppress(asyncio.CancelledError):
                workers.presence.leave(station, link)
