"""Replaying and forking runs over HTTP."""

from palyra.domain.errors import Forbidden
from palyra.runtime.forking import Fork
from palyra.transports.http.calls import Answer, Call, Nothing, ok


async def start(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.replays.start(call.principal, call.path["run_id"]), 202)


async def get(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.replays.get(call.principal, call.path["run_id"]))


async def fork(call: Call[Nothing, Fork]) -> Answer:
    if call.body.policy and call.token.scope != "owner":
        # Otherwise whoever may talk to the agent could choose what it may do.
        raise Forbidden("only the owner may fork a run under other policies")
    return ok(await call.parts.forking.fork(call.principal, call.path["run_id"], call.body), 201)
