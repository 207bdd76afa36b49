"""Where workers come in: one port, TLS 1.3 only. Who has a certificate of ours is let in as that
worker; who has none can enrol.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine
from functools import partial
from typing import Any

from palyra.core.errors import PalyraError
from palyra.features.tls.service import Certificates
from palyra.features.workers.door.link import MessageLink, TlsCarrier
from palyra.features.workers.door.reception import GREETING_S, Reception
from palyra.features.workers.protocol import DAEMON_NAME
from palyra.features.workers.service import Workers
from palyra.system.clock import Clock

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
        """TLS, with a certificate of ours, with none, or not at all."""
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
