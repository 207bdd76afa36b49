"""Checks of a running daemon: its models, policies, sandbox, servers and open incidents, in
addition to what its files show.

Looks of the watchdog at the processes that work for the daemon: MCP servers and browsers.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from palyra.core import run_state
from palyra.core.ids import OWNER, SYSTEM
from palyra.features.health import home_checks
from palyra.features.health.doctor import DoctorCheck, Look, Mend, State
from palyra.features.health.incidents import Incidents
from palyra.features.health.watchdog import HealthFinding, LookTime, Remedy, Watchdog
from palyra.features.mcp.service import Mcp
from palyra.features.memory.service import Memory
from palyra.models.routing import Models
from palyra.policy import store
from palyra.policy.store import PolicyStore
from palyra.store import runs
from palyra.store.database import Database, Tx
from palyra.store.upkeep import Upkeep
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday
from palyra.tools.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from palyra.tools.browser.pool import Browsers, InUse

# So many calls in a row without an answer in time are no accident.
MOST_LATE = 2


class ServersWatched:
    """MCP servers that are away for too long, or hang. One that is away for a moment comes back by
    itself.
    """

    def __init__(self, mcp: Mcp, watchdog: Watchdog) -> None:
        self._mcp = mcp
        self._watchdog = watchdog
        self._away_ms: dict[str, int] = {}

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        before, self._away_ms = self._away_ms, {}
        found = []
        for each in self._mcp.status():
            settings = self._watchdog.settings
            if each.state == "ready" and each.late >= MOST_LATE:
                found.append(
                    self._finding(
                        each.name,
                        f"has not answered the last {each.late} calls in time",
                        settings.helper_ms,
                    )
                )
            if each.state in ("ready", "disabled"):
                continue
            away_ms = before[each.name] + moment.passed_ms if each.name in before else 0
            self._away_ms[each.name] = away_ms
            # One whose connection has ended for good does not come back, however long one waits.
            certain = each.state in ("failed", "stopped") or away_ms >= settings.helper_ms
            what = f"is away: {each.detail or each.state}"
            found.append(self._finding(each.name, what, settings.helper_ms, certain=certain))
        return found

    def _finding(
        self, name: str, what: str, wait_ms: int, *, certain: bool = True
    ) -> HealthFinding:
        return HealthFinding(
            key=f"mcp:{name}",
            domain="worker",
            summary=f"the MCP server {name} {what}",
            fix=f"palyra mcp show {name}",
            remedies=(Remedy("restart the server", partial(self._restart, name), wait_ms=wait_ms),),
            certain=certain,
        )

    async def _restart(self, name: str) -> str:
        return f"it was restarted, and is {(await self._mcp.restart(SYSTEM, name)).state}"


class BrowsersWatched:
    """Browsers that died, and those whose run has ended."""

    def __init__(self, db: Database, browsers: "Browsers") -> None:
        self._db = db
        self._browsers = browsers

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        died, self._browsers.deaths = self._browsers.deaths, []
        found = [self._died(each) for each in died]
        used = self._browsers.in_use()
        if not used:
            return found
        over = await self._db.read(lambda tx: _over(tx, [each.run_id for each in used]))
        useless = [
            self._useless(each, leaked=each.run_id in over)
            for each in used
            if not each.running or each.run_id in over
        ]
        return [*found, *useless]

    def _died(self, used: "InUse") -> HealthFinding:
        """Report a browser that died in use. It was replaced in the same moment, so the incident is
        over when it is told.
        """
        return HealthFinding(
            key=f"browser:{used.session_id}:{used.pid}",
            domain="browser",
            summary=(
                f"the browser of session {used.session_id} has died, and another one took its place"
            ),
            fix="if it happens often: see the daemon's log, and the memory of the machine",
            remedies=(),
        )

    def _useless(self, used: "InUse", *, leaked: bool) -> HealthFinding:
        what = "is still open, though its run has ended" if leaked else "has died"

        async def close() -> str:
            await self._browsers.end(used.session_id)
            return "it was closed; the next page opens another"

        return HealthFinding(
            key=f"browser:{used.session_id}:{used.pid}",
            domain="browser",
            summary=f"the browser of session {used.session_id} {what}",
            fix="it is closed when the daemon stops",
            remedies=(Remedy("close the browser", close),),
        )


def _over(tx: Tx, run_ids: list[str]) -> set[str]:
    """Return those of these runs that have ended."""
    found = [(run_id, runs.find(tx, run_id)) for run_id in run_ids]
    return {run_id for run_id, run in found if run is None or run.state in run_state.TERMINAL}


_WORST: dict[str, State] = {"info": "ok", "warning": "warn", "error": "fail", "critical": "fail"}


@dataclass(frozen=True)
class CheckSubjects:
    """Subjects of the doctor's checks. `settings` and `browser` are asked of whoever reads the
    configuration.
    """

    home: Path
    journal: Upkeep
    clock: Clock
    models: Models
    policy: PolicyStore
    sandbox: Sandbox
    memory: Memory | None
    mcp: Mcp | None
    incidents: Incidents
    # The name of the model that stands in where none is configured.
    demo: str
    settings: Callable[[], Iterable[DoctorCheck]]
    browser: Callable[[], Iterable[DoctorCheck]]
    channels: Callable[[], Iterable[DoctorCheck]]
    # Connects a channel anew, in somebody's name, and says what came of it.
    reconnect: Callable[[str, str], Awaitable[str]]
    workers: Callable[[], Awaitable[Sequence[DoctorCheck]]]
    certificate: Callable[[], Iterable[DoctorCheck]]
    backups: Callable[[], Iterable[DoctorCheck]]
    # How the background check of the journal stands: how far, of how many, and what it found.
    chain: Callable[[], DoctorCheck]
    # Why nothing can be written to the journal now, or nothing.
    writable: Callable[[], Awaitable[str]]
    watchdog: Callable[[], DoctorCheck]
    # Tries the remedy of an open incident now, whatever the mode, and says what came of it.
    treat: Callable[[str], Awaitable[str]]
    # Of open incidents, by key: those for which there is something that can be tried.
    treatable: Callable[[], Iterable[str]]


def looks(body: CheckSubjects) -> Mapping[str, Look]:
    """Return the looks, in the order in which they are shown."""
    home, journal = body.home, body.journal
    return {
        "installation": _files(home_checks.installation),
        "sqlite": _files(home_checks.sqlite),
        "home folder": _files(partial(home_checks.home_folder, home)),
        "disk": _files(partial(home_checks.disk, home)),
        "config": _files(body.settings),
        "model": partial(_models, body),
        "policy": partial(_policy, body),
        "sandbox": partial(_sandbox, body),
        "browser": _files(body.browser),
        "memory": partial(_memory, body),
        "MCP servers": partial(_servers, body),
        "channels": partial(_channels, body),
        "workers": lambda deep: body.workers(),
        "certificate": _files(body.certificate),
        "journal": partial(_journal, body),
        "journal's disk": partial(_writable, body),
        "journal's log": _files(partial(home_checks.journal_log, journal.path)),
        "backups": _files(body.backups),
        "left over": _files(lambda: home_checks.left_over(home, body.clock.now_ms())),
        "processes": _files(lambda: home_checks.orphaned(home, body.sandbox.mark)),
        "watchdog": partial(_watchdog, body),
        "incidents": partial(_incidents, body),
    }


def mends(body: CheckSubjects) -> Mapping[str, Mend]:
    """Return the repairs, by the first word of a check's id."""
    home = body.home

    async def server(check: DoctorCheck) -> str:
        name = check.id.partition(":")[2]
        assert body.mcp is not None
        await body.mcp.restart(OWNER, name)
        return f"the MCP server {name} was restarted"

    async def channel(check: DoctorCheck) -> str:
        return await body.reconnect(check.id.partition(":")[2], OWNER)

    async def incident(check: DoctorCheck) -> str:
        return await body.treat(check.id.partition(":")[2])

    return {
        "home": _by_files(lambda: home_checks.close_home(home)),
        "leftovers": _by_files(lambda: home_checks.remove_leftovers(home, body.clock.now_ms())),
        "processes": _by_files(lambda: home_checks.end_orphans(home, body.sandbox.mark)),
        "log": _by_files(lambda: home_checks.fold(body.journal.path)),
        "mcp": server,
        "channel": channel,
        "incident": incident,
    }


def _files(look: Callable[[], Iterable[DoctorCheck]]) -> Look:
    """A check that reads files, off the event loop."""

    async def looked(_: bool) -> Sequence[DoctorCheck]:
        return await everyday.run(lambda: list(look()))

    return looked


def _by_files(mend: Callable[[], str]) -> Mend:
    async def mended(_: DoctorCheck) -> str:
        return await everyday.run(mend)

    return mended


async def _models(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    default = body.models.targets[0].name
    is_demo = default == body.demo
    fix = (
        "`palyra setup` finds a real one: a server on this machine, or a key such as OPENAI_API_KEY"
        if is_demo
        else ""
    )
    detail = f"{default} is the daemon's default" + (
        ", which only knows a few phrases" if is_demo else ""
    )
    found = [
        DoctorCheck(
            id="model", title="model", state="warn" if is_demo else "ok", detail=detail, fix=fix
        )
    ]
    for name, healthy in body.models.health(body.clock.now_ms()).items():
        if not healthy:
            fix = "look at logs/daemon.log in the home folder; `palyra doctor --online` asks it"
            detail = "failed lately and is not asked for now"
            found.append(
                DoctorCheck(
                    id=f"model:{name}",
                    title=f"provider {name}",
                    state="warn",
                    detail=detail,
                    fix=fix,
                )
            )
    return found


async def _policy(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    policy = body.policy
    problems = await everyday.run(store.check, policy.folder, policy.preset)
    fix = "fix the file; until then the last good set is in force"
    found = [
        DoctorCheck(id=f"policy:{at}", title="policy", state="fail", detail=str(each), fix=fix)
        for at, each in enumerate(problems)
    ]
    detail = f"preset {policy.preset}, files in {policy.folder} load"
    return found or [DoctorCheck(id="policy", title="policy", state="ok", detail=detail)]


async def _sandbox(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    return [home_checks.sandbox(await body.sandbox.probe())]


async def _memory(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    if body.memory is None:
        return []
    embedding = body.memory.embedding
    if not embedding.wanted:
        return [
            DoctorCheck(
                id="memory",
                title="memory",
                state="ok",
                detail="searched by words only, as the config says",
            )
        ]
    if embedding.why_not:
        fix = "see logs/daemon.log in the home folder, or set memory.embeddings to false"
        detail = f"searched by words only: {embedding.why_not}"
        return [DoctorCheck(id="memory", title="memory", state="warn", detail=detail, fix=fix)]
    return [
        DoctorCheck(
            id="memory", title="memory", state="ok", detail="searched by words and by meaning"
        )
    ]


async def _servers(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    found = []
    for each in body.mcp.status() if body.mcp is not None else ():
        known, title = f"mcp:{each.name}", f"MCP server {each.name}"
        if each.state in ("waiting", "failed", "stopped"):
            fix = f"palyra mcp show {each.name}"
            detail = each.detail or each.state
            found.append(
                DoctorCheck(
                    id=known, title=title, state="fail", detail=detail, fix=fix, repairable=True
                )
            )
        elif each.pending:
            detail = f"{each.state}, {len(each.pending)} of its tools need to be accepted"
            found.append(
                DoctorCheck(
                    id=known,
                    title=title,
                    state="warn",
                    detail=detail,
                    fix=f"palyra mcp accept {each.name}",
                )
            )
        else:
            found.append(
                DoctorCheck(
                    id=known,
                    title=title,
                    state="ok",
                    detail=f"{each.state}, {len(each.tools)} tools",
                )
            )
    return found


async def _channels(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    return list(body.channels())


async def _journal(body: CheckSubjects, deep: bool) -> Sequence[DoctorCheck]:
    if deep:
        return await everyday.run(lambda: list(home_checks.journal(body.journal)))
    return [body.chain()]


async def _writable(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    problem = await body.writable()
    if problem:
        fix = "see what is wrong with the disk; what is under way waits, and goes on by itself"
        return [
            DoctorCheck(
                id="store",
                title="journal's disk",
                state="fail",
                detail=f"nothing can be written: {problem}",
                fix=fix,
            )
        ]
    return [DoctorCheck(id="store", title="journal's disk", state="ok", detail="can be written")]


async def _watchdog(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    return [body.watchdog()]


async def _incidents(body: CheckSubjects, _: bool) -> Sequence[DoctorCheck]:
    treatable = set(body.treatable())
    found = []
    for each in await body.incidents.current():
        tried = f"; tried: {', '.join(one.remedy for one in each.tried)}" if each.tried else ""
        found.append(
            DoctorCheck(
                id=f"incident:{each.incident_id}",
                title=f"incident ({each.domain})",
                state=_WORST[each.severity],
                detail=each.summary + tried,
                fix=each.fix,
                repairable=each.key in treatable,
            )
        )
    return found or [DoctorCheck(id="incidents", title="incidents", state="ok", detail="none open")]
