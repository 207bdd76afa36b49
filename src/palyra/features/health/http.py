"""The daemon's health over HTTP: the doctor's checks and repairs, incidents, and notices to whoever
asks.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.api.routes import Gives, Route
from palyra.features.health.doctor import Diagnosis, Doctor, Repaired
from palyra.features.health.incidents import IncidentList, Incidents
from palyra.features.health.load import LoadHistory, LoadSample
from palyra.features.health.rows import Incident
from palyra.features.health.watchdog import Healing, Watchdog
from palyra.features.notices.service import NoticeList, Notices

CheckId = Annotated[str, Meta(pattern="^$|^[A-Za-z0-9_:.-]{1,128}$")]


class Examine(Input, frozen=True, kw_only=True):
    """`deep`: check every entry of the journal too, which takes a while."""

    deep: bool = False


class WhichCheck(Input, frozen=True, kw_only=True):
    """Empty: everything that is not well and can be repaired."""

    id: CheckId = ""


class IncidentsQuery(Input, frozen=True, kw_only=True):
    """`before`: an incident's id, for the page after it."""

    open: bool | None = None
    before: Ulid = ""
    limit: Limit = 100


class NoticesQuery(Input, frozen=True, kw_only=True):
    """`before`: a notice's id, for the page after it."""

    unread: bool | None = None
    before: Ulid = ""
    limit: Limit = 100


class WhichNotice(Input, frozen=True, kw_only=True):
    """Empty: all of them."""

    notice_id: Ulid = ""


class MarkedRead(Struct, frozen=True):
    """Number of notices that were unread."""

    marked: int


async def examine(call: ApiCall[Examine, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Doctor).examine(deep=call.query.deep))


async def repair(call: ApiCall[Nothing, WhichCheck]) -> HttpResponse:
    return ok(await call.services.get(Doctor).repair(call.principal, call.body.id))


class Watching(Struct, frozen=True):
    """Settings of the watchdog, and when it looked last."""

    settings: Healing
    looked_ms: int


async def watching(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    watchdog = call.services.get(Watchdog)
    return ok(Watching(watchdog.settings, watchdog.looked_ms))


class Load(Struct, frozen=True):
    """Samples of the last hours, oldest first; the last is of now."""

    samples: list[LoadSample]


async def load(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(Load(await call.services.get(LoadHistory).samples()))


async def incidents(call: ApiCall[IncidentsQuery, Nothing]) -> HttpResponse:
    query = call.query
    return ok(
        await call.services.get(Incidents).listing(
            is_open=query.open, before=query.before, limit=query.limit
        )
    )


async def incident(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Incidents).get(call.path["incident_id"]))


async def notices(call: ApiCall[NoticesQuery, Nothing]) -> HttpResponse:
    query = call.query
    return ok(
        await call.services.get(Notices).listing(
            call.principal, unread=query.unread, before=query.before, limit=query.limit
        )
    )


async def read_notices(call: ApiCall[Nothing, WhichNotice]) -> HttpResponse:
    return ok(
        MarkedRead(await call.services.get(Notices).read(call.principal, call.body.notice_id))
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/doctor",
        summary="what is well and what is not, with a fix for each",
        handler=examine,
        scope="owner",
        query=Examine,
        gives=(Gives(200, Diagnosis),),
    ),
    Route(
        method="POST",
        path="/v1/doctor/repair",
        summary="repair one check, or all that can be",
        handler=repair,
        scope="owner",
        body=WhichCheck,
        gives=(Gives(200, Repaired),),
        errors=(404, 409),
    ),
    Route(
        method="GET",
        path="/v1/healing",
        summary="how watchful the daemon is, and when it looked last",
        handler=watching,
        gives=(Gives(200, Watching),),
    ),
    Route(
        method="GET",
        path="/v1/load",
        summary="processor, memory, disk, queue and journal over the last hours",
        handler=load,
        scope="owner",
        gives=(Gives(200, Load),),
    ),
    Route(
        method="GET",
        path="/v1/incidents",
        summary="what went wrong with the daemon, and what was tried",
        handler=incidents,
        query=IncidentsQuery,
        gives=(Gives(200, IncidentList),),
    ),
    Route(
        method="GET",
        path="/v1/incidents/{incident_id}",
        summary="one incident",
        handler=incident,
        gives=(Gives(200, Incident),),
    ),
    Route(
        method="GET",
        path="/v1/notices",
        summary="what the caller was told without asking, newest first",
        handler=notices,
        query=NoticesQuery,
        gives=(Gives(200, NoticeList),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/notices/read",
        summary="mark one notice as read, or all",
        handler=read_notices,
        scope="operator",
        body=WhichNotice,
        gives=(Gives(200, MarkedRead),),
        errors=(404,),
    ),
)
