"""Putting old sessions away and bringing them back, over HTTP; and cleaning up."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.retention.service import (
    Archived,
    Cleaned,
    DeletedSession,
    Maintained,
    Retention,
)
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.segments import Segment
from palyra.store.sessions import Session


class ArchiveOld(Input, frozen=True, kw_only=True):
    """`days`: not used for so many; without it, as the settings say. `dry_run`: only tell what
    would be put away.
    """

    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    dry_run: bool = False


class Clean(Input, frozen=True, kw_only=True):
    dry_run: bool = False


class SegmentList(Struct, frozen=True):
    segments: list[Segment]


class CleanedUp(Struct, frozen=True, omit_defaults=True):
    """`file` is left out of a dry run: the database file is looked after, or it is not."""

    artifacts: Cleaned
    file: Maintained | None = None


async def archive_old(call: ApiCall[Nothing, ArchiveOld]) -> HttpResponse:
    services, body = call.services, call.body
    report = await services.get(Retention).archive_old(body.days, dry_run=body.dry_run)
    if not body.dry_run:
        details = {
            "days": report.days,
            "sessions": len(report.sessions),
            "segments": report.segments,
        }
        told = AdminChanged(what="journal", action="archived old sessions", details=details)
        await services.get(Database).write(
            lambda tx: tape.append(tx, SYSTEM_TAPE, call.principal, [told])
        )
    return ok(report)


async def clean(call: ApiCall[Nothing, Clean]) -> HttpResponse:
    services = call.services
    cleaned = await services.get(Retention).clean(dry_run=call.body.dry_run)
    if call.body.dry_run:
        return ok(CleanedUp(cleaned))
    kept = await services.get(Retention).maintain()
    told = AdminChanged(
        what="journal",
        action="cleaned",
        details={"artifacts": cleaned.artifacts, "bytes": cleaned.bytes},
    )
    await services.get(Database).write(
        lambda tx: tape.append(tx, SYSTEM_TAPE, call.principal, [told])
    )
    return ok(CleanedUp(cleaned, kept))


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(SegmentList(await call.services.get(Retention).listing()))


async def restore(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Retention).restore(call.principal, call.path["session_id"]))


async def delete(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Retention).delete(call.principal, call.path["session_id"]))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/journal/archive",
        summary="seal sessions that were not used for long, or list them",
        handler=archive_old,
        scope="owner",
        body=ArchiveOld,
        gives=(Gives(200, Archived),),
    ),
    Route(
        method="POST",
        path="/v1/journal/clean",
        summary="remove artifacts that nothing names, and look after the database file",
        handler=clean,
        scope="owner",
        body=Clean,
        gives=(Gives(200, CleanedUp),),
    ),
    Route(
        method="GET",
        path="/v1/journal/segments",
        summary="the segments that hold sealed sessions",
        handler=listing,
        scope="owner",
        gives=(Gives(200, SegmentList),),
    ),
    Route(
        method="DELETE",
        path="/v1/sessions/{session_id}",
        summary="take a session out of the journal, the lists and search; a sealed copy proves it",
        handler=delete,
        scope="operator",
        gives=(Gives(200, DeletedSession),),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/sessions/{session_id}/restore",
        summary="restore a sealed session",
        handler=restore,
        scope="operator",
        gives=(Gives(200, Session),),
        errors=(409,),
    ),
)
