"""Replaying and forking runs over HTTP."""

from typing import Annotated, Any

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.core.errors import Forbidden
from palyra.features.time_travel.fork import Fork, Forked, Forking
from palyra.features.time_travel.replay.service import Replays, RunReplay


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


_RUN = "/v1/runs/{run_id}"

ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path=f"{_RUN}/replay",
        summary="run the loop again over a recorded run, without any effect",
        handler=start,
        scope="operator",
        body=Nothing,
        gives=(Gives(202, RunReplay),),
    ),
    Route(
        method="GET",
        path=f"{_RUN}/replay",
        summary="how far the replay of a run is, and where it differs",
        handler=get,
        query=Wait,
        gives=(Gives(200, RunReplay),),
    ),
    Route(
        method="POST",
        path=f"{_RUN}/fork",
        summary="take a run up again from an entry, live, with another model or policies",
        handler=fork,
        scope="operator",
        body=Fork,
        gives=(Gives(201, Forked),),
    ),
)
