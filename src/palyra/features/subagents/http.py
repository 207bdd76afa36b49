"""Subagents over HTTP: who works for a session, and how far each has come."""

from typing import Any

from msgspec import Struct

from palyra.api.calls import ApiCall, HttpResponse, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.store import sessions, subagents
from palyra.store.database import Database, Tx
from palyra.store.subagents import Agent


class Agents(Struct, frozen=True):
    """The tree of a session's subagents, each behind the one it works for."""

    agents: list[Agent]


async def tree(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    session_id = call.path["session_id"]

    def query(tx: Tx) -> list[Agent]:
        sessions.get(tx, session_id, call.principal)
        return subagents.tree(tx, session_id)

    return ok(Agents(await call.services.get(Database).read(query)))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/sessions/{session_id}/agents",
        summary="the subagents that work or worked for a session, as a tree",
        handler=tree,
        gives=(Gives(200, Agents),),
    ),
)
