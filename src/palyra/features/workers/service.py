"""The workers of this daemon in one piece: who they are, who is there, what they are given, and
what they offer.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from palyra.agent.remote_tools import PREFIX
from palyra.core.tools import Tier
from palyra.features.health.doctor import DoctorCheck
from palyra.features.tls.rows import Certificate
from palyra.features.tls.service import Certificates
from palyra.features.workers import tools as workers_tools
from palyra.features.workers.dispatch import Dispatcher
from palyra.features.workers.enrolment import EnrolmentService, WorkerShown
from palyra.features.workers.message_handler import Hearing
from palyra.features.workers.presence import Presence
from palyra.features.workers.refusal_log import WorkerRefusalLog
from palyra.features.workers.renewals import Renewals
from palyra.features.workers.rows import WorkerRow
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.paths import PathGuard

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
        self.presence.on_offer = self.desk.on_change = self._offer
        certificates.on_revoked.append(self._revoked)

    async def start(self) -> None:
        await self.presence.start()

    def halt(self) -> None:
        self.presence.halt()

    def close(self) -> None:
        self.presence.close()

    def _revoked(self, certificate: Certificate) -> None:
        """Whoever was let in with it is put out, whichever way it was revoked."""
        station = self.presence.stations.get(certificate.name)
        if station is not None and station.link is not None:
            station.link.close()

    def _offer(self, row: WorkerRow) -> None:
        """What a worker has is on offer, also while it is away: a call waits for it for a
        moment.
        """
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
            fix = f"palyra workers revoke {shown.name}, then enrol it anew"
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
                " and enrol it anew"
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
