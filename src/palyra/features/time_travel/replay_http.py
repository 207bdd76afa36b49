"""Replaying and forking runs over HTTP."""

from typing import Annotated

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.core.errors import Forbidden
from palyra.features.time_travel.fork import Fork, Forking
from palyra.features.time_travel.replay.service import Replays


class Wait(Input, frozen=True, kw_only=True):
    """`wait_ms`: answer only when it is done, or after so long."""

    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


async def start(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Replays).start(call.principal, call.path["run_id"]), 202)


async def get(call: ApiCall[Wait, Nothing]) -> HttpResponse:
    return ok(
        await call.services.get(Replays).get(
            call.principal, call.path["run_id"], call.query.wait_ms
        )
    )


async def fork(call: ApiCall[Nothing, Fork]) -> HttpResponse:
    if call.body.policy and call.token.scope != "owner":
        # Otherwise whoever may talk to the agent could choose what it may do.
        raise Forbidden("only the owner may fork a run under other policies")
    return ok(
        await call.services.get(Forking).fork(call.principal, call.path["run_id"], call.body), 201
    )
