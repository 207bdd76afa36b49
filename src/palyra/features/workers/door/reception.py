"""What happens to whoever comes to be a worker, whatever it came by: who it is and what it may say.
Every refusal is recorded.
"""

import asyncio
from collections.abc import Awaitable, Callable

from palyra.api.unauthenticated_limits import Doorstep
from palyra.core.errors import InvalidInput, PalyraError, Unauthenticated
from palyra.features.tls.service import Certificates
from palyra.features.workers.door.link import MessageLink
from palyra.features.workers.protocol import (
    AskAuthority,
    Authority,
    CallRefused,
    Enrol,
    Enrolled,
    Hello,
)
from palyra.features.workers.service import Workers

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
