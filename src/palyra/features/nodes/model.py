"""A node as it is shown."""

from typing import Literal

from msgspec import Struct

NodeState = Literal["leading", "standing by", "draining", "gone"]


class NodeInfo(Struct, frozen=True):
    """`epoch`: how often the lease has changed hands, where this node leads; else 0. `address`:
    where the other nodes reach it, while it leads. `silent_ms`: since it was last heard.
    """

    node_id: str
    name: str
    state: NodeState
    version: str
    address: str
    epoch: int
    started_ms: int
    heartbeat_ms: int
    silent_ms: int


class NodeList(Struct, frozen=True):
    """Nodes of the journal; none where it is a file or belongs to one daemon alone."""

    nodes: tuple[NodeInfo, ...]
