"""Compaction over HTTP: look, apply, list, take back, and pin what is to stay whole."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Route, json_of
from palyra.core.errors import InvalidInput
from palyra.features.compaction.service import Compact, Compacting, Compaction, Pinned, Uncompacted


class CompactionPage(Struct, frozen=True):
    """All of a session, oldest first."""

    compactions: list[Compaction]


class Pin(Input, frozen=True, kw_only=True):
    """`seq` is any entry of the exchange."""

    seq: Annotated[int, Meta(ge=1)]
    removed: bool = False


async def compact(call: ApiCall[Nothing, Compact]) -> HttpResponse:
    return ok(
        await call.services.get(Compacting).compact(
            call.principal, call.path["session_id"], call.body
        )
    )


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        CompactionPage(
            await call.services.get(Compacting).listing(call.principal, call.path["session_id"])
        )
    )


async def undo(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    seq = call.path["seq"]
    if not seq.isascii() or not seq.isdecimal() or len(seq) > 15:
        raise InvalidInput("seq is the number of an entry", seq=seq[:40])
    return ok(
        await call.services.get(Compacting).undo(call.principal, call.path["session_id"], int(seq))
    )


async def pin(call: ApiCall[Nothing, Pin]) -> HttpResponse:
    body = call.body
    return ok(
        await call.services.get(Compacting).pin(
            call.principal, call.path["session_id"], body.seq, removed=body.removed
        )
    )


_SESSION = "/v1/sessions/{session_id}"


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path=f"{_SESSION}/compaction",
        summary="condense the older turns of a session, or say what that would be",
        handler=compact,
        scope="operator",
        body=Compact,
        gives=json_of(Compaction),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/compactions",
        summary="the compactions of a session, oldest first",
        handler=listing,
        gives=json_of(CompactionPage),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/compactions/{{seq}}/undo",
        summary="undo a compaction and those built on it",
        handler=undo,
        scope="operator",
        gives=json_of(Uncompacted),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/pins",
        summary="keep an exchange whole in every compaction, or no longer",
        handler=pin,
        scope="operator",
        body=Pin,
        gives=json_of(Pinned),
        errors=(409,),
    ),
)
