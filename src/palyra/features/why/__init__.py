"""Causes of any effect on a tape, as a tree."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.why.service import CauseFinder
    from palyra.store.database import Database

    w.add(CauseFinder(w.get(Database)))
