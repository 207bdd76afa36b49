"""The workers of this daemon in one piece: who they are, who is there, what they are given, and
what they offer.

What a connected worker says, and what is done about it. Nothing that it says is believed about
calls that it does not hold.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from palyra.agent.remote_tools import PREFIX
from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.tools import Tier
from palyra.features.health.doctor import DoctorCheck
from palyra.features.tls.rows import Certificate
from palyra.features.tls.service import Certificates
from palyra.features.workers import rows
from palyra.features.workers import tools as workers_tools
from palyra.features.workers.connection import RemoteCall, Station, WorkerLink
from palyra.features.workers.dispatch import Dispatcher
from palyra.features.workers.enrolment import EnrolmentService, Renewals, WorkerShown
from palyra.features.workers.presence import Presence, WorkerRefusalLog
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
from palyra.features.workers.rows import WorkerRow
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.paths import PathGuard

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


_DAY_MS = 86_400_000
_EXPIRES_SOON_MS = 30 * _DAY_MS


class WorkerSettings(Struct, frozen=True):
    """`lease_ms`: so long a worker keeps its calls without being heard of."""

    lease_ms: int


class Workers:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        certificates: Certificates,
        catalogue: Catalogue,
        fence: PathGuard,
        *,
        lease_ms: int,
    ) -> None:
        self._clock = clock
        self._catalogue = catalogue
        self._fence = fence
        # Our own tools, which say what a worker's are: taken before any worker offers one.
        self._own: dict[str, TypedTool] = {
            spec.name: catalogue.get(spec.name) for spec in catalogue.specs()
        }
        self._offered: dict[str, tuple[tuple[str, ...], Tier]] = {}
        self.refusals = WorkerRefusalLog(db, clock)
        self.presence = Presence(db, clock, self.refusals, lease_ms=lease_ms)
        self.crew = Dispatcher(db, clock, self.presence)
        renewals = Renewals(db, clock, certificates)
        self.presence.renew_in_ms = renewals.due_in_ms
        self.hearing = Hearing(db, clock, self.presence, self.refusals, renewals)
        self.desk = EnrolmentService(
            db, clock, certificates, self.presence, self.refusals, renewals
        )
        self.presence.on_offer.connect(self._offer)
        self.desk.on_change.connect(self._offer)
        certificates.on_revoked.connect(self._revoked)

    async def start(self) -> None:
        await self.presence.start()

    def halt(self) -> None:
        self.presence.halt()

    def close(self) -> None:
        self.presence.close()

    def _revoked(self, certificate: Certificate) -> None:
        """Disconnect whoever was let in with it, whichever way it was revoked."""
        station = self.presence.stations.get(certificate.name)
        if station is not None and station.link is not None:
            station.link.close()

    def _offer(self, row: WorkerRow) -> None:
        """Offer a worker's tools, also while it is away: a call waits for it for a moment."""
        offered = row.tools if row.state != "revoked" else ()
        if self._offered.get(row.name, ((), "none")) == (offered, row.tier):
            return  # A link that comes and goes is no new offer.
        self._offered[row.name] = (offered, row.tier)
        own: Callable[[str], TypedTool | None] = self._own.get
        tools = workers_tools.tools(row.name, offered, row.tier, own, self.crew, self._fence)
        self._catalogue.renew(f"{PREFIX}{row.name}", tools)

    @property
    def connected(self) -> int:
        return sum(station.link is not None for station in self.presence.stations.values())

    @property
    def held(self) -> int:
        return sum(len(station.held) for station in self.presence.stations.values())

    async def checks(self) -> list[DoctorCheck]:
        return [each for shown in await self.desk.listing() for each in self._checked(shown)]

    def _checked(self, shown: WorkerShown) -> Iterator[DoctorCheck]:
        about, title = f"worker:{shown.name}", f"worker {shown.name}"
        if shown.state == "revoked":
            return
        left_ms = shown.certificate_expires_ms - self._clock.now_ms()
        ends = (
            f"its certificate ends in {left_ms // _DAY_MS} days"
            if left_ms < _EXPIRES_SOON_MS
            else ""
        )
        if left_ms <= 0:
            fix = f"palyra workers revoke {shown.name}, then enrol it again"
            yield DoctorCheck(
                id=about, title=title, state="warn", detail="its certificate has expired", fix=fix
            )
        elif not shown.connected:
            fix = "start `palyra worker run` on its machine, or `palyra workers revoke` it"
            detail = (
                f"not connected, and {ends}; it gets its next one when it connects"
                if ends
                else "not connected"
            )
            yield DoctorCheck(id=about, title=title, state="warn", detail=detail, fix=fix)
        elif ends:
            fix = (
                f"look at its worker.log and install the same palyra there; or revoke {shown.name}"
                " and enrol it again"
            )
            yield DoctorCheck(
                id=about, title=title, state="warn", detail=f"{ends} and was not renewed", fix=fix
            )
        else:
            how = ", being drained" if shown.state == "draining" else ""
            detail = (
                f"connected, tier {shown.tier}, {len(shown.running)} of {shown.slots} places"
                f" busy{how}"
            )
            yield DoctorCheck(id=about, title=title, state="ok", detail=detail)
