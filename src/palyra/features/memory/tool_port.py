"""Memory as the tools see it: from inside a call's session, with the label of what the run had read
when the call was proposed.
"""

from palyra.core import labels
from palyra.core.labels import CLEAN, Label
from palyra.core.ports import CallContext
from palyra.features.memory.model import Found, Item, Kind, NewMemory, ScopeKind
from palyra.features.memory.service import Memory, MemoryChange, Origin
from palyra.store import tape
from palyra.store.database import Database, Tx


class SessionKeeper:
    def __init__(self, db: Database, memory: Memory) -> None:
        self._db = db
        self._memory = memory

    async def search(self, context: CallContext, text: str, limit: int) -> tuple[list[Found], str]:
        where = await self._memory.where(context.principal, context.session_id)
        searched = await self._memory.search(where, text, limit)
        return searched.found, searched.words_only

    async def write(
        self, context: CallContext, text: str, kind: Kind, scope: ScopeKind, corrects: str
    ) -> Item:
        where = await self._memory.where(context.principal, context.session_id)
        origin = await self._db.read(lambda tx: _origin(tx, context))
        if corrects:
            return await self._memory.change(
                where, corrects, MemoryChange(text=text, kind=kind), origin
            )
        return await self._memory.add(where, NewMemory(text=text, kind=kind, scope=scope), origin)

    async def forget(self, context: CallContext, memory_id: str) -> Item:
        where = await self._memory.where(context.principal, context.session_id)
        return await self._memory.forget(where, memory_id, context.run_id)


def _origin(tx: Tx, context: CallContext) -> Origin:
    """What the call was made from. Without a record of that, nothing is known to be trusted."""
    asked = tape.proposal(tx, context.run_id, context.call_id).asked
    label = (
        asked.label
        if asked is not None
        else labels.join([CLEAN, Label("untrusted", sources=("unknown",))])
    )
    started = tape.last_start(tx, context.run_id)
    return Origin("tool", label, (started,) if started else (), context.run_id)
