"""Usage of models and its cost, summed by whatever one asks about. Every row here is an entry of a
tape in numbers.
"""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.store.database import Tx

GroupBy = Literal[
    "call",
    "run",
    "session",
    "model",
    "principal",
    "schedule",
    "origin",
    "task",
    "hour",
    "day",
    "month",
]
_GROUPS: dict[GroupBy, str] = {
    "call": "CAST(u.position AS TEXT)",
    "run": "u.run_id",
    "session": "u.session_id",
    "model": "u.provider || '/' || u.model",
    "principal": "u.principal",
    "schedule": "r.schedule_id",
    "origin": "coalesce(r.origin, '')",
    "task": "u.task",
    "hour": "CAST(u.time_ms / 3600000 AS TEXT)",
    "day": "CAST(u.time_ms / 86400000 AS TEXT)",
    # By day first: what a month is, no two databases say in the same words.
    "month": "CAST(u.time_ms / 86400000 AS TEXT)",
}
_JOINED: frozenset[GroupBy] = frozenset({"schedule", "origin"})
_SUMS = """count(*), coalesce(sum(u.input_tokens), 0), coalesce(sum(u.output_tokens), 0), coalesce(sum(u.cached_tokens), 0),
    coalesce(sum(u.cost_microusd), 0), CAST(coalesce(avg(u.duration_ms), 0) AS INTEGER),
    CAST(coalesce(avg(u.first_delta_ms), 0) AS INTEGER), coalesce(sum(u.unpriced), 0), coalesce(max(u.duration_ms), 0),
    coalesce(min(u.time_ms), 0), coalesce(max(u.time_ms), 0), coalesce(sum(u.estimated), 0),
    coalesce(sum(u.cache_write_tokens), 0)"""  # noqa: E501


class UsageRow(Struct, frozen=True):
    """`group` is what was grouped by: an id, `provider/model`, a name; hours and days as their
    number since 1970, months as `2026-11`, all UTC. `duration_ms` and `first_delta_ms` (until the
    first word) are means per call, `slowest_ms` is the longest.

    The `_p50_` and `_p95_` fields are the median and the 95th percentile of the calls; a call
    without a first word, as one that answers with tool calls alone, has no part in `first_p…`.

    `unpriced` calls have no known cost: `cost_microusd` is of the others. `estimated` calls are
    counted by us, because the provider did not say what they used: most of them were broken off.
    """

    group: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int
    duration_ms: int
    first_delta_ms: int
    unpriced: int = 0
    slowest_ms: int = 0
    # When the first and the last call of the group ended.
    from_ms: int = 0
    until_ms: int = 0
    estimated: int = 0
    cache_write_tokens: int = 0
    first_p50_ms: int = 0
    first_p95_ms: int = 0
    duration_p50_ms: int = 0
    duration_p95_ms: int = 0


class UsageFilter(Struct, frozen=True, kw_only=True):
    """Which calls are counted. An empty principal means everybody's."""

    principal: str = ""
    since_ms: int = 0
    until_ms: int = 1 << 53
    session_id: str = ""
    run_id: str = ""
    schedule_id: str = ""

    @property
    def where(self) -> str:
        only = ["u.time_ms >= :since_ms", "u.time_ms < :until_ms"]
        only += [
            f"u.{name} = :{name}"
            for name in ("principal", "session_id", "run_id")
            if getattr(self, name)
        ]
        if self.schedule_id:
            only.append("r.schedule_id = :schedule_id")
        return " AND ".join(only)

    def source(self, by: GroupBy | None = None) -> str:
        joined = by in _JOINED or bool(self.schedule_id)
        return "usage u LEFT JOIN runs r ON r.run_id = u.run_id" if joined else "usage u"

    @property
    def values(self) -> dict[str, str | int]:
        return {
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "principal": self.principal,
            "session_id": self.session_id,
            "run_id": self.run_id,
            "schedule_id": self.schedule_id,
        }


def grouped(tx: Tx, by: GroupBy, asked: UsageFilter, limit: int = 100) -> list[UsageRow]:
    """Newest groups first. What has no group, as a call of no schedule, is in none."""
    rows = tx.all(
        f"""SELECT {_GROUPS[by]} AS grouped, {_SUMS} FROM {asked.source(by)} WHERE {asked.where}
        GROUP BY {_GROUPS[by]} HAVING {_GROUPS[by]} <> '' ORDER BY max(u.position) DESC LIMIT
        :limit""",
        **asked.values,
        limit=limit * 31 if by == "month" else limit,
    )
    found = [UsageRow(*row) for row in rows]
    if by == "month":
        return [_with_month_percentiles(tx, row, asked) for row in _months(found)[:limit]]
    ranked = _percentiles(tx, by, asked)
    return [msgspec.structs.replace(row, **ranked[row.group]) for row in found]


def _percentiles(tx: Tx, by: GroupBy | None, asked: UsageFilter) -> dict[str, dict[str, int]]:
    """The median and the 95th percentile of each group by nearest rank; of all calls under `all`
    without one.
    """
    group = _GROUPS[by] if by else "'all'"
    found: dict[str, dict[str, int]] = {}
    for name, column in (("first", "first_delta_ms"), ("duration", "duration_ms")):
        rows = tx.all(
            f"""SELECT grouped, min(CASE WHEN place * 100 >= many * 50 THEN value END),
                min(CASE WHEN place * 100 >= many * 95 THEN value END)
            FROM (SELECT {group} AS grouped, u.{column} AS value,
                row_number() OVER (PARTITION BY {group} ORDER BY u.{column}) AS place,
                count(*) OVER (PARTITION BY {group}) AS many
                FROM {asked.source(by)} WHERE {asked.where} AND u.{column} > 0) ranked
            GROUP BY grouped""",
            **asked.values,
        )
        for key, half, most in rows:
            found.setdefault(key, {}).update({f"{name}_p50_ms": half, f"{name}_p95_ms": most})
    return defaultdict(dict, found)


def _with_month_percentiles(tx: Tx, row: UsageRow, asked: UsageFilter) -> UsageRow:
    """From its own calls: percentiles of days do not add up."""
    within = msgspec.structs.replace(
        asked,
        since_ms=max(asked.since_ms, row.from_ms),
        until_ms=min(asked.until_ms, row.until_ms + 1),
    )
    return msgspec.structs.replace(row, **_percentiles(tx, None, within)["all"])


def _months(days: list[UsageRow]) -> list[UsageRow]:
    months: dict[str, list[UsageRow]] = {}
    for day in days:
        name = datetime.fromtimestamp(int(day.group) * 86_400, UTC).strftime("%Y-%m")
        months.setdefault(name, []).append(day)
    return [_together(name, rows) for name, rows in months.items()]


def _together(name: str, rows: list[UsageRow]) -> UsageRow:
    calls = sum(row.calls for row in rows)
    return UsageRow(
        group=name,
        calls=calls,
        input_tokens=sum(row.input_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        cost_microusd=sum(row.cost_microusd for row in rows),
        duration_ms=sum(row.duration_ms * row.calls for row in rows) // calls,
        first_delta_ms=sum(row.first_delta_ms * row.calls for row in rows) // calls,
        unpriced=sum(row.unpriced for row in rows),
        slowest_ms=max(row.slowest_ms for row in rows),
        from_ms=min(row.from_ms for row in rows),
        until_ms=max(row.until_ms for row in rows),
        estimated=sum(row.estimated for row in rows),
        cache_write_tokens=sum(row.cache_write_tokens for row in rows),
    )


def total(tx: Tx, asked: UsageFilter) -> UsageRow:
    row = tx.one(f"SELECT 'all', {_SUMS} FROM {asked.source()} WHERE {asked.where}", **asked.values)
    assert row is not None
    return msgspec.structs.replace(UsageRow(*row), **_percentiles(tx, None, asked)["all"])


class Spent(Struct, frozen=True):
    """Usage so far, as of an entry of the journal."""

    tokens: int
    microusd: int
    position: int


def spent(tx: Tx, asked: UsageFilter) -> Spent:
    row = tx.one(
        f"""SELECT coalesce(sum(u.input_tokens + u.output_tokens), 0),
        coalesce(sum(u.cost_microusd), 0),
            (SELECT coalesce(max(position), 0) FROM entries)
        FROM {asked.source()} WHERE {asked.where}""",
        **asked.values,
    )
    assert row is not None
    return Spent(*row)


class RunUse(Struct, frozen=True):
    """Usage of a schedule's run, with all its subagents."""

    schedule_id: str
    run_id: str
    tokens: int
    microusd: int
    unpriced: int


def of_schedules(
    tx: Tx, owner: str, schedule_id: str = "", last: int = 20
) -> dict[str, list[RunUse]]:
    """The last so many runs of each of an owner's schedules, or of one, that came to an end and had
    asked a model.

    By way of the firings: they know their runs, and asking so costs the same however much was ever
    used.
    """
    rows = tx.all(
        """WITH RECURSIVE tree (schedule_id, root, run_id) AS (
            SELECT f.schedule_id, f.run_id, f.run_id FROM schedules s JOIN firings f ON
            f.schedule_id = s.schedule_id
                WHERE s.owner = :owner AND (:schedule_id = '' OR s.schedule_id = :schedule_id)
                AND f.run_id <> '' AND f.state IN ('done', 'failed', 'cancelled') AND f.due_ms >=
                coalesce((
                    SELECT due_ms FROM firings WHERE schedule_id = s.schedule_id AND run_id <> ''
                    AND state IN ('done', 'failed', 'cancelled') ORDER BY due_ms DESC LIMIT 1 OFFSET
                    :last - 1), 0)
            UNION ALL SELECT tree.schedule_id, root, c.run_id FROM tree JOIN children c ON
            c.parent_run_id = tree.run_id)
        SELECT schedule_id, root, sum(u.input_tokens + u.output_tokens), sum(u.cost_microusd),
        sum(u.unpriced)
        FROM tree CROSS JOIN usage u WHERE u.run_id = tree.run_id GROUP BY schedule_id, root""",
        owner=owner,
        schedule_id=schedule_id,
        last=last,
    )
    found: dict[str, list[RunUse]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(RunUse(*row))
    return found


class ModelUse(Struct, frozen=True):
    """Usage of one model."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int
    cache_write_tokens: int = 0


def between(tx: Tx, after: int, last: int) -> list[ModelUse]:
    """Return the usage of each model between two positions, the second one included, by anybody."""
    rows = tx.all(
        """SELECT provider, model, count(*), sum(input_tokens), sum(output_tokens),
        sum(cached_tokens), sum(cost_microusd), sum(cache_write_tokens)
        FROM usage WHERE position > :after AND position <= :last GROUP BY provider, model""",
        after=after,
        last=last,
    )
    return [ModelUse(*row) for row in rows]
