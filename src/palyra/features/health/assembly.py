"""The watchdog with everything it looks at, and the doctor, for the features that are there."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from palyra.agent.runs import Runs
from palyra.features.backups.health import BackupsWatched
from palyra.features.backups.health import check as backup_check
from palyra.features.backups.service import Backups
from palyra.features.channels.health import ChannelsWatched
from palyra.features.channels.lazy import LateChannels
from palyra.features.health import daemon_checks
from palyra.features.health.chain import ChainWatched
from palyra.features.health.daemon_checks import BrowsersWatched, CheckSubjects, ServersWatched
from palyra.features.health.doctor import Doctor, DoctorCheck
from palyra.features.health.incidents import Incidents
from palyra.features.health.load import LoadHistory
from palyra.features.health.resources import ResourcesWatched
from palyra.features.health.runs import ApprovalsWatched, RunsWatched, TasksWatched
from palyra.features.health.watchdog import Healing, Watchdog
from palyra.features.mcp.service import Mcp
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.proof.anchors import Anchors
from palyra.features.proof.health import ProofWatched
from palyra.features.proof.service import JournalProof
from palyra.features.proof.witness import Witness
from palyra.features.tasks.worker import Tasks
from palyra.features.tls.service import Certificates
from palyra.features.wiring import Wiring
from palyra.features.workers.health import WorkersWatched
from palyra.features.workers.service import Workers
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.store.database import Database
from palyra.store.upkeep import Upkeep
from palyra.system.clock import Clock
from palyra.tools.browser.port import BrowserPool
from palyra.tools.catalogue import Catalogue
from palyra.tools.sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class ConfigChecks:
    """Checks that only the reader of the configuration can make. `demo` names the model that stands
    in where none is configured.
    """

    demo: str
    settings: Callable[[], Iterable[DoctorCheck]]
    browser: Callable[[], Iterable[DoctorCheck]]


class HealthParts:
    """The watchdog and the doctor of one daemon."""

    def __init__(self, w: Wiring) -> None:
        db, clock, runs = w.get(Database), w.get(Clock), w.get(Runs)
        sandbox, catalogue = w.get(Sandbox), w.get(Catalogue)
        self._w = w
        self.watchdog = watchdog = Watchdog(w.get(Incidents), clock, w.settings.get(Healing))
        self._chain = ChainWatched(db, w.get(Upkeep))
        resources = ResourcesWatched(db, clock, w.home, w.journal, sandbox.mark, watchdog)
        resources.begin()
        # A disk that refuses or does not answer is told of at once, and not at the next look.
        db.standing.on_trouble.connect(lambda: watchdog.alarm(resources.refusal()))
        watchdog.sources["run"] = RunsWatched(db, runs, catalogue, watchdog).look
        watchdog.sources["approval"] = ApprovalsWatched(db, w.get(Notices), watchdog).look
        if tasks := w.find(Tasks):
            watchdog.sources["task"] = TasksWatched(db, tasks, watchdog).look
        if mcp := w.find(Mcp):
            watchdog.sources["mcp"] = ServersWatched(mcp, watchdog).look
        late = w.find(LateChannels)
        self._channels = ChannelsWatched(late, watchdog) if late is not None else None
        if self._channels is not None:
            watchdog.sources["channel"] = self._channels.look
        if workers := w.find(Workers):
            watchdog.sources["worker"] = WorkersWatched(workers, watchdog).look
        if proof := w.find(JournalProof):
            watched = ProofWatched(proof, w.get(Anchors), db, w.find(Witness))
            watchdog.sources["proof"] = watched.look
        self._backups = w.find(Backups)
        if self._backups is not None:
            watchdog.sources["backup"] = BackupsWatched(self._backups).look
        watchdog.sources["resource"] = resources.look
        watchdog.sources["chain"] = self._chain.look
        self.load = LoadHistory(db, clock, runs, w.home, w.get(Upkeep))
        watchdog.sources["load"] = self.load.look
        if (pool := w.find(BrowserPool)) is not None:
            watchdog.sources["browser"] = BrowsersWatched(db, pool.browsers).look

    def doctor(self) -> Doctor:
        w, watchdog, channels = self._w, self.watchdog, self._channels
        workers, certificates = w.find(Workers), w.find(Certificates)
        config = w.settings.get(ConfigChecks)
        subjects = CheckSubjects(
            home=w.home,
            journal=w.get(Upkeep),
            clock=w.get(Clock),
            models=w.get(Models),
            policy=w.get(PolicyStore),
            sandbox=w.get(Sandbox),
            memory=w.find(Memory),
            mcp=w.find(Mcp),
            incidents=w.get(Incidents),
            demo=config.demo,
            settings=config.settings,
            browser=config.browser,
            channels=channels.checks if channels else _nothing,
            reconnect=channels.restart if channels else _no_channels,
            workers=workers.checks if workers else _nobody,
            certificate=certificates.checks if certificates else _nothing,
            backups=self._backup_checks if self._backups else _nothing,
            chain=self._chain.check,
            writable=w.get(Database).problem,
            watchdog=watchdog.check,
            treat=watchdog.treat,
            treatable=lambda: watchdog.treatable,
        )
        looks, mends = daemon_checks.looks(subjects), daemon_checks.mends(subjects)
        return Doctor(w.get(Database), looks, mends)

    def _backup_checks(self) -> Iterable[DoctorCheck]:
        assert self._backups is not None
        of_home, now_ms = self._backups.of_home, self._w.get(Clock).now_ms()
        return backup_check(of_home.settings, of_home.status, now_ms)


def _nothing() -> Iterable[DoctorCheck]:
    return ()


async def _nobody() -> Sequence[DoctorCheck]:
    return ()


def _no_channels(name: str, by: str) -> Awaitable[str]:
    raise AssertionError("a daemon without channels reports none to reconnect")
