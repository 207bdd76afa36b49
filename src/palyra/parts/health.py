"""Who looks after the daemon: the watchdog with everything it looks at, and the doctor."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palyra import config
from palyra.config import Chosen, Config, Loaded
from palyra.parts.ground import Ground
from palyra.policy.store import PolicyStore
from palyra.runtime import doctor_daemon
from palyra.runtime.channels.late import LateChannels
from palyra.runtime.doctor import Check, Doctor
from palyra.runtime.doctor_daemon import Body
from palyra.runtime.incidents import Incidents
from palyra.runtime.mcp import Mcp
from palyra.runtime.memory import Memory
from palyra.runtime.notices import Notices
from palyra.runtime.routing import Models
from palyra.runtime.runs import Runs
from palyra.runtime.tasks import Tasks
from palyra.runtime.tls.certificates import Certificates
from palyra.runtime.watchdog import Healing, Watchdog
from palyra.runtime.watchdog_chain import ChainWatched
from palyra.runtime.watchdog_channels import ChannelsWatched
from palyra.runtime.watchdog_helpers import BrowsersWatched, ServersWatched
from palyra.runtime.watchdog_resources import ResourcesWatched
from palyra.runtime.watchdog_runs import ApprovalsWatched, RunsWatched, TasksWatched
from palyra.runtime.watchdog_workers import WorkersWatched
from palyra.runtime.workers.workers import Workers
from palyra.tools.browser import finding
from palyra.tools.catalogue import Catalogue
from palyra.tools.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from palyra.tools.browser.browsers import Browsers

_JOURNAL = "journal.db"
# What a provider is given for its own limit to end a silent call, before anybody else does.
_AFTER_PROVIDER_MS = 30_000


def healing(given: Config, chosen: Chosen) -> Healing:
    wanted = given.healing
    remote = [each.timeout_ms for each in chosen.providers.values() if each.kind not in ("demo", "scripted")]
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


class Health:
    """The watchdog and the doctor of one daemon."""

    def __init__(
        self,
        ground: Ground,
        chosen: Chosen,
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
        body = Body(
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
        return Doctor(ground.db, doctor_daemon.looks(body), doctor_daemon.mends(body))


def settings(home: Path, env: Mapping[str, str]) -> Iterator[Check]:
    """The config as it is on disk now, which the daemon may not have read yet."""
    problems = config.check(home, env)
    for at, problem in enumerate(problems):
        fix = f"unset {problem.where}, or give it another value" if problem.where in env else f"edit {home / config.FILE}"
        yield Check(id=f"config:{at}", title="config", state="fail", detail=str(problem), fix=fix)
    if problems:
        return
    yield Check(id="config", title="config", state="ok", detail="valid")
    for at, note in enumerate(config.load(home, env).notes):
        yield Check(id=f"config:note{at}", title="config", state="warn", detail=note)


def browser(given: Config, env: Mapping[str, str]) -> Iterator[Check]:
    found = finding.find(env, given.browser.chromium)
    if not given.browser.enabled:
        yield Check(id="browser", title="browser", state="ok", detail="switched off by browser.enabled")
    elif isinstance(found, finding.Installed):
        yield Check(id="browser", title="browser", state="ok", detail=f"{found.chromium}, in the sandbox")
    else:
        # Nobody needs one; but who installed Playwright or named a Chromium wants one.
        wanted = found != finding.NO_PLAYWRIGHT
        detail = f"not offered: {found.what}"
        yield Check(id="browser", title="browser", state="warn" if wanted else "ok", detail=detail, fix=found.fix)
