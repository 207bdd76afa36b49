"""Notices: what the owner is told without having asked."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.broadcast import Broadcast
    from palyra.agent.wait_port import OwnerNotices
    from palyra.api.about import UnreadNotices
    from palyra.features.notices.service import Notices
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    notices = Notices(w.get(Database), w.get(Broadcast), w.get(Redactor), w.get(Clock))
    w.add(notices, UnreadNotices, OwnerNotices)
