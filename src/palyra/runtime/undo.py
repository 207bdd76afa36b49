"""Taking effects back: one call, or all of a run, newest first, with a look at what would change before."""

from functools import partial

from msgspec import Struct, structs

from palyra.domain import ids
from palyra.domain.errors import Conflict, InvalidInput, NotFound
from palyra.domain.events import FileChange, ToolUndone
from palyra.domain.redaction import Redactor
from palyra.journal import runs, sessions, tape, workspace
from palyra.journal.database import Appended, Database, Tx
from palyra.journal.sessions import Session
from palyra.journal.workspace import EffectRow
from palyra.runtime.checkpointing import Checkpoints
from palyra.runtime.restoring import Restoring
from palyra.tools import rewinds
from palyra.tools.rewinds import Aim, Tracks


class Undo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to take back: one call, all of a run, or (neither given) the newest effect of the session.

    `force` overwrites files that were changed since by someone else.
    """

    call_id: str = ""
    run_id: str = ""
    dry_run: bool = False
    force: bool = False


class Undone(Struct, frozen=True, kw_only=True):
    """`diff` shows, in a dry run, what becomes of the files; `conflicts` are those that somebody else has changed."""

    calls: tuple[str, ...]
    changes: tuple[FileChange, ...]
    dry_run: bool = False
    diff: str = ""
    conflicts: tuple[str, ...] = ()


class _Chosen(Struct, frozen=True):
    """Effects to take back, newest first, the paths that each touched, and what is to be done about it."""

    effects: list[EffectRow]
    paths: dict[str, tuple[str, ...]]
    aim: Aim


class Undoing:
    def __init__(self, db: Database, checkpoints: Checkpoints, restoring: Restoring, redactor: Redactor) -> None:
        self._db = db
        self._redactor = redactor
        self._checkpoints = checkpoints
        self._restoring = restoring

    async def undo(self, principal: str, session_id: str, wanted: Undo) -> Undone:
        for name, given in (("call_id", wanted.call_id), ("run_id", wanted.run_id)):
            if given:
                ids.check(given, name)
        if wanted.call_id and wanted.run_id:
            raise InvalidInput("undo takes a call_id or a run_id, not both")
        return await self._restoring.alone(lambda: self._undo(principal, session_id, wanted))

    async def _undo(self, principal: str, session_id: str, wanted: Undo) -> Undone:
        session, effects = await self._db.read(lambda tx: _open_effects(tx, principal, session_id, wanted))
        if wanted.call_id or wanted.run_id:
            chosen = await self._choose(session, effects, wanted)
        else:
            chosen = await self._newest(session, effects, wanted)
        aim = chosen.aim
        undone = Undone(
            calls=tuple(effect.call_id for effect in chosen.effects),
            changes=tuple(FileChange(self._redactor.redact(each.path), each.change) for each in aim.changes),
            dry_run=wanted.dry_run,
            conflicts=tuple(self._redactor.redact(clash.path) for clash in aim.clashes),
        )
        if wanted.dry_run:
            shown = await self._checkpoints.preview(aim, session.workspace)
            return structs.replace(undone, diff=self._redactor.redact(shown.body))
        if aim.clashes and not wanted.force:
            named = self._redactor.redact(rewinds.named(aim.clashes))
            raise Conflict(f"not as the call left it: {named}", files=undone.conflicts)
        if aim.changes:
            await self._restoring.carry_out(
                session, "@undo", aim, partial(_nobody_works, session), partial(self._tell, session, chosen)
            )
        return undone

    async def _choose(self, session: Session, effects: list[EffectRow], wanted: Undo) -> _Chosen:
        tracks, touched = Tracks(), {}
        for effect in reversed(effects):
            sealed = await self._db.read(partial(workspace.checkpoint, call_id=effect.call_id))
            touched[effect.call_id] = await self._checkpoints.follow(tracks, sealed, effect.call_id)
        return _Chosen(effects, touched, await self._checkpoints.aim(tracks, session.workspace, force=wanted.force))

    async def _newest(self, session: Session, effects: list[EffectRow], wanted: Undo) -> _Chosen:
        """A call that was cancelled before it did anything is nothing to undo: then the one before is meant."""
        for effect in effects:
            chosen = await self._choose(session, [effect], wanted)
            if chosen.aim.changes or chosen.aim.clashes:
                return chosen
        raise NotFound("nothing was changed here that could be undone")

    def _tell(self, session: Session, chosen: _Chosen, tx: Tx) -> Appended:
        told: list[Appended] = []
        for effect in chosen.effects:
            mine = [each for each in chosen.aim.changes if each.path in chosen.paths[effect.call_id]]
            if not mine:
                continue
            changes = tuple(FileChange(self._redactor.redact(each.path), each.change) for each in mine)
            undone = ToolUndone(call_id=ids.CallId(effect.call_id), changes=changes, tool=effect.tool)
            told += tape.append(tx, session.session_id, session.owner, [undone], effect.run_id)
            workspace.mark_undone(tx, effect.call_id)
        return told[0]


def _nobody_works(session: Session, tx: Tx) -> None:
    if any(run.state == "in_progress" for run in runs.unfinished_of_session(tx, session.session_id)):
        raise Conflict("a run is working in this session: stop it, or wait for it, before undoing")


def _open_effects(tx: Tx, principal: str, session_id: str, wanted: Undo) -> tuple[Session, list[EffectRow]]:
    session = sessions.get(tx, session_id, principal)
    _nobody_works(session, tx)
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
