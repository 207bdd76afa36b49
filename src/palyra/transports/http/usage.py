"""What models cost and what they may cost. Everybody sees their own; only an owner's token sees everybody's and sets limits."""

from msgspec import Struct

from palyra.domain.errors import Forbidden
from palyra.journal import usage
from palyra.journal.usage import Asked, GroupBy, UsageRow
from palyra.transports.http.calls import Answer, Call, Count, Input, Limit, Nothing, Ulid, ok


class UsageQuery(Input, frozen=True, kw_only=True):
    """`everybody` is for an owner's token: the usage of all principals."""

    by: GroupBy = "day"
    since_ms: Count = 0
    until_ms: Count = (1 << 53) - 1
    session_id: Ulid = ""
    run_id: Ulid = ""
    schedule_id: Ulid = ""
    everybody: bool = False
    limit: Limit = 100


class UsageList(Struct, frozen=True):
    """`total` is of all groups, also of those beyond the limit."""

    usage: list[UsageRow]
    total: UsageRow


async def used(call: Call[UsageQuery, Nothing]) -> Answer:
    query = call.query
    if query.everybody and call.token.scope != "owner":
        raise Forbidden("everybody's usage is for an owner's token; leave `everybody` away to see your own")
    asked = Asked(
        principal="" if query.everybody else call.principal,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        session_id=query.session_id,
        run_id=query.run_id,
        schedule_id=query.schedule_id,
    )
    found = await call.parts.db.read(lambda tx: (usage.grouped(tx, query.by, asked, query.limit), usage.total(tx, asked)))
    return ok(UsageList(*found))
