"""The nodes of a journal that several daemons share, and handing over from one to another."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.nodes.service import Nodes
    from palyra.store.database import Database

    w.add(Nodes(w.get(Database)))
