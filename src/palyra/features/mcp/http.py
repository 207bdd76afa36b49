"""MCP servers over HTTP: what they are and offer, a yes to their tools, and a new start."""

from typing import Annotated

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.features.mcp.model import ServerStatus
from palyra.features.mcp.service import Mcp

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ServerList(Struct, frozen=True):
    servers: tuple[ServerStatus, ...]


class Accept(Input, frozen=True, kw_only=True):
    """The fingerprint of one pending tool, or the server's own, which stands for everything that is
    pending.
    """

    fingerprint: Fingerprint


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ServerList(call.services.get(Mcp).status()))


async def accept(call: ApiCall[Nothing, Accept]) -> HttpResponse:
    return ok(
        await call.services.get(Mcp).accept(
            call.principal, call.path["server"], call.body.fingerprint
        )
    )


async def restart(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Mcp).restart(call.principal, call.path["server"]))
