"""Workers over HTTP: who they are and what runs where; enrol, drain, revoke."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api import exposure
from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.workers.enrolment import Enrolment, WorkerDetail, WorkerShown
from palyra.features.workers.protocol import NAME_PATTERN
from palyra.features.workers.service import Workers


class WorkerList(Struct, frozen=True):
    """`port` is where workers connect; 0 while nothing listens for them. `hosts` is what this
    machine may be called by them.
    """

    workers: list[WorkerShown]
    port: int
    hosts: list[str]


class EnrolWorker(Input, frozen=True, kw_only=True):
    name: Annotated[str, Meta(pattern=NAME_PATTERN)]


class DrainWorker(Input, frozen=True, kw_only=True):
    on: bool = True


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    desk = call.services.get(Workers).desk
    return ok(WorkerList(await desk.listing(), desk.port, _hosts(call)))


def _hosts(call: ApiCall[Nothing, Nothing]) -> list[str]:
    door = next(
        (
            each.address
            for each in call.services.get(DaemonInfo).listeners
            if each.name == "workers"
        ),
        "",
    )
    host = door.rpartition(":")[0].strip("[]")
    if not host or exposure.is_loopback(host):
        return [host] if host else []
    return [
        each
        for each in exposure.names_of(host, call.services.get(DaemonInfo).exposure.names)
        if not exposure.is_loopback(each)
    ]


async def enrol(call: ApiCall[Nothing, EnrolWorker]) -> HttpResponse:
    return ok(await call.services.get(Workers).desk.enrol(call.principal, call.body.name), 201)


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Workers).desk.one(call.path["worker"]))


async def drain(call: ApiCall[Nothing, DrainWorker]) -> HttpResponse:
    return ok(
        await call.services.get(Workers).desk.drain(
            call.principal, call.path["worker"], on=call.body.on
        )
    )


async def revoke(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Workers).desk.revoke(call.principal, call.path["worker"]))


_WORKER = "/v1/workers/{worker}"
ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/workers",
        summary="workers on other machines, and what runs there",
        handler=listing,
        scope="owner",
        gives=(Gives(200, WorkerList),),
    ),
    Route(
        method="POST",
        path="/v1/workers",
        summary="a one-time code by which a machine becomes a worker",
        handler=enrol,
        scope="owner",
        body=EnrolWorker,
        gives=(Gives(201, Enrolment),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=_WORKER,
        summary="one worker, with the calls that it was given last",
        handler=get,
        scope="owner",
        gives=(Gives(200, WorkerDetail),),
    ),
    Route(
        method="POST",
        path=f"{_WORKER}/drain",
        summary="give it nothing new, or use it again",
        handler=drain,
        scope="owner",
        body=DrainWorker,
        gives=(Gives(200, WorkerShown),),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path=_WORKER,
        summary="revoke a worker: its certificate is no longer good",
        handler=revoke,
        scope="owner",
        gives=(Gives(200, WorkerShown),),
    ),
)
