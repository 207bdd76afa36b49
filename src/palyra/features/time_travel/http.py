"""Time travel over HTTP: a session at any of its entries, and back to it."""

from typing import Annotated

from msgspec import Meta

from palyra.api.calls import Answer, Call, Input, Nothing, ok
from palyra.features.time_travel.rewind import Rewind


class At(Input, frozen=True, kw_only=True):
    """`turns`: how many, the newest ones."""

    turns: Annotated[int, Meta(ge=1, le=1_000)] = 200


async def at(call: Call[At, Nothing]) -> Answer:
    path = call.path
    return ok(await call.parts.moments.at(call.principal, path["session_id"], int(path["seq"]), call.query.turns))


async def rewind(call: Call[Nothing, Rewind]) -> Answer:
    return ok(await call.parts.rewinding.rewind(call.principal, call.path["session_id"], call.body))
