"""What can be done with nodes: look at them, and have the one that leads hand over."""

from palyra.core.errors import Conflict, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.nodes import rows
from palyra.features.nodes.model import NodeInfo, NodeList
from palyra.store import tape
from palyra.store.database import Database, Tx


class Nodes:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def list(self) -> NodeList:
        return NodeList(tuple(await self._db.read(rows.nodes)))

    async def drain(self, by: str, name: str) -> NodeInfo:
        """Have the node that leads hand over, named by its name or id; empty: whichever leads."""

        def step(tx: Tx) -> NodeInfo:
            found = rows.nodes(tx)
            chosen = _chosen(found, name)
            others = [each for each in found if each.node_id != chosen.node_id]
            if all(each.state == "gone" for each in others):
                raise Conflict(
                    "no other node is there to take over: start one, or stop this one with"
                    " `palyra stop --daemon`"
                )
            rows.wish_to_drain(tx, chosen.node_id)
            event = AdminChanged(what="daemon", action="node drained", subject=chosen.name)
            tape.append(tx, SYSTEM_TAPE, by, [event])
            return chosen

        return await self._db.write(step)


def _chosen(found: list[NodeInfo], name: str) -> NodeInfo:
    if not found:
        raise Conflict("this daemon is the only one of its journal: there is nothing to hand over")
    if not name:
        return found[0]
    named = [each for each in found if name in (each.name, each.node_id)]
    if len(named) > 1:
        raise Conflict(f"{len(named)} nodes are called {name}: give the id of one", name=name)
    if not named:
        raise NotFound(f"there is no node {name}: see `palyra nodes`", name=name)
    if not named[0].epoch:
        raise Conflict(f"{name} does not lead: it has nothing to hand over", name=name)
    return named[0]
