"""The watchdog: one timer that looks at everything every so often, opens an incident for what is
wrong, and tries to mend it.

Three rules. What is wrong is one incident, however often it is seen. A remedy is on the tape before
its effect, and one that did not help so many times is not tried again: the owner is told instead.
And nothing is concluded from a look that could not see.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import Struct

from palyra.core.errors import Conflict, NotFound, PalyraError, Unavailable
from palyra.core.events import Domain, NoticeAbout, Severity
from palyra.features.health.doctor import DoctorCheck
from palyra.features.health.incidents import ESCALATED, Incidents
from palyra.features.health.rows import Incident
from palyra.system.clock import Clock

log = logging.getLogger("palyra.watchdog")

Mode = Literal["disabled", "observe_only", "auto"]
TRIES = 3
_LONGEST_REMEDY_S = 60.0


class Healing(Struct, frozen=True, kw_only=True):
    """Settings of the watchdog. Times are how long something may be silent before it counts as
    stuck.
    """

    mode: Mode = "auto"
    every_ms: int = 30_000
    run_ms: int = 120_000
    # Of a model call, where a provider is given longer than that.
    call_ms: int = 0
    task_ms: int = 120_000
    helper_ms: int = 120_000
    approval_ms: int = 600_000
    forgotten: Literal["remind", "expire"] = "remind"
    free_bytes: int = 200 << 20
    log_bytes: int = 64 << 20


@dataclass(frozen=True)
class Remedy:
    """`apply` says what it did, or raises. What it is for must be gone after `wait_ms`; else it did
    not help.
    """

    name: str
    apply: Callable[[], Awaitable[str]]
    wait_ms: int = 0


class IncidentNotice(NamedTuple):
    """The notice that goes with an incident, where it is not the usual one."""

    about: NoticeAbout
    key: str
    text: str
    link: str
    to: str


@dataclass(frozen=True)
class HealthFinding:
    """Problem, by a key that begins with the name of who found it.

    `certain` is False while it may still turn out well: then no incident is opened for it, and one
    that is open stays. `remedies` are tried one after the other, the last one again, `tries` in
    all. `stays`: a remedy does not make this go away.
    """

    key: str
    domain: Domain
    summary: str
    severity: Severity = "warning"
    fix: str = ""
    remedies: tuple[Remedy, ...] = ()
    tries: int = TRIES
    certain: bool = True
    stays: bool = False
    told: IncidentNotice | None = None


class LookTime(NamedTuple):
    """Time of a look, and the time passed since the last one. A clock that jumped or a machine that
    slept count little.
    """

    now_ms: int
    passed_ms: int


Source = Callable[[LookTime], Awaitable[Sequence[HealthFinding]]]


class Watchdog:
    """`sources` look, by name. Connectors and workers add theirs."""

    def __init__(self, incidents: Incidents, clock: Clock, settings: Healing) -> None:
        self._incidents = incidents
        self._clock = clock
        self.settings = settings
        self.sources: dict[str, Source] = {}
        self._looked_ms = clock.now_ms()
        self._found: dict[str, HealthFinding] = {}
        # What could not be recorded when it was found, with how often first aid was given.
        self._unrecorded: dict[str, tuple[HealthFinding, int]] = {}
        self._looking = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None
        self._alarmed: asyncio.Task[None] | None = None

    def start(self) -> None:
        if (self._timer is None or self._timer.done()) and self.settings.mode != "disabled":
            self._timer = asyncio.create_task(self._run())

    def use(self, settings: Healing) -> None:
        """Use these settings from now on."""
        self.settings = settings
        if not self._looking.locked():
            # A look that is under way is left to its end: it may be mending something.
            self.close()
        self.start()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._alarmed is not None:
            self._alarmed.cancel()

    async def _run(self) -> None:
        while self.settings.mode != "disabled":
            await self._clock.sleep(self.settings.every_ms)
            try:
                await self.look()
            except PalyraError as error:
                log.warning("what is wrong could not be looked at: %s", error.message)
            except Exception:
                # Whatever a look stumbles over, the next one is due.
                log.exception("a look at the daemon's health failed")

    async def look(self) -> None:
        """Look once, and mend what may be mended. What was mended at once is closed at once."""
        if self.settings.mode == "disabled":
            return
        async with self._looking:
            now_ms = self._clock.now_ms()
            passed_ms = min(max(0, now_ms - self._looked_ms), 2 * self.settings.every_ms)
            self._looked_ms = now_ms
            if await self._examine(LookTime(now_ms, passed_ms), treat=self.settings.mode == "auto"):
                await self._examine(LookTime(now_ms, 0), treat=False)

    def alarm(self, finding: HealthFinding | None) -> None:
        """Open an incident for this at once, in memory if the journal does not take it, and look at
        everything soon.
        """
        if finding is None or self.settings.mode == "disabled" or self._timer is None:
            return
        self._unrecorded.setdefault(finding.key, (finding, 0))
        self._in_mind(finding)
        self._alarmed = asyncio.create_task(self._look_now())

    async def _look_now(self) -> None:
        try:
            await self.look()
        except PalyraError as error:
            log.warning("what is wrong could not be looked at: %s", error.message)

    def _in_mind(self, finding: HealthFinding) -> None:
        self._incidents.keep_in_mind(
            finding.domain, finding.key, finding.summary, severity=finding.severity, fix=finding.fix
        )

    def _recorded(self, key: str) -> None:
        """The journal has this now."""
        self._unrecorded.pop(key, None)
        self._incidents.forget(key)

    async def _examine(self, moment: LookTime, *, treat: bool) -> bool:
        """Return whether anything was treated."""
        seeing, found = set(), dict[str, HealthFinding]()
        for name, source in self.sources.items():
            try:
                found.update({each.key: each for each in await source(moment)})
            except (PalyraError, OSError) as error:
                log.warning("the watchdog could not look at %s: %s", name, error)
                continue
            seeing.add(name)
        self._found = found
        await self._catch_up()
        opened = {each.key: each for each in await self._incidents.opened()}
        for key, incident in opened.items():
            if key not in found and key.partition(":")[0] in seeing:
                with _later(key):
                    await self._incidents.close(key, _over(incident))
        treated = False
        for finding in found.values():
            with _later(finding.key):
                its = opened.get(finding.key) or await self._open(finding, treat=treat)
                if its is not None:
                    self._recorded(finding.key)
                if treat and its is not None:
                    treated |= await self._treat(its, finding, moment)
        return treated

    async def _open(self, finding: HealthFinding, *, treat: bool) -> Incident | None:
        if not finding.certain:
            return None
        try:
            return await self._incidents.open(
                finding.domain,
                finding.key,
                finding.summary,
                severity=finding.severity,
                fix=finding.fix,
                told=finding.told,
            )
        except Unavailable as error:
            await self._hold(finding, error, treat=treat)
            return None

    async def _hold(self, finding: HealthFinding, error: PalyraError, *, treat: bool) -> None:
        """The journal takes nothing now. What is wrong is remembered here, and what may help is
        tried all the same.

        If it helped as far as that, the incident is opened after all, with what was tried.
        """
        _, tries = self._unrecorded.get(finding.key, (finding, 0))
        if not tries:
            log.error("%s; it cannot be recorded: %s", finding.summary, error.message)
        self._unrecorded[finding.key] = finding, tries + 1
        self._in_mind(finding)
        if not treat or not finding.remedies or tries >= finding.tries:
            return
        remedy = finding.remedies[0]
        try:
            said, worked = await remedy.apply(), True
        except (PalyraError, OSError) as failed:
            said, worked = str(failed), False
        log.warning("first aid for what cannot be recorded: %s", said)
        incident = await self._incidents.open(
            finding.domain,
            finding.key,
            finding.summary,
            severity=finding.severity,
            fix=finding.fix,
            told=finding.told,
        )
        self._recorded(finding.key)
        if incident is not None:
            incident = await self._incidents.begin(incident, remedy.name)
            await self._incidents.settle(
                incident,
                remedy.name,
                worked=worked,
                detail=f"{said} (before this could be recorded)",
            )

    async def _catch_up(self) -> None:
        """Record what could not be recorded when it happened, also if it is over by now."""
        for key, (finding, _) in tuple(self._unrecorded.items()):
            if key in self._found:
                continue
            try:
                await self._incidents.open(
                    finding.domain,
                    key,
                    finding.summary,
                    severity=finding.severity,
                    fix=finding.fix,
                    told=finding.told,
                )
                await self._incidents.close(key, "it was over before it could be recorded")
            except Unavailable:
                return
            self._recorded(key)

    async def _treat(self, incident: Incident, finding: HealthFinding, moment: LookTime) -> bool:
        """Try the next remedy if one is due; whether one was tried."""
        if (
            not finding.remedies
            or not finding.certain
            or any(each.remedy == ESCALATED for each in incident.tried)
        ):
            return False
        last = incident.tried[-1] if incident.tried else None
        if last is not None and last.result == "begun":
            detail = "the daemon stopped while this was tried"
            incident = await self._incidents.settle(
                incident, last.remedy, worked=False, detail=detail
            )
        remedy = finding.remedies[min(incident.attempts, len(finding.remedies) - 1)]
        if last is not None and moment.now_ms - last.time_ms < remedy.wait_ms:
            return False
        if incident.attempts >= finding.tries:
            if not finding.stays or any(each.result == "failed" for each in incident.tried):
                await self._incidents.escalate(
                    incident, f"{incident.attempts} attempts did not help, and no more are made"
                )
            return False
        await self._apply(incident, remedy)
        return True

    async def _apply(self, incident: Incident, remedy: Remedy) -> str:
        """Do it, recorded before and after; what came of it."""
        incident = await self._incidents.begin(incident, remedy.name)
        try:
            async with asyncio.timeout(_LONGEST_REMEDY_S):
                detail, worked = await remedy.apply(), True
        except PalyraError as error:
            detail, worked = error.message, False
        except TimeoutError:
            detail, worked = f"it took longer than {_LONGEST_REMEDY_S:g} s", False
        except Exception as error:
            # A remedy's own defect is a remedy that failed.
            log.error("the remedy %s failed", remedy.name, exc_info=error)
            detail, worked = f"{type(error).__name__}: {error}", False
        await self._incidents.settle(incident, remedy.name, worked=worked, detail=detail)
        return detail

    def check(self) -> DoctorCheck:
        """Return the check for the doctor."""
        mode = self.settings.mode
        if mode == "disabled":
            fix = "palyra config set healing.mode auto"
            return DoctorCheck(
                id="watchdog",
                title="watchdog",
                state="warn",
                detail="switched off by healing.mode",
                fix=fix,
            )
        how = "repairs what it can" if mode == "auto" else "only reports"
        detail = f"checks every {self.settings.every_ms // 1000} s and {how}"
        return DoctorCheck(id="watchdog", title="watchdog", state="ok", detail=detail)

    @property
    def looked_ms(self) -> int:
        """Return when it looked last; before the first time, when it began."""
        return self._looked_ms

    @property
    def treatable(self) -> list[str]:
        """Return the keys of what is wrong now and can be repaired."""
        return [key for key, finding in self._found.items() if finding.remedies]

    async def treat(self, incident_id: str) -> str:
        """Try the first remedy of an open incident because a person wants it, whatever the mode;
        what came of it.
        """
        async with self._looking:
            incident = await self._incidents.get(incident_id)
            if incident.closed_ms:
                raise Conflict("this incident is closed already", incident_id=incident_id)
            finding = self._found.get(incident.key)
            if finding is None or not finding.remedies:
                raise NotFound(
                    f"there is no remedy for this: {incident.fix or incident.summary}",
                    incident_id=incident_id,
                )
            said = await self._apply(incident, finding.remedies[0])
            self._looked_ms = self._clock.now_ms()
            await self._examine(LookTime(self._looked_ms, 0), treat=False)
            return said


@contextmanager
def _later(key: str) -> Iterator[None]:
    """Leave what cannot be recorded now to the next look: it is no reason to skip the rest."""
    try:
        yield
    except Unavailable as error:
        log.warning("what is wrong with %s waits for the next look: %s", key, error.message)


def _over(incident: Incident) -> str:
    """Return how an incident ended."""
    tried = [each for each in incident.tried if each.remedy != ESCALATED]
    if not tried:
        return "it went away by itself"
    last = tried[-1]
    if last.result == "begun":
        return f"it is over; the daemon stopped while it tried to {last.remedy}"
    return (
        f"it is over after: {last.remedy}"
        if last.result == "done"
        else "it went away, though what was tried had failed"
    )
