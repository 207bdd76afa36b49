"""Written by scripts/clients.py from the route table: what the verbs about schedules give and
take.
"""

from msgspec import Struct

from palyra.features.schedules.model import Firing, Quiet, Schedule

__all__ = [
    "Called",
    "Firing",
    "Quiet",
    "Schedule",
    "ScheduleList",
    "ScheduleVerbsForecast",
    "ShownSchedule",
]


class ScheduleVerbsForecast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What it may cost, from its last runs: `runs` of them were looked at."""

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
    forecast: ScheduleVerbsForecast | None = None
    firings: tuple[Firing, ...] = ()
    secret: str = ""


class ScheduleList(Struct, frozen=True, kw_only=True):
    schedules: list[ShownSchedule]


class Called(Struct, frozen=True, kw_only=True):
    schedule_id: str
    due_ms: int
    state: str
