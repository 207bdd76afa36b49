"""Compaction over HTTP: look, apply, list, take back, and pin what is to stay whole."""

from typing import Annotated

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.core.errors import InvalidInput
from palyra.features.compaction.service import Compact, Compacting, Compaction


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
