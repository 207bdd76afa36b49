"""Nodes over HTTP."""

from typing import Any

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.nodes.model import NodeInfo, NodeList
from palyra.features.nodes.service import Nodes


class DrainNode(Input, frozen=True, kw_only=True):
    """`node`: its name or id; empty for the one that leads."""

    node: str = ""


async def list_nodes(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Nodes).list())


async def drain(call: ApiCall[Nothing, DrainNode]) -> HttpResponse:
    return ok(await call.services.get(Nodes).drain(call.principal, call.body.node), 202)


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/nodes",
        summary="nodes of the journal, the one that leads first",
        scope="owner",
        handler=list_nodes,
        gives=(Gives(200, NodeList),),
    ),
    Route(
        method="POST",
        path="/v1/nodes/drain",
        summary="have the node that leads hand over between two steps",
        scope="owner",
        handler=drain,
        body=DrainNode,
        gives=(Gives(202, NodeInfo),),
        errors=(404, 409),
    ),
)
