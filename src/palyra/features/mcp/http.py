"""MCP servers over HTTP: what they are and offer, a yes to their tools, and a new start."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Route, json_of
from palyra.core.argument_roles import ToolUse
from palyra.features.mcp.service import Mcp
from palyra.features.mcp.settings import ServerStatus

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ServerList(Struct, frozen=True):
    servers: tuple[ServerStatus, ...]


class Accept(Input, frozen=True, kw_only=True):
    """The fingerprint of one pending tool, or the server's own, which stands for everything that is
    pending.
    """

    fingerprint: Fingerprint
    # What arguments of these tools are for, instead of what is proposed.
    uses: dict[str, ToolUse] = {}


class SetUse(Input, frozen=True, kw_only=True):
    tool: str
    use: ToolUse


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ServerList(call.services.get(Mcp).status()))


async def accept(call: ApiCall[Nothing, Accept]) -> HttpResponse:
    return ok(
        await call.services.get(Mcp).accept(
            call.principal, call.path["server"], call.body.fingerprint, call.body.uses
        )
    )


async def set_use(call: ApiCall[Nothing, SetUse]) -> HttpResponse:
    return ok(
        await call.services.get(Mcp).set_use(
            call.principal, call.path["server"], call.body.tool, call.body.use
        )
    )


async def restart(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Mcp).restart(call.principal, call.path["server"]))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/mcp",
        summary="MCP servers: their state, their tools, what needs to be accepted",
        handler=listing,
        gives=json_of(ServerList),
    ),
    Route(
        method="POST",
        path="/v1/mcp/{server}/accept",
        summary="offer what a server says of its tools now",
        handler=accept,
        scope="owner",
        body=Accept,
        gives=json_of(ServerStatus),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/mcp/{server}/arguments",
        summary="say what the arguments of an accepted tool are for",
        handler=set_use,
        scope="owner",
        body=SetUse,
        gives=json_of(ServerStatus),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/mcp/{server}/restart",
        summary="restart a server",
        handler=restart,
        scope="owner",
        body=Nothing,
        gives=json_of(ServerStatus),
        errors=(409,),
    ),
)
