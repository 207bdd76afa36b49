"""Time travel over HTTP: a session at any of its entries, and back to it."""

from typing import Annotated, Any

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route, json_of
from palyra.features.time_travel import replay_http
from palyra.features.time_travel.rewind import Rewind, Rewinding, Rewound
from palyra.features.time_travel.session_snapshot import Moment, Moments
from palyra.features.time_travel.undo import Undo, Undoing, Undone


class At(Input, frozen=True, kw_only=True):
    """`turns`: how many, the newest ones."""

    turns: Annotated[int, Meta(ge=1, le=1_000)] = 200


async def at(call: ApiCall[At, Nothing]) -> HttpResponse:
    path = call.path
    return ok(
        await call.services.get(Moments).at(
            call.principal, path["session_id"], int(path["seq"]), call.query.turns
        )
    )


async def rewind(call: ApiCall[Nothing, Rewind]) -> HttpResponse:
    return ok(
        await call.services.get(Rewinding).rewind(
            call.principal, call.path["session_id"], call.body
        )
    )


_SESSION = "/v1/sessions/{session_id}"


async def undo_changes(call: ApiCall[Nothing, Undo]) -> HttpResponse:
    return ok(
        await call.services.get(Undoing).undo(call.principal, call.path["session_id"], call.body)
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path=f"{_SESSION}/at/{{seq}}",
        summary="a session as it was after an entry, and what came since",
        handler=at,
        query=At,
        gives=(Gives(200, Moment),),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/rewind",
        summary="take files and conversation back to an entry, or preview it",
        handler=rewind,
        scope="operator",
        body=Rewind,
        gives=(Gives(200, Rewound),),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/undo",
        summary="undo effects",
        handler=undo_changes,
        scope="operator",
        body=Undo,
        gives=json_of(Undone),
        errors=(409,),
    ),
    *replay_http.ROUTES,
)
