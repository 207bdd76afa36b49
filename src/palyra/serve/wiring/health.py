"""Who looks after the daemon: the watchdog with everything it looks at, and the doctor."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palyra.agent.runs import Runs
from palyra.features.channels.health import ChannelsWatched
from palyra.features.channels.lazy import LateChannels
from palyra.features.health import daemon_checks
from palyra.features.health.chain import ChainWatched
from palyra.features.health.daemon_checks import CheckSubjects
from palyra.features.health.doctor import Doctor, DoctorCheck
from palyra.features.health.helpers import BrowsersWatched, ServersWatched
from palyra.features.health.incidents import Incidents
from palyra.features.health.resources import ResourcesWatched
from palyra.features.health.runs import ApprovalsWatched, RunsWatched, TasksWatched
from palyra.features.health.watchdog import Healing, Watchdog
from palyra.features.mcp.service import Mcp
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.tasks.worker import Tasks
from palyra.features.tls.service import Certificates
from palyra.features.workers.health import WorkersWatched
from palyra.features.workers.service import Workers
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.serve import config
from palyra.serve.config import ChosenModels, Config, Loaded
from palyra.serve.wiring.foundation import Foundation
from palyra.tools.browser import discovery
from palyra.tools.catalogue import Catalogue
from palyra.tools.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from palyra.tools.browser.pool import Browsers

_JOURNAL = "journal.db"
# What a provider is given for its own limit to end a silent call, before anybody else does.
_AFTER_PROVIDER_MS = 30_000


def healing(given: Config, chosen: ChosenModels) -> Healing:
    wanted = given.healing
    remote = [
        each.timeout_ms
        for each in chosen.providers.values()
        if each.kind not in ("demo", "scripted")
    ]
    return Healing(
        mode=wanted.mode,
        every_ms=wanted.every_ms,
        run_ms=wanted.run_ms,
        call_ms=max(remote) + _AFTER_PROVIDER_MS if remote else 0,
        task_ms=wanted.task_ms,
        helper_ms=wanted.helper_ms,
        approval_ms=wanted.approval_ms,
        forgotten=wanted.forgotten,
        free_bytes=wanted.free_mb << 20,
        log_bytes=wanted.log_mb << 20,
    )


class HealthParts:
    """The watchdog and the doctor of one daemon."""

    def __init__(
        self,
        ground: Foundation,
        chosen: ChosenModels,
        notices: Notices,
        incidents: Incidents,
        *,
        runs: Runs,
        tasks: Tasks,
        catalogue: Catalogue,
        sandbox: Sandbox,
        mcp: Mcp,
        browsers: "Browsers | None",
        channels: LateChannels,
        workers: Workers,
    ) -> None:
        home, db, clock = ground.home, ground.db, ground.clock
        self._ground, self._chosen, self._incidents = ground, chosen, incidents
        self._sandbox, self._mcp, self._workers = sandbox, mcp, workers
        self.watchdog = watchdog = Watchdog(incidents, clock, healing(ground.config, chosen))
        self.channels = ChannelsWatched(channels, watchdog)
        self.chain = ChainWatched(db, home / _JOURNAL)
        resources = ResourcesWatched(db, clock, home, home / _JOURNAL, sandbox.mark, watchdog)
        resources.begin()
        # A disk that refuses or does not answer is told of at once, and not at the next look.
        db.standing.on_trouble = lambda: watchdog.alarm(resources.refusal())
        watchdog.sources |= {
            "run": RunsWatched(db, runs, catalogue, watchdog).look,
            "approval": ApprovalsWatched(db, notices, watchdog).look,
            "task": TasksWatched(db, tasks, watchdog).look,
            "mcp": ServersWatched(mcp, watchdog).look,
            "channel": self.channels.look,
            "worker": WorkersWatched(workers, watchdog).look,
            "resource": resources.look,
            "chain": self.chain.look,
        }
        if browsers is not None:
            watchdog.sources["browser"] = BrowsersWatched(db, browsers).look

    def doctor(
        self,
        loaded: Loaded,
        env: Mapping[str, str],
        models: Models,
        policy: PolicyStore,
        memory: Memory,
        certificates: Certificates,
    ) -> Doctor:
        ground, watchdog = self._ground, self.watchdog
        body = CheckSubjects(
            home=ground.home,
            journal=ground.home / _JOURNAL,
            clock=ground.clock,
            models=models,
            policy=policy,
            sandbox=self._sandbox,
            memory=memory,
            mcp=self._mcp,
            incidents=self._incidents,
            demo=config.DEMO,
            settings=lambda: settings(loaded.home, env),
            browser=lambda: browser(loaded.config, env),
            channels=self.channels.checks,
            reconnect=self.channels.restart,
            workers=self._workers.checks,
            certificate=certificates.checks,
            chain=self.chain.check,
            writable=ground.db.problem,
            watchdog=watchdog.check,
            treat=watchdog.treat,
            treatable=lambda: watchdog.treatable,
        )
        return Doctor(ground.db, daemon_checks.looks(body), daemon_checks.mends(body))


def settings(home: Path, env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """The config as it is on disk now, which the daemon may not have read yet."""
    problems = config.check(home, env)
    for at, problem in enumerate(problems):
        fix = (
            f"unset {problem.where}, or give it another value"
            if problem.where in env
            else f"edit {home / config.FILE}"
        )
        yield DoctorCheck(
            id=f"config:{at}", title="config", state="fail", detail=str(problem), fix=fix
        )
    if problems:
        return
    yield DoctorCheck(id="config", title="config", state="ok", detail="valid")
    for at, note in enumerate(config.load(home, env).notes):
        yield DoctorCheck(id=f"config:note{at}", title="config", state="warn", detail=note)


def browser(given: Config, env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    found = discovery.find(env, given.browser.chromium)
    if not given.browser.enabled:
        yield DoctorCheck(
            id="browser", title="browser", state="ok", detail="switched off by browser.enabled"
        )
    elif isinstance(found, discovery.Installed):
        yield DoctorCheck(
            id="browser", title="browser", state="ok", detail=f"{found.chromium}, in the sandbox"
        )
    else:
        # Nobody needs one; but who installed Playwright or named a Chromium wants one.
        wanted = found != discovery.NO_PLAYWRIGHT
        detail = f"not offered: {found.what}"
        yield DoctorCheck(
            id="browser",
            title="browser",
            state="warn" if wanted else "ok",
            detail=detail,
            fix=found.fix,
        )
