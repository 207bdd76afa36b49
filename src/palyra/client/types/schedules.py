"""Written by scripts/clients.py from the route table: types of the verbs about schedules."""

from typing import Literal

from msgspec import Struct

from palyra.core.labels import Label
from palyra.core.tools import Subject

__all__ = [
    "AtTrigger",
    "Called",
    "CronTrigger",
    "EveryTrigger",
    "FileTrigger",
    "Firing",
    "HookTrigger",
    "Quiet",
    "Schedule",
    "ScheduleList",
    "ScheduleVerbsForecast",
    "ShownSchedule",
]


class CronTrigger(Struct, frozen=True, kw_only=True, tag_field="on", tag="cron"):
    expression: str


class EveryTrigger(Struct, frozen=True, kw_only=True, tag_field="on", tag="every"):
    """Trigger counted from `from_ms`, so that a restart does not move it."""

    every_ms: int
    from_ms: int = 0


class AtTrigger(Struct, frozen=True, kw_only=True, tag_field="on", tag="at"):
    at_ms: int


class FileTrigger(Struct, frozen=True, kw_only=True, tag_field="on", tag="file"):
    """A file, or a folder with everything in it."""

    path: str


class HookTrigger(Struct, frozen=True, kw_only=True, tag_field="on", tag="webhook"):
    """Nothing."""


class Quiet(Struct, frozen=True, kw_only=True, rename={"begin": "from", "end": "to"}):
    """Hours of every day, in the schedule's time zone, in which it does not fire. `then`: once when
    they end, or not at all.
    """

    begin: str
    end: str
    then: Literal["later", "skip"] = "later"


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved schedule. `scopes` are what its runs may do without asking; what nobody allowed waits
    or is denied, as `ask` says.
    """

    schedule_id: str
    owner: str
    name: str
    text: str
    trigger: CronTrigger | EveryTrigger | AtTrigger | FileTrigger | HookTrigger
    zone: str = "UTC"
    overlap: Literal["queue", "replace", "skip"] = "skip"
    missed: Literal["catch_up", "skip"] = "skip"
    quiet: Quiet | None = None
    scopes: tuple[Subject, ...] = ()
    ask: Literal["deny", "wait"] = "wait"
    model: str = ""
    workspace: str = ""
    fresh: bool = False
    label: Label = Label()
    state: Literal["active", "done", "paused"] = "active"
    next_ms: int = 0
    created_ms: int = 0
    updated_ms: int = 0


class ScheduleVerbsForecast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Forecast of its cost, from its last runs: `runs` of them were looked at."""

    firings_a_month: int
    runs: int = 0
    like: int = 0
    tokens_a_run: int = 0
    cost_microusd_a_run: int = 0
    cost_microusd_a_month: int = 0


class Firing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    schedule_id: str
    due_ms: int
    state: Literal["cancelled", "done", "due", "failed", "missed", "queued", "skipped", "started"]
    run_id: str = ""
    session_id: str = ""
    note: str = ""
    artifact: str = ""
    updated_ms: int = 0


class ShownSchedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule with what comes: when it fires, in words; the next five times; what that may cost;
    what happened last.
    """

    schedule: Schedule
    when: str
    upcoming: tuple[int, ...] = ()
    upcoming_shown: tuple[str, ...] = ()
    forecast: ScheduleVerbsForecast | None = None
    firings: tuple[Firing, ...] = ()
    secret: str = ""


class ScheduleList(Struct, frozen=True, kw_only=True):
    schedules: list[ShownSchedule]


class Called(Struct, frozen=True, kw_only=True):
    schedule_id: str
    due_ms: int
    state: str
