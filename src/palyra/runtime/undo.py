"""Taking effects back: one call, or all of a run, newest first, with a look at what would change before."""

import asyncio

from msgspec import Struct

from palyra.domain import ids
from palyra.domain.errors import Conflict, InvalidInput, NotFound
from palyra.domain.events import FileChange, ToolUndone
from palyra.domain.redaction import Redactor
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
    def __init__(self, db: Database, checkpoints: Checkpoints, redactor: Redactor) -> None:
        self._db = db
        self._redactor = redactor
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
            session, effects = await self._db.read(lambda tx: _open_effects(tx, principal, session_id, wanted))
            undone: list[str] = []
            changes: list[FileChange] = []
            for effect in effects:
                changed = await self._undo_one(session, effect, wanted)
                # A call that was cancelled before it did anything is nothing to undo; without a name, the one before is meant.
                if changed or wanted.call_id or wanted.run_id:
                    undone.append(effect.call_id)
                    changes.extend(changed)
                    if not wanted.run_id:
                        break
        if not undone:
            raise NotFound("nothing was changed here that could be undone")
        return Undone(calls=tuple(undone), changes=tuple(changes), dry_run=wanted.dry_run)

    async def _undo_one(self, session: Session, effect: EffectRow, wanted: Undo) -> list[FileChange]:
        sealed = await self._db.read(lambda tx: workspace.checkpoint(tx, effect.call_id))
        planned = await self._checkpoints.plan(sealed, session.workspace, effect.call_id)
        if wanted.dry_run or not planned:
            return planned
        changes = await self._checkpoints.restore(sealed, session.workspace, effect.call_id, force=wanted.force)
        told = tuple(FileChange(self._redactor.redact(change.path), change.change) for change in changes)
        undone = ToolUndone(call_id=ids.CallId(effect.call_id), changes=told, tool=effect.tool)

        def step(tx: Tx) -> None:
            tape.append(tx, session.session_id, session.owner, [undone], effect.run_id)
            workspace.mark_undone(tx, effect.call_id)

        await self._db.write(step)
        return list(told)


def _open_effects(tx: Tx, principal: str, session_id: str, wanted: Undo) -> tuple[Session, list[EffectRow]]:
    session = sessions.get(tx, session_id, principal)
    if any(run.state == "in_progress" for run in runs.unfinished_of_session(tx, session_id)):
        raise Conflict("a run is working in this session: stop it, or wait for it, before undoing")
    if wanted.call_id:
        effects = workspace.effect_of_call(tx, session_id, wanted.call_id)
    elif wanted.run_id:
        effects = workspace.effects_of_run(tx, session_id, wanted.run_id)
    else:
        effects = workspace.effects_of_session(tx, session_id)
    if not effects:
        raise NotFound("nothing was changed here that could be undone")
    left = [effect for effect in effects if not effect.undone_ms]
    if not left:
        raise Conflict("that was undone already")
    return session, left
