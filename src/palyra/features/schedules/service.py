"""Operations of a person on schedules: preview, save, list, pause, resume, remove, fire. Each
change is one step with its record.

The rule: a schedule acts in the name of who saved it, and may do without asking only what they
named. A permission answers what policy asks; what policy denies stays denied.
"""

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.input_checks import as_line, check_line
from palyra.core.labels import CLEAN, Label
from palyra.core.signals import Signal
from palyra.core.tools import Subject
from palyra.features.budgets import forecasts
from palyra.features.budgets.forecasts import RunForecast
from palyra.features.schedules import model as schedules_model
from palyra.features.schedules import rows, steps
from palyra.features.schedules.model import (
    AtTrigger,
    EveryTrigger,
    FileTrigger,
    Firing,
    HookTrigger,
    Missed,
    Overlap,
    Quiet,
    Schedule,
)
from palyra.features.vault.rules import NewSecret
from palyra.features.vault.service import Vault
from palyra.store import tape, tasks, usage
from palyra.store.database import Database, Tx
from palyra.store.usage import RunUse
from palyra.store.verify_projections import schedule_digest
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.system.thread_pool import everyday
from palyra.tools.catalogue import Catalogue

MOST = 2_000
HOOK_TOOL = "schedule.hook"
_LONGEST_TEXT = 32 << 10
_MONTH_MS = 30 * 86_400_000
# More firings of a month than this are counted by their pace.
_COUNTED = 500
_COUNTED_IN_LIST = 40
_SHOWN_FIRINGS = 20

_LOCALTIME = Path("/etc/localtime")


class NewSchedule(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`when`: `every 2h`, `weekdays at 8:30`, `0 9 * * 1-5`, `at 2027-01-31 09:00`, `in 20m`, `file
    PATH` or `webhook`.
    """

    text: Annotated[str, Meta(min_length=1, max_length=32_000)]
    when: Annotated[str, Meta(min_length=1, max_length=1_000)]
    name: Annotated[str, Meta(max_length=200)] = ""
    # Of the machine, if it is not said.
    zone: Annotated[str, Meta(max_length=64)] = ""
    overlap: Overlap = "skip"
    # `skip`, except for what is to happen once.
    missed: Missed | None = None
    quiet: Quiet | None = None
    scopes: Annotated[tuple[Subject, ...], Meta(max_length=schedules_model.MOST_SCOPES)] = ()
    ask: Literal["wait", "deny"] = "wait"
    model: Annotated[str, Meta(max_length=200)] = ""
    workspace: Annotated[str, Meta(max_length=4_096)] = ""
    fresh: bool = False


class ScheduleForecast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Forecast of its cost, from its last runs: `runs` of them were looked at.

    One that has not run yet is taken to be like other runs of its owner: then `like` says how many
    were looked at. Without either nothing is known.
    """

    firings_a_month: int
    runs: int = 0
    like: int = 0
    tokens_a_run: int = 0
    cost_microusd_a_run: int = 0
    cost_microusd_a_month: int = 0


class ShownSchedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule with what comes: when it fires, in words; the next five times; what that may cost;
    what happened last.
    """

    schedule: Schedule
    when: str
    upcoming: tuple[int, ...] = ()
    upcoming_shown: tuple[str, ...] = ()
    forecast: ScheduleForecast | None = None
    firings: tuple[Firing, ...] = ()
    # Of a webhook, shown this once: the secret that calls are signed with.
    secret: str = ""


class Schedules:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        find_model: Callable[[str], object],
        vault: Vault,
        redactor: Redactor,
        clock: Clock,
        *,
        zone: str,
        forbidden: tuple[str, ...],
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._find_model = find_model
        self._vault = vault
        self._redactor = redactor
        self._clock = clock
        self._zone = zone
        self._forbidden = forbidden
        # Told when a schedule has come, gone or changed its state.
        self.on_change = Signal[[]]("changed schedules")

    def look_ahead(self, principal: str, new: NewSchedule) -> ShownSchedule:
        """Preview a schedule, saving nothing. What is wrong with it is said."""
        return self._shown(self._made(principal, new, self._clock.new_id()))

    async def preview(self, principal: str, new: NewSchedule) -> ShownSchedule:
        """The same, with what it may cost."""
        return await self._estimated(self.look_ahead(principal, new))

    async def _estimated(self, shown: ShownSchedule) -> ShownSchedule:
        """One that has not run yet with what it may cost all the same: people want to know that
        before they save it.
        """
        forecast, owner = shown.forecast, shown.schedule.owner
        if forecast is None or forecast.runs:
            return shown
        others = await self._db.read(lambda tx: forecasts.others_of(tx, owner, tx.now_ms))
        found = _forecast(forecasts.of_runs(others, forecast.firings_a_month))
        return replace(shown, forecast=replace(found, runs=0, like=found.runs))

    async def listing(self, principal: str) -> list[ShownSchedule]:
        def query(tx: Tx) -> tuple[list[Schedule], dict[str, Firing], dict[str, list[RunUse]]]:
            return (
                rows.listing(tx, principal),
                rows.newest_firings(tx, principal),
                usage.of_schedules(tx, principal),
            )

        found, newest, used = await self._db.read(query)

        def shown(each: Schedule) -> ShownSchedule:
            last = newest.get(each.schedule_id)
            return self._shown(
                each,
                [last] if last else [],
                used.get(each.schedule_id, ()),
                counted=_COUNTED_IN_LIST,
            )

        # Looking ahead is arithmetic, and for a thousand schedules it is much of it.
        return await everyday.run(lambda: [shown(each) for each in found])

    async def show(self, principal: str, schedule_id: str) -> ShownSchedule:
        def query(tx: Tx) -> tuple[Schedule, list[Firing], Sequence[RunUse]]:
            found = rows.get(tx, schedule_id, principal)
            used = usage.of_schedules(tx, principal, schedule_id).get(schedule_id, ())
            return found, rows.firings(tx, schedule_id, _SHOWN_FIRINGS), used

        return await self._estimated(self._shown(*await self._db.read(query)))

    def _shown(
        self,
        schedule: Schedule,
        firings: Sequence[Firing] = (),
        used: Sequence[RunUse] = (),
        *,
        counted: int = _COUNTED,
    ) -> ShownSchedule:
        now_ms = self._clock.now_ms()
        # What is due and not yet begun is what comes next.
        after_ms = min(now_ms, schedule.next_ms - 1) if schedule.next_ms else now_ms
        upcoming = (
            schedules_model.upcoming(schedule, after_ms) if schedule.state == "active" else []
        )
        return ShownSchedule(
            schedule=schedule,
            when=schedules_model.in_words(schedule.trigger, schedule.zone),
            upcoming=tuple(upcoming),
            upcoming_shown=tuple(schedules_model.shown(each, schedule.zone) for each in upcoming),
            forecast=_forecast(forecasts.of_runs(used, _a_month(schedule, now_ms, counted))),
            firings=tuple(firings),
        )

    async def add(
        self, principal: str, new: NewSchedule, schedule_id: str = "", *, label: Label = CLEAN
    ) -> ShownSchedule:
        """Save a schedule. With an id this is idempotent: the schedule that has it is that one.
        `label`: of its words.
        """
        if schedule_id:
            known = await self._db.read(partial(rows.find, schedule_id=schedule_id))
            if known is not None and known.owner == principal:
                return self._shown(known)
        new = replace(new, text=await self._redactor.redacted(new.text))
        schedule = replace(
            self._made(principal, new, schedule_id or self._clock.new_id()), label=label
        )
        hook = isinstance(schedule.trigger, HookTrigger)
        secret = await self._new_secret(schedule) if hook else ""

        def step(tx: Tx) -> None:
            if rows.count(tx, principal) >= MOST:
                raise LimitExceeded(f"there are {MOST} schedules: remove one first", limit=MOST)
            told = _record(tx, principal, "added", schedule, _told(schedule))
            rows.save(tx, schedule, told)
            steps.plan(tx, schedule)

        await self._db.write(step)
        self._changed()
        return replace(await self._estimated(self._shown(schedule)), secret=secret)

    async def change(self, principal: str, schedule_id: str, new: NewSchedule) -> ShownSchedule:
        """Give a schedule other words, times or rules. It keeps its id, history, session and state;
        grants follow its scopes, and a webhook keeps its secret.

        The label of its words stays: whoever changes a word did not write the others.
        """
        new = replace(new, text=await self._redactor.redacted(new.text))
        made = self._made(principal, new, schedule_id)
        before = await self._db.read(lambda tx: rows.get(tx, schedule_id, principal))
        was_hook = isinstance(before.trigger, HookTrigger)
        is_hook = isinstance(made.trigger, HookTrigger)
        # Before the schedule says so: a webhook without a secret cannot be called.
        secret = await self._new_secret(made) if is_hook and not was_hook else ""

        def step(tx: Tx) -> None:
            found = rows.get(tx, schedule_id, principal)
            changed = replace(made, label=found.label, created_ms=found.created_ms)
            if _rhythm(changed) and _rhythm(found) == _rhythm(changed):
                # Saved again, a rhythm is counted from the moment that it was counted from.
                changed = replace(changed, trigger=found.trigger)
                changed = replace(changed, next_ms=schedules_model.next_firing(changed, tx.now_ms))
            if found.state == "paused":
                changed = replace(changed, state="paused", next_ms=0)
            told = _record(tx, principal, "changed", changed, _told(changed))
            rows.save(tx, changed, told)
            if found.scopes != changed.scopes:
                steps.renew_grants(tx, found, changed)
            tasks.drop(tx, steps.FIRE, schedule_id)
            steps.plan(tx, changed)

        await self._db.write(step)
        if was_hook and not is_hook:
            await self._forget_secret(before)
        self._changed()
        return replace(await self.show(principal, schedule_id), secret=secret)

    async def pause(self, principal: str, schedule_id: str) -> ShownSchedule:
        """Pause the schedule until it is resumed. A run of it that is under way continues."""
        return await self._move(principal, schedule_id, "paused")

    async def resume(self, principal: str, schedule_id: str) -> ShownSchedule:
        """Resume the schedule from now on; firings of the pause count as not wanted, not as
        missed.
        """
        return await self._move(principal, schedule_id, "resumed")

    async def _move(
        self, principal: str, schedule_id: str, action: Literal["paused", "resumed"]
    ) -> ShownSchedule:
        def step(tx: Tx) -> Schedule:
            found = rows.get(tx, schedule_id, principal)
            wanted = "active" if action == "paused" else "paused"
            if found.state != wanted:
                raise Conflict(f"this schedule is {found.state}, not {wanted}", state=found.state)
            next_ms = schedules_model.next_firing(found, tx.now_ms) if action == "resumed" else 0
            changed = replace(
                found,
                state="paused" if action == "paused" else "active",
                next_ms=next_ms,
                updated_ms=tx.now_ms,
            )
            if action == "resumed" and isinstance(found.trigger, AtTrigger) and not next_ms:
                changed = replace(changed, state="done")
            rows.save(tx, changed, _record(tx, principal, action, changed))
            steps.plan(tx, changed)
            return changed

        changed = await self._db.write(step)
        self._changed()
        return self._shown(changed)

    async def remove(self, principal: str, schedule_id: str) -> Schedule:
        """Remove the schedule, with what was approved for it. Runs of it that are under way
        continue, and its sessions stay.
        """

        def step(tx: Tx) -> Schedule:
            found = rows.get(tx, schedule_id, principal)
            steps.remove_grants(tx, found)
            rows.remove(tx, schedule_id)
            tasks.drop(tx, steps.FIRE, schedule_id)
            _record(tx, principal, "removed", found, {"name": found.name})
            return found

        removed = await self._db.write(step)
        self._changed()
        if isinstance(removed.trigger, HookTrigger):
            await self._forget_secret(removed)
        return removed

    async def _new_secret(self, schedule: Schedule) -> str:
        secret = secrets.token_urlsafe(32)
        await self._vault.put(
            schedule.owner,
            NewSecret(name=hook_secret(schedule.schedule_id), value=secret, tools=(HOOK_TOOL,)),
        )
        return secret

    async def _forget_secret(self, schedule: Schedule) -> None:
        with suppress(NotFound):
            await self._vault.remove(schedule.owner, "global", hook_secret(schedule.schedule_id))

    async def run(self, principal: str, schedule_id: str) -> Firing:
        """Fire it now, whatever the clock says."""

        def step(tx: Tx) -> Firing:
            found = rows.get(tx, schedule_id, principal)
            if found.state == "paused":
                raise Conflict("this schedule is paused: resume it first", state=found.state)
            _record(tx, principal, "run", found)
            return steps.happened(tx, found, "by hand", by_hand=True)

        return await self._db.write(step)

    def _changed(self) -> None:
        self.on_change.send()

    def _made(self, principal: str, new: NewSchedule, schedule_id: str) -> Schedule:
        now_ms = self._clock.now_ms()
        zone = new.zone or self._zone
        if len(new.text.encode()) > _LONGEST_TEXT:
            raise InvalidInput(
                f"a schedule's text may have {_LONGEST_TEXT} bytes: put more into a file and"
                " name it"
            )
        text = self._redactor.redact(new.text)
        if not text.strip():
            raise InvalidInput("a schedule needs something to say when it fires")
        trigger = schedules_model.parse_when(new.when, now_ms, schedules_model.zone_of(zone))
        if isinstance(trigger, FileTrigger):
            trigger = FileTrigger(self._watchable(trigger.path))
        if new.model:
            self._find_model(new.model)
        for subject in new.scopes:
            self._check_scope(subject)
        check_line("name", new.name)
        once = isinstance(trigger, AtTrigger)
        made = Schedule(
            schedule_id=schedule_id,
            owner=principal,
            name=self._redactor.redact(new.name.strip()) or as_line(" ".join(text.split()))[:60],
            text=text,
            trigger=trigger,
            zone=zone,
            overlap=new.overlap,
            missed=new.missed or ("catch_up" if once else "skip"),
            quiet=new.quiet,
            scopes=new.scopes,
            ask=new.ask,
            model=new.model,
            workspace=new.workspace,
            fresh=new.fresh,
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        made = replace(made, next_ms=schedules_model.next_firing(made, now_ms))
        if not made.next_ms and not isinstance(trigger, FileTrigger | HookTrigger):
            raise InvalidInput(f"{new.when!r} is over, or never comes: name a time that lies ahead")
        return made

    def _watchable(self, given: str) -> str:
        path = Path(given).expanduser()
        if not path.is_absolute() or not path.exists():
            raise InvalidInput(
                f"{given!r} cannot be watched: name an existing file or folder by its whole path"
            )
        resolved = str(path.resolve())
        if resolved == "/" or any(
            f"{resolved}/".startswith(f"{root}/") or root.startswith(f"{resolved}/")
            for root in self._forbidden
        ):
            raise InvalidInput(
                f"{given!r} cannot be watched: it contains or lies in the daemon's own folder, or"
                " is too wide"
            )
        return resolved

    def _check_scope(self, subject: Subject) -> None:
        known = {spec.name for spec in self._catalogue.specs()}
        if subject.tool not in known:
            raise InvalidInput(
                f"there is no tool {subject.tool!r} to approve: `palyra status` lists the tools",
                tool=subject.tool,
            )
        if (subject.kind == "tool") == bool(subject.value):
            raise InvalidInput(
                "a scope is `tool`, or a path_prefix, program, command or host with its value",
                kind=subject.kind,
            )
        if self._redactor.redact(subject.value) != subject.value:
            raise InvalidInput("a scope must not contain a secret")


def hook_secret(schedule_id: str) -> str:
    return f"schedule-hook-{schedule_id}"


def _forecast(found: RunForecast) -> ScheduleForecast:
    return ScheduleForecast(
        firings_a_month=found.times,
        runs=found.runs,
        tokens_a_run=found.tokens,
        cost_microusd_a_run=found.microusd,
        cost_microusd_a_month=found.expected_microusd,
    )


def _a_month(schedule: Schedule, now_ms: int, most: int) -> int:
    """Return how often it fires in the thirty days from now; beyond so many, by their pace."""
    if schedule.state != "active":
        return 0
    count, moment = 0, now_ms
    while (
        count < most
        and (following := schedules_model.next_firing(schedule, moment))
        and following <= now_ms + _MONTH_MS
    ):
        count, moment = count + 1, following
    return count if count < most else count * _MONTH_MS // (moment - now_ms)


def _record(
    tx: Tx, principal: str, action: str, schedule: Schedule, details: dict[str, str] | None = None
) -> int:
    """Append what was done, and return the position of that."""
    changed = AdminChanged(
        what="schedule", action=action, subject=schedule.schedule_id, details=dict(details or {})
    )
    (entry,) = tape.append(tx, SYSTEM_TAPE, principal, [changed])
    return entry.position


def _told(schedule: Schedule) -> dict[str, str]:
    when = schedules_model.in_words(schedule.trigger, schedule.zone)
    return {"name": schedule.name, "when": when, "digest": schedule_digest(schedule)}


def _rhythm(schedule: Schedule) -> int:
    """Return how often it fires by real time; 0: by something else."""
    trigger = schedule.trigger
    return trigger.every_ms if isinstance(trigger, EveryTrigger) else 0


def local_zone() -> str:
    """The machine's time zone by its name, as far as it can be told."""
    try:
        _, found, name = os.readlink(_LOCALTIME).partition("zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"
