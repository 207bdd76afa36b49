"""Restarting the daemon over HTTP, the hard way: it ends at once, as in a power cut, and starts
again in the same place.

What was under way goes on from the journal. That it was asked for is recorded before.
"""

from typing import Any

from palyra.api.calls import ApiCall, Count, DaemonInfo, HttpResponse, Input, Nothing
from palyra.api.routes import Gives, Route
from palyra.core.errors import Conflict
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Database


class Restart(Input, frozen=True, kw_only=True):
    """`started_ms`: when the daemon that shall end was started, as its status says. Asking twice
    then restarts it once.
    """

    started_ms: Count


async def restart(call: ApiCall[Nothing, Restart]) -> HttpResponse:
    if call.body.started_ms != call.services.get(DaemonInfo).started_ms:
        raise Conflict(
            "this is not the daemon that was to be restarted: look at its status again",
            started_ms=call.services.get(DaemonInfo).started_ms,
        )
    asked = AdminChanged(what="config", action="restarted", details={"hard": True})
    await call.services.get(Database).write(
        lambda tx: tape.append(tx, SYSTEM_TAPE, call.principal, [asked])
    )
    call.services.get(DaemonInfo).restart()
    return HttpResponse(202, b"{}")


RESTARTING: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/restart",
        summary="end at once, as in a power cut, and start again; what runs goes on",
        handler=restart,
        scope="owner",
        body=Restart,
        gives=(Gives(202, Nothing),),
        errors=(409,),
    ),
)
