"""Schedules over HTTP, and the door for signed webhooks."""

from typing import Any

from msgspec import Struct

from palyra.api.calls import ApiCall, HttpResponse, Nothing, Upload, ok
from palyra.api.routes import Route, Takes, json_of
from palyra.features.schedules.model import Firing, Schedule
from palyra.features.schedules.service import NewSchedule, Schedules, ShownSchedule
from palyra.features.schedules.webhooks import MOST_BYTES, Called, Hooks

_ONE = "/v1/schedules/{schedule_id}"


class ScheduleList(Struct, frozen=True):
    schedules: list[ShownSchedule]


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ScheduleList(await call.services.get(Schedules).listing(call.principal)))


async def add(call: ApiCall[Nothing, NewSchedule]) -> HttpResponse:
    return ok(await call.services.get(Schedules).add(call.principal, call.body), 201)


async def look_ahead(call: ApiCall[Nothing, NewSchedule]) -> HttpResponse:
    return ok(await call.services.get(Schedules).preview(call.principal, call.body))


async def show(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Schedules).show(call.principal, call.path["schedule_id"]))


async def change(call: ApiCall[Nothing, NewSchedule]) -> HttpResponse:
    schedules, schedule_id = call.services.get(Schedules), call.path["schedule_id"]
    return ok(await schedules.change(call.principal, schedule_id, call.body))


async def pause(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Schedules).pause(call.principal, call.path["schedule_id"]))


async def resume(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Schedules).resume(call.principal, call.path["schedule_id"]))


async def run(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Schedules).run(call.principal, call.path["schedule_id"]), 202)


async def remove(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Schedules).remove(call.principal, call.path["schedule_id"]))


async def hook(call: ApiCall[Nothing, Upload]) -> HttpResponse:
    headers = call.headers
    timestamp = headers.get(b"x-palyra-timestamp", b"").decode("latin-1")
    signature = headers.get(b"x-palyra-signature", b"").decode("latin-1")
    return ok(
        await call.services.get(Hooks).call(
            call.path["schedule_id"], timestamp, signature, call.body.data
        ),
        202,
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/schedules",
        summary="schedules, with their next times and what they may cost",
        handler=listing,
        gives=json_of(ScheduleList),
    ),
    Route(
        method="POST",
        path="/v1/schedules",
        summary="save a schedule; a webhook's secret is shown this once",
        handler=add,
        scope="operator",
        body=NewSchedule,
        gives=json_of(ShownSchedule, 201),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/schedules/preview",
        summary="what a schedule would be, saving nothing",
        handler=look_ahead,
        scope="operator",
        body=NewSchedule,
        gives=json_of(ShownSchedule),
        errors=(404,),
    ),
    Route(
        method="GET",
        path=_ONE,
        summary="one schedule, with what became of its last firings",
        handler=show,
        gives=json_of(ShownSchedule),
    ),
    Route(
        method="PUT",
        path=_ONE,
        summary="give a schedule other words, times or rules; it keeps its history",
        handler=change,
        scope="operator",
        body=NewSchedule,
        gives=json_of(ShownSchedule),
        errors=(404,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        summary="remove a schedule; runs that are under way go on",
        handler=remove,
        scope="operator",
        gives=json_of(Schedule),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/pause",
        summary="do not fire until it is resumed",
        handler=pause,
        scope="operator",
        body=Nothing,
        gives=json_of(ShownSchedule),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/resume",
        summary="fire again from now on",
        handler=resume,
        scope="operator",
        body=Nothing,
        gives=json_of(ShownSchedule),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/run",
        summary="fire now",
        handler=run,
        scope="operator",
        body=Nothing,
        gives=json_of(Firing, 202),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/hooks/{schedule_id}",
        summary="call a webhook, signed",
        handler=hook,
        scope=None,
        takes=Takes(b"*/*", MOST_BYTES),
        gives=json_of(Called, 202),
        errors=(401, 409),
        headers=(
            ("x-palyra-timestamp", "seconds since 1970, at most five minutes off"),
            (
                "x-palyra-signature",
                "`sha256=` and the HMAC-SHA256 of the time stamp, a dot and the body",
            ),
        ),
    ),
)
