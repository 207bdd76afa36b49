"""Nodes as they said last that they are there. Only a journal in PostgreSQL has them."""

from typing import cast

from palyra.features.nodes.model import NodeInfo, NodeState
from palyra.store.database import Tx

_GONE_MS = 10_000


def nodes(tx: Tx) -> list[NodeInfo]:
    """Return the nodes, the one that leads first."""
    if not tx.connection.has_table("cluster_nodes"):
        return []
    rows = tx.all(
        "SELECT n.id, n.name, n.state, n.version, n.address, l.epoch, n.started_ms, n.heartbeat_ms,"
        " CAST(extract(epoch FROM clock_timestamp()) * 1000 AS INTEGER) - n.heartbeat_ms,"
        " CASE WHEN l.holder = n.id THEN 1 ELSE 0 END"
        " FROM cluster_nodes n, cluster_lease l ORDER BY 10 DESC, n.name, n.id"
    )
    return [_node(*row) for row in rows]


def _node(
    node_id: str,
    name: str,
    state: str,
    version: str,
    address: str,
    epoch: int,
    started_ms: int,
    heartbeat_ms: int,
    silent_ms: int,
    leads: int,
) -> NodeInfo:
    gone = state == "gone" or silent_ms > _GONE_MS
    shown = "gone" if gone else "standing by" if state == "leading" and not leads else state
    return NodeInfo(
        node_id=node_id,
        name=name,
        state=cast("NodeState", shown),
        version=version,
        address="" if gone else address,
        epoch=epoch if leads else 0,
        started_ms=started_ms,
        heartbeat_ms=heartbeat_ms,
        silent_ms=max(0, silent_ms),
    )


def wish_to_drain(tx: Tx, node_id: str) -> None:
    """Have a node hand over when it looks next."""
    tx.run("UPDATE cluster_nodes SET wish = 'drain' WHERE id = :node_id", node_id=node_id)
