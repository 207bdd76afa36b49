"""Cron expressions: five fields, and which moments they name in a time zone.

The rule: each local time that matches happens once. A time that the clock skips in spring happens
at the first valid moment after it; a time that the clock shows twice in autumn happens the first
time.
"""

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from palyra.core.errors import InvalidInput

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# A 29 February can be eight years away, a weekday on one longer.
_FARTHEST_DAYS = 366 * 41


_LONGEST = 1_000


class Cron(Struct, frozen=True):
    """Matching times, as sorted numbers. Sunday is 0. With both days restricted, either is enough,
    as cron has always had it.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, (day.isoweekday() % 7) in self.weekdays
        if self.any_day or self.any_weekday:
            return in_month and in_week
        return in_month or in_week


def parse(text: str) -> Cron:
    """Read an expression. What is wrong is named with its field."""
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"a cron expression may have {_LONGEST} characters, and this one has {len(text)}"
        )
    fields = _MACROS.get(text.strip().lower(), text).split()
    if len(fields) != len(_FIELDS):
        raise InvalidInput(
            "a cron expression has five fields (minute, hour, day, month, weekday), and"
            f" {text.strip()!r} has {len(fields)}"
        )
    sets = [_field(field, *about) for field, about in zip(fields, _FIELDS, strict=True)]
    cron = Cron(
        minutes=tuple(sorted(sets[0])),
        hours=tuple(sorted(sets[1])),
        days=frozenset(sets[2]),
        months=frozenset(sets[3]),
        weekdays=frozenset(each % 7 for each in sets[4]),
        any_day=fields[2].startswith("*"),
        any_weekday=fields[4].startswith("*"),
    )
    if not any(cron.on(date(2024, 1, 1) + timedelta(days=n)) for n in range(_FARTHEST_DAYS)):
        raise InvalidInput(f"{text.strip()!r} names a day that never comes")
    return cron


def _field(text: str, name: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, name, 1, most) if slash else 1
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = least, most if name != "day of the week" else 6
        else:
            low = _value(first, name, least, most)
            high = _value(last, name, least, most) if dash else most if slash else low
            if name == "day of the week" and slash and not dash:
                high = 6
            if dash and name == "day of the week" and high < low and high == 0:
                high = 7  # fri-sun
        if high < low:
            raise InvalidInput(
                f"the {name} {part!r} ends before it begins: write it as two ranges with a comma"
            )
        found.update(range(low, high + 1, step))
    return found


def _value(text: str, name: str, least: int, most: int) -> int:
    names = {"month": _MONTHS, "day of the week": _DAYS}.get(name, ())
    if text[:3] in names and text.isalpha():
        return names.index(text[:3]) + (1 if name == "month" else 0)
    return _number(text, name, least, most)


def _number(text: str, name: str, least: int, most: int) -> int:
    if (
        not (text.isascii() and text.isdecimal() and len(text) <= 2)
        or not least <= int(text) <= most
    ):
        raise InvalidInput(
            f"{text!r} is not a {name}: {least} to {most}, a range 1-5, a list 1,3 or a step */2"
        )
    return int(text)


def next_after(cron: Cron, after_ms: int, zone: ZoneInfo) -> int | None:
    """The first moment later than `after_ms` that the expression names; None if there is none in
    our time.
    """
    local = datetime.fromtimestamp(after_ms / 1000, zone).replace(tzinfo=None)
    day, begin = local.date(), (local.hour, local.minute)
    for _ in range(_FARTHEST_DAYS):
        if cron.on(day):
            for hour in cron.hours[bisect_left(cron.hours, begin[0]) :]:
                first = bisect_left(cron.minutes, begin[1]) if hour == begin[0] else 0
                for minute in cron.minutes[first:]:
                    moment = moment_of(datetime(day.year, day.month, day.day, hour, minute), zone)
                    if moment > after_ms:
                        return moment
        if day == date.max:
            return None
        day, begin = day + timedelta(days=1), (0, 0)
    return None


def moment_of(local: datetime, zone: ZoneInfo) -> int:
    """Return when a clock on the wall shows this: the first time it does, or the first moment after
    it if it never does.
    """
    early = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == local:
        return int(early.timestamp()) * 1000
    # In a gap the offset before it gives a moment behind the change, the offset after it one before
    # the change.
    low = int(local.replace(tzinfo=zone, fold=1).astimezone(UTC).timestamp())
    high = int(early.timestamp())
    offset = datetime.fromtimestamp(high, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high * 1000
