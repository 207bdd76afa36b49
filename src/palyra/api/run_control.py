"""Verbs that control a run, over HTTP."""

from typing import Any

from palyra.agent.gateway import Gateway
from palyra.api import runs
from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Route, json_of
from palyra.store.runs import RunRow


class Retry(Input, frozen=True, kw_only=True):
    """`model`: ask this one instead, from now on in this run, as `provider/model`."""

    model: str = ""


async def retry(call: ApiCall[Nothing, Retry]) -> HttpResponse:
    gateway = call.services.get(Gateway)
    return ok(await gateway.retry(call.principal, call.path["run_id"], call.body.model))


RUN_CONTROL: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/runs/{run_id}/cancel",
        summary="end a run, in whatever state it is",
        handler=runs.cancel,
        client=True,
        scope="operator",
        body=runs.Cancel,
        gives=json_of(RunRow),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/runs/{run_id}/retry",
        summary="ask again now for a run that waits for its provider, with another model if named",
        handler=retry,
        client=True,
        scope="operator",
        body=Retry,
        gives=json_of(RunRow),
        errors=(409,),
    ),
)
