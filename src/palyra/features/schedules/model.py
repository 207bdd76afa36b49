"""Model of a schedule: when it fires, what it says then, and what holds if that is not possible at
that moment.

The rule: when a schedule fires next is a function of the schedule and a moment, and of nothing
else.
"""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Meta, Struct

from palyra.core.errors import InvalidInput
from palyra.core.labels import CLEAN, Label
from palyra.core.tools import Subject
from palyra.features.schedules import cron

SHORTEST_EVERY_MS = 60_000
MOST_CAUGHT_UP = 3
# Later than this is missed: a restart or a busy minute is no reason not to fire.
GRACE_MS = 5 * 60_000
MOST_SCOPES = 16
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_WORDS = {
    "second": "s",
    "sec": "s",
    "minute": "m",
    "min": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_CLOCK = re.compile(r"(?:at )?(\d{1,2})(?::(\d{2}))? ?(am|pm)?\Z")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class CronTrigger(Struct, frozen=True, tag="cron", tag_field="on"):
    expression: str


class EveryTrigger(Struct, frozen=True, tag="every", tag_field="on"):
    """Trigger counted from `from_ms`, so that a restart does not move it."""

    every_ms: int
    from_ms: int = 0


class AtTrigger(Struct, frozen=True, tag="at", tag_field="on"):
    at_ms: int


class FileTrigger(Struct, frozen=True, tag="file", tag_field="on"):
    """A file, or a folder with everything in it."""

    path: str


class HookTrigger(Struct, frozen=True, tag="webhook", tag_field="on"):
    pass


Trigger = CronTrigger | EveryTrigger | AtTrigger | FileTrigger | HookTrigger
Overlap = Literal["skip", "queue", "replace"]
Missed = Literal["skip", "catch_up"]
ScheduleState = Literal["active", "paused", "done"]
FiringState = Literal[
    "due", "queued", "started", "done", "failed", "cancelled", "skipped", "missed"
]
HourMinute = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class Quiet(Struct, frozen=True, forbid_unknown_fields=True, rename={"begin": "from", "end": "to"}):
    """Hours of every day, in the schedule's time zone, in which it does not fire. `then`: once when
    they end, or not at all.
    """

    begin: HourMinute
    end: HourMinute
    then: Literal["later", "skip"] = "later"


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved schedule. `scopes` are what its runs may do without asking; what nobody allowed waits
    or is denied, as `ask` says.
    """

    schedule_id: str
    owner: str
    name: str
    text: str
    trigger: Trigger
    zone: str = "UTC"
    overlap: Overlap = "skip"
    missed: Missed = "skip"
    quiet: Quiet | None = None
    scopes: tuple[Subject, ...] = ()
    ask: Literal["wait", "deny"] = "wait"
    model: str = ""
    workspace: str = ""
    # A session for each firing, instead of one for all.
    fresh: bool = False
    # Of what the agent had read that made it: its words come from there.
    label: Label = CLEAN
    state: ScheduleState = "active"
    # When it fires next; 0: not by the clock.
    next_ms: int = 0
    created_ms: int = 0
    updated_ms: int = 0


class Firing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    schedule_id: str
    due_ms: int
    state: FiringState
    run_id: str = ""
    session_id: str = ""
    note: str = ""
    # What a webhook brought, stored in the session.
    artifact: str = ""
    updated_ms: int = 0


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"{name[:64]!r} is not a time zone: name one as Europe/Vienna or UTC", zone=name[:64]
        ) from None


def next_firing(schedule: Schedule, after_ms: int) -> int:
    """The first moment later than `after_ms` at which it fires by the clock, quiet hours
    considered; 0: never.
    """
    zone = zone_of(schedule.zone)
    while (moment := _next(schedule.trigger, after_ms, zone)) is not None:
        until_ms = quiet_until(schedule, moment)
        if not until_ms:
            return moment
        assert schedule.quiet is not None
        if schedule.quiet.then == "later":
            return until_ms
        after_ms = moment if isinstance(schedule.trigger, AtTrigger) else max(moment, until_ms - 1)
    return 0


def _next(trigger: Trigger, after_ms: int, zone: ZoneInfo) -> int | None:
    match trigger:
        case CronTrigger(expression=expression):
            return cron.next_after(_parsed(expression), after_ms, zone)
        case EveryTrigger(every_ms=every_ms, from_ms=from_ms):
            return from_ms + ((after_ms - from_ms) // every_ms + 1) * every_ms
        case AtTrigger(at_ms=at_ms):
            return at_ms if at_ms > after_ms else None
        case FileTrigger() | HookTrigger():
            return None


_known: dict[str, cron.Cron] = {}


def _parsed(expression: str) -> cron.Cron:
    found = _known.get(expression)
    if found is None:
        if len(_known) > 10_000:
            _known.clear()
        found = _known[expression] = cron.parse(expression)
    return found


def upcoming(schedule: Schedule, after_ms: int, count: int = 5) -> list[int]:
    found: list[int] = []
    while len(found) < count and (
        moment := next_firing(schedule, found[-1] if found else after_ms)
    ):
        found.append(moment)
    return found


def due_between(schedule: Schedule, first_ms: int, now_ms: int) -> tuple[list[int], int]:
    """Return the firings since `first_ms` that are worth making up for, oldest first, and how many
    there were at least.

    Those within the grace were not missed, only late: all of them count, and the last few of those
    before.
    """
    kept: list[int] = []
    late: list[int] = []
    count, moment = 0, first_ms
    while moment and moment <= now_ms:
        count += 1
        if now_ms - moment <= GRACE_MS:
            late.append(moment)
        else:
            kept = [*kept[-(MOST_CAUGHT_UP - 1) :], moment]
        if count == 2_000:
            # So much was missed that nobody wants to know how much: go on shortly before now.
            moment = max(moment, now_ms - 86_400_000)
        moment = next_firing(schedule, moment)
    return [*kept, *late], count


def quiet_until(schedule: Schedule, moment_ms: int) -> int:
    """Return when the quiet hours end that a moment lies in; 0: it lies in none."""
    quiet = schedule.quiet
    if quiet is None or quiet.begin == quiet.end:
        return 0
    zone = zone_of(schedule.zone)
    local = datetime.fromtimestamp(moment_ms / 1000, zone)
    now, begin, end = local.time(), time.fromisoformat(quiet.begin), time.fromisoformat(quiet.end)
    inside = begin <= now < end if begin < end else (now >= begin or now < end)
    if not inside:
        return 0
    day = local.date() + timedelta(days=1 if begin > end and now >= begin else 0)
    ends = cron.moment_of(datetime.combine(day, end), zone)
    # On the day of a change of the clock the end may already be behind us.
    return ends if ends > moment_ms else 0


def parse_when(text: str, now_ms: int, zone: ZoneInfo) -> Trigger:
    """Words for a trigger: `0 9 * * 1-5`, `every 2h`, `every monday at 8:30`, `daily at 9`, `at
    2027-01-31 09:00`, `in 20m`, `file PATH`, `webhook`.
    """
    said = " ".join(text.split())
    words = said.lower()
    if words == "webhook":
        return HookTrigger()
    if words.startswith("file "):
        return FileTrigger(said[5:])
    if words.startswith("cron "):
        return _cron(said[5:])
    if words.startswith("in "):
        return AtTrigger(now_ms + _duration(words[3:], said))
    if words.startswith("at ") or re.match(r"\d{4}-\d\d-\d\d", words):
        return AtTrigger(_instant(said.removeprefix("at ").removeprefix("At "), zone))
    if words.startswith("@") or (len(words.split()) == 5 and re.match(r"[\d*]", words)):
        return _cron(said)
    return _every(words, now_ms, said)


def _cron(expression: str) -> CronTrigger:
    cron.parse(expression)
    return CronTrigger(expression)


def _every(words: str, now_ms: int, said: str) -> Trigger:
    rest = {"daily": "day", "weekdays": "weekday", "hourly": "hour", "weekly": "monday"}.get(
        words.split(" ")[0] if words else ""
    )
    rest = (
        f"{rest}{words[len(words.split(' ')[0]) :]}"
        if rest
        else words.removeprefix("every ").removeprefix("each ")
    )
    day, _, clock = rest.partition(" ")
    days = {"day": "*", "weekday": "1-5", "weekend": "0,6", "morning": "*", "evening": "*"}
    days |= {name: str(number) for number, name in enumerate(_DAYS)}
    if day.rstrip("s") in days and (clock or day != "day"):
        hour, minute = _clock(clock or ("18:00" if day == "evening" else "9:00"), said)
        return CronTrigger(f"{minute} {hour} * * {days[day.rstrip('s')]}")
    every_ms = _duration(rest, said)
    if every_ms < SHORTEST_EVERY_MS:
        raise InvalidInput(
            f"{said!r} is too often: once a minute is the most", least_ms=SHORTEST_EVERY_MS
        )
    return EveryTrigger(every_ms, now_ms)


def _clock(text: str, said: str) -> tuple[int, int]:
    found = _CLOCK.match(text.strip())
    hour, minute = (int(found[1]), int(found[2] or 0)) if found else (99, 0)
    if found and found[3]:
        hour = hour % 12 + (12 if found[3] == "pm" else 0)
    if hour > 23 or minute > 59:
        raise _unclear(said)
    return hour, minute


def _duration(text: str, said: str) -> int:
    found = re.fullmatch(r"(\d{1,6})? ?([a-z]+?)s?", text.strip())
    unit = _WORDS.get(found[2], found[2]) if found else ""
    if found is None or unit not in _UNITS or found[1] == "0":
        raise _unclear(said)
    return int(found[1] or 1) * _UNITS[unit]


def _instant(text: str, zone: ZoneInfo) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _unclear(text) from None
    if moment.tzinfo is not None:
        return int(moment.astimezone(UTC).timestamp() * 1000)
    return cron.moment_of(moment.replace(second=0, microsecond=0), zone)


def _unclear(said: str) -> InvalidInput:
    return InvalidInput(
        f"{said[:80]!r} is no time for a schedule: write `every 2h`, `every day at 9:00`, `weekdays"
        " at 8:30`, `at 2027-01-31 09:00`, `in 20m`, five cron fields as `0 9 * * 1-5`, `file"
        " PATH` or `webhook`"
    )


def in_words(trigger: Trigger, zone: str) -> str:
    match trigger:
        case CronTrigger(expression=expression):
            return f"cron {expression} ({zone})"
        case EveryTrigger(every_ms=every_ms):
            unit = next(unit for unit in ("w", "d", "h", "m", "s") if every_ms % _UNITS[unit] == 0)
            return f"every {every_ms // _UNITS[unit]}{unit}"
        case AtTrigger(at_ms=at_ms):
            return f"at {shown(at_ms, zone)}"
        case FileTrigger(path=path):
            return f"when {path} changes"
        case HookTrigger():
            return "when its webhook is called"


def shown(moment_ms: int, zone: str) -> str:
    """A moment as the clock on the wall of a zone shows it."""
    local = datetime.fromtimestamp(moment_ms / 1000, zone_of(zone))
    return f"{local:%a %Y-%m-%d %H:%M} {local.tzname() or zone}"
