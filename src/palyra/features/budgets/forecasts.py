"""Forecasts of model costs: until the end of the month, from the trend of the last weeks; and for a
schedule, from its past runs.

A forecast is a plain sum: it says what it is made of, and how little that may be.
"""

from collections.abc import Sequence
from math import sqrt

from msgspec import Struct

from palyra.core.budgets import period_end, period_start
from palyra.features.schedules import rows as schedules_rows
from palyra.store import subagents, usage
from palyra.store.database import Database, Tx
from palyra.store.usage import RunUse, UsageFilter, UsageRow
from palyra.system.clock import Clock

DAY_MS = 86_400_000
# So many whole days before today say where it goes; with fewer than so many of them used, their
# mean does.
WINDOW = 28
LEAST_DAYS = 4
_MOST_RUNS = 50
# So many standard deviations to either side hold 80 % of a normal distribution.
_EIGHTY_PERCENT = 1.2816


class SpendingForecast(Struct, frozen=True, kw_only=True):
    """`spent` since `from_ms`, `expected` in all by `until_ms`. `basis` says how it was worked out.
    In four of five months like this one the sum lies between `low` and `high`.

    `unpriced` calls have no known price: then the money is at least this much.
    """

    from_ms: int
    until_ms: int
    spent_tokens: int
    spent_microusd: int
    expected_tokens: int
    expected_microusd: int
    a_day_tokens: int
    a_day_microusd: int
    unpriced: int = 0
    basis: str = ""
    low_tokens: int = 0
    high_tokens: int = 0
    low_microusd: int = 0
    high_microusd: int = 0


class RunForecast(Struct, frozen=True, kw_only=True):
    """Forecast for one run and for a number of runs; `runs` is how many past runs it is based on,
    0: unknown.
    """

    runs: int
    times: int
    tokens: int = 0
    microusd: int = 0
    most_microusd: int = 0
    expected_tokens: int = 0
    expected_microusd: int = 0
    unpriced: int = 0
    basis: str = ""


class Forecasts:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def month(self, principal: str = "") -> SpendingForecast:
        """Return the forecast of one principal, or of everybody."""
        now_ms = self._clock.now_ms()
        return await self._db.read(lambda tx: month(tx, principal, now_ms))

    async def schedule(self, schedule_id: str, *, principal: str, times: int) -> RunForecast:
        """Forecast a number of firings of a schedule. One that has never run is taken to be like
        the principal's other runs.
        """
        now_ms = self._clock.now_ms()
        return await self._db.read(lambda tx: schedule(tx, schedule_id, principal, times, now_ms))


def month(tx: Tx, principal: str, now_ms: int) -> SpendingForecast:
    begin, end = period_start("month", now_ms), period_end("month", now_ms)
    today = now_ms // DAY_MS
    so_far = usage.total(tx, UsageFilter(principal=principal, since_ms=begin, until_ms=end))
    recent = usage.grouped(
        tx,
        "day",
        UsageFilter(principal=principal, since_ms=(today - WINDOW) * DAY_MS, until_ms=end),
        WINDOW + 1,
    )
    by_day = {int(row.group): row for row in recent}
    # Days before the first use say nothing about what is to come.
    days = range(min(by_day), today) if by_day and min(by_day) < today else range(0)
    # Whole days that are still to come, and the rest of this one.
    left = (end - now_ms) / DAY_MS
    daily_tokens = [_tokens(by_day.get(day)) for day in days]
    daily_microusd = [by_day[day].cost_microusd if day in by_day else 0 for day in days]
    tokens, microusd = _daily(daily_tokens, left), _daily(daily_microusd, left)
    if not days:
        share = max(1, now_ms - today * DAY_MS) / DAY_MS
        tokens, microusd = (
            _tokens(by_day.get(today)) / share,
            (by_day[today].cost_microusd if today in by_day else 0) / share,
        )
    low_tokens, high_tokens = _band(daily_tokens, tokens, left)
    low_microusd, high_microusd = _band(daily_microusd, microusd, left)
    return SpendingForecast(
        from_ms=begin,
        until_ms=end,
        spent_tokens=_tokens(so_far),
        spent_microusd=so_far.cost_microusd,
        low_tokens=_tokens(so_far) + low_tokens,
        high_tokens=_tokens(so_far) + high_tokens,
        low_microusd=so_far.cost_microusd + low_microusd,
        high_microusd=so_far.cost_microusd + high_microusd,
        expected_tokens=_tokens(so_far) + round(tokens * left),
        expected_microusd=so_far.cost_microusd + round(microusd * left),
        a_day_tokens=round(tokens),
        a_day_microusd=round(microusd),
        unpriced=so_far.unpriced,
        basis=_basis(len(days), sum(day in by_day for day in days)),
    )


def _basis(days: int, used: int) -> str:
    if not days:
        return "today alone: there is nothing before it"
    how = "their trend" if days >= LEAST_DAYS else "their mean"
    return f"the last {days} days, {used} of them used: {how}"


def _tokens(row: UsageRow | None) -> int:
    return row.input_tokens + row.output_tokens if row is not None else 0


def _daily(values: list[int], left: float) -> float:
    """Return the average use of a day until the end: the line through the days before, or their
    mean if they are few.
    """
    count = len(values)
    if not count:
        return 0.0
    mean = sum(values) / count
    if count < LEAST_DAYS:
        return mean
    middle = (count - 1) / 2
    slope = sum((at - middle) * value for at, value in enumerate(values)) / sum(
        (at - middle) ** 2 for at in range(count)
    )
    # In the middle of what is left. A line that falls does not fall below nothing.
    return max(0.0, mean + slope * (count - 1 + left / 2 - middle))


def _band(values: list[int], daily: float, left: float) -> tuple[int, int]:
    """Return where the rest of the month will lie with 80 %: by how far the days before strayed
    from their mean. With fewer than two days it is unknown, and may be anything from nothing to
    twice as much.
    """
    expected = daily * left
    if len(values) < 2:
        return 0, round(2 * expected)
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    reach = _EIGHTY_PERCENT * spread * sqrt(left + left * left / len(values))
    return max(0, round(expected - reach)), round(expected + reach)


def schedule(tx: Tx, schedule_id: str, principal: str, times: int, now_ms: int) -> RunForecast:
    if schedule_id:
        schedules_rows.get(tx, schedule_id, principal)
        own = usage.of_schedules(tx, principal, schedule_id).get(schedule_id, [])
        if own:
            return of_runs(own, times)
    others = others_of(tx, principal, now_ms)
    return of_runs(others, times, f"the last {len(others)} runs of {principal}: it has not run yet")


def others_of(tx: Tx, principal: str, now_ms: int) -> list[RunUse]:
    """Return the use of a principal's last runs, each with its subagents: the next may be like
    them.
    """
    found: dict[str, RunUse] = {}
    asked = UsageFilter(principal=principal, since_ms=now_ms - WINDOW * DAY_MS)
    for row in usage.grouped(tx, "run", asked, _MOST_RUNS):
        root = row.group
        while (child := subagents.find(tx, root)) is not None:
            root = child.parent_run_id
        so_far = found.get(root, RunUse("", root, 0, 0, 0))
        found[root] = RunUse(
            "",
            root,
            so_far.tokens + _tokens(row),
            so_far.microusd + row.cost_microusd,
            so_far.unpriced + row.unpriced,
        )
    return list(found.values())


def of_runs(runs: Sequence[RunUse], times: int, basis: str = "") -> RunForecast:
    """Forecast a number of runs like these. The one place where runs of a schedule become its
    forecast.
    """
    if not runs:
        return RunForecast(runs=0, times=times, basis="nothing: no run has used a model yet")
    tokens = sum(each.tokens for each in runs) // len(runs)
    microusd = -(-sum(each.microusd for each in runs) // len(runs))
    return RunForecast(
        runs=len(runs),
        times=times,
        tokens=tokens,
        microusd=microusd,
        most_microusd=max(each.microusd for each in runs),
        expected_tokens=tokens * times,
        expected_microusd=microusd * times,
        unpriced=sum(each.unpriced for each in runs),
        basis=basis or f"its last {len(runs)} runs",
    )
