"""What models were asked and what it cost, summed by whatever one asks about. Every row here is an
entry of a tape in numbers.
"""

from datetime import UTC, datetime
from typing import Literal

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
    coalesce(min(u.time_ms), 0), coalesce(max(u.time_ms), 0), coalesce(sum(u.estimated), 0)"""  # noqa: E501


class UsageRow(Struct, frozen=True):
    """`group` is what was grouped by: an id, `provider/model`, a name; hours and days as their
    number since 1970, months as `2026-11`, all UTC. `duration_ms` and `first_delta_ms` (until the
    first word) are means per call, `slowest_ms` is the longest.

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
    return _months(found)[:limit] if by == "month" else found


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
    )


def total(tx: Tx, asked: UsageFilter) -> UsageRow:
    row = tx.one(f"SELECT 'all', {_SUMS} FROM {asked.source()} WHERE {asked.where}", **asked.values)
    assert row is not None
    return UsageRow(*row)


class Spent(Struct, frozen=True):
    """What was used so far, as of an entry of the journal."""

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
    """What a run of a schedule used, with all that worked for it."""

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
    """What was asked of one model."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int


def between(tx: Tx, after: int, last: int) -> list[ModelUse]:
    """What was asked of each model between two positions, the second one included, by anybody."""
    rows = tx.all(
        """SELECT provider, model, count(*), sum(input_tokens), sum(output_tokens),
        sum(cached_tokens), sum(cost_microusd)
        FROM usage WHERE position > :after AND position <= :last GROUP BY provider, model""",
        after=after,
        last=last,
    )
    return [ModelUse(*row) for row in rows]
