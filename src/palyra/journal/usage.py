"""What models cost, summed by whatever one asks about."""

from typing import Literal

from msgspec import Struct

from palyra.journal.database import Tx

GroupBy = Literal["run", "session", "model", "day"]
_GROUPS: dict[GroupBy, str] = {
    "run": "run_id",
    "session": "session_id",
    "model": "provider || '/' || model",
    "day": "CAST(time_ms / 86400000 AS TEXT)",
}


class UsageRow(Struct, frozen=True):
    """`group` is the run, session, `provider/model`, or the day as days since 1970 (UTC)."""

    group: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int
    duration_ms: int
    first_delta_ms: int


def summed(tx: Tx, principal: str, by: GroupBy, *, since_ms: int = 0, session_id: str = "", limit: int = 100) -> list[UsageRow]:
    """Newest groups first. Durations are means per call."""
    rows = tx.all(
        f"""SELECT {_GROUPS[by]} AS grouped, count(*), sum(input_tokens), sum(output_tokens), sum(cached_tokens),
            sum(cost_microusd), CAST(avg(duration_ms) AS INTEGER), CAST(avg(first_delta_ms) AS INTEGER)
        FROM usage WHERE principal = :principal AND time_ms >= :since_ms AND (:session_id = '' OR session_id = :session_id)
        GROUP BY grouped ORDER BY max(position) DESC LIMIT :limit""",
        principal=principal,
        since_ms=since_ms,
        session_id=session_id,
        limit=limit,
    )
    return [UsageRow(*row) for row in rows]


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
        """SELECT provider, model, count(*), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cost_microusd)
        FROM usage WHERE position > :after AND position <= :last GROUP BY provider, model""",
        after=after,
        last=last,
    )
    return [ModelUse(*row) for row in rows]
