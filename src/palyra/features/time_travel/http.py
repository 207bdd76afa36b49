"""Time travel over HTTP: a session at any of its entries, and back to it."""

from typing import Annotated

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.features.time_travel.rewind import Rewind, Rewinding
from palyra.features.time_travel.session_snapshot import Moments


class At(Input, frozen=True, kw_only=True):
    """`turns`: how many, the newest ones."""

    turns: Annotated[int, Meta(ge=1, le=1_000)] = 200


async def at(call: ApiCall[At, Nothing]) -> HttpResponse:
    path = call.path
    return ok(
        await call.services.get(Moments).at(
            call.principal, path["session_id"], int(path["seq"]), call.query.turns
        )
    )


async def rewind(call: ApiCall[Nothing, Rewind]) -> HttpResponse:
    return ok(
        await call.services.get(Rewinding).rewind(
            call.principal, call.path["session_id"], call.body
        )
    )
