"""Written by scripts/clients.py from the route table: types of the verbs about nodes."""

from typing import Literal

from msgspec import Struct

__all__ = ["NodeInfo", "NodeList"]


class NodeInfo(Struct, frozen=True, kw_only=True):
    """`epoch`: how often the lease has changed hands, where this node leads; else 0. `address`:
    where the other nodes reach it, while it leads. `silent_ms`: since it was last heard.
    """

    node_id: str
    name: str
    state: Literal["draining", "gone", "leading", "standing by"]
    version: str
    address: str
    epoch: int
    started_ms: int
    heartbeat_ms: int
    silent_ms: int


class NodeList(Struct, frozen=True, kw_only=True):
    """Nodes of the journal; none where it is a file or belongs to one daemon alone."""

    nodes: tuple[NodeInfo, ...]
