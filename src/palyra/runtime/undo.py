"""Taking effects back: one call, or all of a run, newest first, with a look at what would change before."""

import asyncio

from msgspec import Struct

from palyra.domain import ids
from palyra.domain.errors import Conflict, InvalidInput, NotFound
from palyra.domain.events import FileChange, ToolUndone
from palyra.journal import runs, sessions, tape, workspace
from palyra.journal.database import Database, Tx
from palyra.journal.sessions import Session
from palyra.journal.workspace import EffectRow
from palyra.runtime.checkpointing import Checkpoints


class Undo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to take back: one call, all of a run, or (neither given) the newest effect of the session.

    `force` overwrites files that were changed since by someone else.
    """

    call_id: str = ""
    run_id: str = ""
    dry_run: bool = False
    force: bool = False


class Undone(Struct, frozen=True, kw_only=True):
    calls: tuple[str, ...]
    changes: tuple[FileChange, ...]
    dry_run: bool = False


class Undoing:
    def __init__(self, db: Database, checkpoints: Checkpoints) -> None:
        self._db = db
        self._checkpoints = checkpoints
        # One at a time: two restorations of the same files must not interleave.
        self._lock = asyncio.Lock()

    async def undo(self, principal: str, session_id: str, wanted: Undo) -> Undone:
        for name, given in (("call_id", wanted.call_id), ("run_id", wanted.run_id)):
            if given:
                ids.check(given, name)
        if wanted.call_id and wanted.run_id:
            raise InvalidInput("undo takes a call_id or a run_id, not both")
        async with self._lock:
            session, effects = await self._db.read(lambda tx: _chosen(tx, principal, session_id, wanted))
            changes: list[FileChange] = []
            for effect in effects:
                changes.extend(await self._undo_one(session, effect, wanted))
        return Undone(calls=tuple(effect.call_id for effect in effects), changes=tuple(changes), dry_run=wanted.dry_run)

    async def _undo_one(self, session: Session, effect: EffectRow, wanted: Undo) -> list[FileChange]:
        sealed = await self._db.read(lambda tx: workspace.checkpoint(tx, effect.call_id))
        if wanted.dry_run:
            return await self._checkpoints.plan(sealed, session.workspace, effect.call_id)
        changes = await self._checkpoints.restore(sealed, session.workspace, effect.call_id, force=wanted.force)
        undone = ToolUndone(call_id=ids.CallId(effect.call_id), changes=tuple(changes))

        def step(tx: Tx) -> None:
            tape.append(tx, session.session_id, session.owner, [undone], effect.run_id)
            workspace.mark_undone(tx, effect.call_id)

        await self._db.write(step)
        return changes


def _chosen(tx: Tx, principal: str, session_id: str, wanted: Undo) -> tuple[Session, list[EffectRow]]:
    session = sessions.get(tx, session_id, principal)
    if any(run.state == "in_progress" for run in runs.unfinished(tx, session_id=session_id)):
        raise Conflict("a run is working in this session: stop it, or wait for it, before undoing")
    effects = workspace.undoable(tx, session_id=session_id, run_id=wanted.run_id, call_id=wanted.call_id)
    open_effects = [effect for effect in effects if not effect.undone_ms]
    if not effects:
        raise NotFound("nothing was changed here that could be undone")
    if not open_effects:
        raise Conflict("that was undone already")
    return session, open_effects if wanted.run_id else open_effects[:1]
