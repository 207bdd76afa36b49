"""What a connected worker says, and what is done about it. Nothing that it says is believed about
calls that it does not hold.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import assert_never

from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.features.workers import rows
from palyra.features.workers.connection import RemoteCall, Station, WorkerLink
from palyra.features.workers.presence import Presence
from palyra.features.workers.protocol import (
    Acknowledged,
    AskAuthority,
    AskChallenge,
    Beat,
    CallSettled,
    Enrol,
    Finished,
    Hello,
    Leaving,
    NeedContents,
    Piece,
    ProgressReport,
    Prove,
    Renew,
    Renewed,
    RolledBack,
    TookBack,
    Up,
    pieces,
)
from palyra.features.workers.refusal_log import WorkerRefusalLog
from palyra.features.workers.renewals import Renewals
from palyra.store.database import Database
from palyra.system.clock import Clock

log = logging.getLogger("palyra.workers")

# What somebody who watches is shown of a call at once; the result has the rest.
_MOST_PROGRESS = 16 << 10


class Hearing:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        presence: Presence,
        refusals: WorkerRefusalLog,
        renewals: Renewals,
    ) -> None:
        self._db = db
        self._renewals = renewals
        self._clock = clock
        self._presence = presence
        self._refusals = refusals

    async def hear(self, station: Station, link: WorkerLink, said: Up) -> None:
        if station.link is not link:
            return  # The word of a link that was replaced.
        station.heard_ms = self._clock.ticks_ms()
        match said:
            case Beat(number=number):
                link.post(Acknowledged(number=number))
                self._presence.watch(station)
            case ProgressReport(call_id=call_id, attempt=attempt, text=text):
                held = await self._its_call(station, link, call_id)
                if held is not None and held.attempt == attempt:
                    held.progress(text[-_MOST_PROGRESS:])
            case NeedContents():
                self._ship(station, link, said)
            case Finished():
                await self._finished(station, link, said)
            case Piece():
                fetching = station.fetching.get(said.digest)
                if fetching is not None:
                    fetching.add(said)
            case RolledBack():
                rolling = station.rolling.get(said.call_id)
                if rolling is not None and not rolling.done():
                    rolling.set_result(said)
            case TookBack():
                taking = station.taking.get(said.ask_id)
                if taking is not None and not taking.done():
                    taking.set_result(said)
            case Renew(request=request):
                link.post(await self._renewed(station, request))
            case Leaving():
                station.leaving = True
                station.tell()
            case Hello() | AskAuthority() | AskChallenge() | Enrol() | Prove():
                raise InvalidInput("this belongs to the beginning of a link")
            case _:
                assert_never(said)

    async def _finished(self, station: Station, link: WorkerLink, said: Finished) -> None:
        held = await self._its_call(station, link, said.call_id)
        if held is not None and held.attempt == said.attempt:
            if not held.done.done():
                held.done.set_result(said)
            return
        row = await self._db.read(lambda tx: rows.find_lease(tx, said.call_id))
        if row is None or row.attempt != said.attempt or row.state not in ("done", "cancelled"):
            detail = f"attempt {said.attempt} ended with {said.outcome}, after its lease"
            self._refusals.note(
                "late_result",
                worker=station.name,
                address=link.address,
                call_id=said.call_id,
                detail=detail,
            )
        link.post(CallSettled(call_id=said.call_id, attempt=said.attempt))

    async def _its_call(
        self, station: Station, link: WorkerLink, call_id: str
    ) -> RemoteCall | None:
        """The call, if this worker holds it. Whoever speaks of another's call is refused, and its
        link is cut.
        """
        held = station.held.get(call_id)
        if held is not None:
            return held
        row = await self._db.read(lambda tx: rows.find_lease(tx, call_id))
        if row is not None and row.worker != station.name:
            detail = f"it is a call of {row.worker}"
            self._refusals.note(
                "not_its_call",
                worker=station.name,
                address=link.address,
                call_id=call_id,
                detail=detail,
            )
            raise Forbidden("this call is another worker's")
        return None

    async def _renewed(self, station: Station, request: str) -> Renewed:
        try:
            return Renewed(
                certificate=await self._renewals.sign(station.name, station.fingerprint, request)
            )
        except PalyraError as error:
            # Its link is as good as before: it works on, and asks again.
            log.warning("worker %s got no new certificate: %s", station.name, error.message)
            return Renewed(refused=error.message[:2_000])

    def _ship(self, station: Station, link: WorkerLink, said: NeedContents) -> None:
        held = station.held.get(said.call_id)
        if held is None or held.attempt != said.attempt:
            return
        contents = [(each, held.contents[each]) for each in said.digests if each in held.contents]
        # Beside what is heard meanwhile: two that only send would wait for each other for ever.
        task = asyncio.create_task(_send_all(link, contents))
        station.sending.add(task)
        task.add_done_callback(station.sending.discard)


async def _send_all(link: WorkerLink, contents: Sequence[tuple[str, bytes]]) -> None:
    for known, content in contents:
        for piece in pieces(known, content):
            await link.send(piece)
