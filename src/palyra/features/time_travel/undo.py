"""Taking effects back: one call, or all of a run, newest first, with a look at what would change
before.

What calls changed here is put back whole or not at all. What they changed at a worker is put back
there, if it can be reached; what is left over is named.

Taking back what calls changed at workers: a worker keeps how its files were, is asked to put
them back, says what it did.
"""

import os
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from palyra.agent.checkpoints import Checkpoints
from palyra.core import ids
from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError, Unavailable
from palyra.core.events import FileChange, ToolUndone
from palyra.features.time_travel.file_restore import Restoring
from palyra.features.workers import rows as workers_rows
from palyra.features.workers.protocol import TookBack
from palyra.store import artifacts, file_labels, runs, sessions, tape
from palyra.store.artifacts import EffectRow
from palyra.store.database import Appended, Database, Tx
from palyra.store.sessions import Session
from palyra.system.redactor import Redactor
from palyra.tools.files import restore
from palyra.tools.files.restore import Aim, Clash, Tracks


class NotUndone(Struct, frozen=True, kw_only=True):
    """A call whose changes could not be put back, and why."""

    call_id: str
    tool: str
    why: str


class There(Struct, frozen=True, kw_only=True):
    """The calls of one worker, newest first, with what taking each back changes there, or why it
    cannot be.
    """

    worker: str
    effects: tuple[EffectRow, ...]
    taken: dict[str, tuple[FileChange, ...]] = {}
    clashes: tuple[str, ...] = ()
    why_not: str = ""
    diff: str = ""

    @property
    def left(self) -> tuple[NotUndone, ...]:
        return tuple(
            NotUndone(call_id=each.call_id, tool=each.tool, why=self.why_not)
            for each in self.effects
            if self.why_not
        )

    @property
    def changes(self) -> tuple[FileChange, ...]:
        found = {each.path: each for changes in self.taken.values() for each in changes}
        return tuple(found.values())


class WorkerUndoPort(Protocol):
    """Port to the workers; see `palyra.features.workers`."""

    async def take_back(
        self, worker: str, session_id: str, calls: tuple[str, ...], *, look: bool, force: bool
    ) -> TookBack: ...


class NoWorkers:
    """A daemon without workers: their part stays undone."""

    async def take_back(
        self, worker: str, session_id: str, calls: tuple[str, ...], *, look: bool, force: bool
    ) -> TookBack:
        raise Unavailable(f"the worker {worker} cannot be reached: this daemon has no workers")


def grouped(effects: Iterable[EffectRow]) -> list[There]:
    by_worker: dict[str, list[EffectRow]] = {}
    for effect in effects:
        by_worker.setdefault(artifacts.elsewhere(effect), []).append(effect)
    return [There(worker=worker, effects=tuple(found)) for worker, found in by_worker.items()]


async def ask(
    workers: WorkerUndoPort, session_id: str, there: There, *, look: bool, force: bool
) -> There:
    """Ask what a worker undid, or would undo. That it cannot is an answer too."""
    calls = tuple(effect.call_id for effect in reversed(there.effects))
    try:
        took = await workers.take_back(there.worker, session_id, calls, look=look, force=force)
    except PalyraError as error:
        return There(worker=there.worker, effects=there.effects, why_not=error.message)
    why_not = took.failed
    if took.missing:
        why_not = f"the worker {there.worker} has not kept how its files were before"
    elif took.clashes and not force and not look:
        why_not = (
            f"changed by somebody else on {there.worker} in the meantime:"
            f" {', '.join(took.clashes[:20])}"
        )
    mine = {each.call_id: each.changes for each in took.taken}
    return There(
        worker=there.worker,
        effects=there.effects,
        taken={
            call: tuple(
                FileChange(_path(there, each.path), each.change) for each in mine.get(call, ())
            )
            for call in reversed(calls)
        },
        clashes=tuple(_path(there, path) for path in took.clashes),
        why_not=why_not,
        diff=f"# on the worker {there.worker}\n{took.diff}" if took.diff else "",
    )


def _path(there: There, path: str) -> str:
    """Return the path as policies and approvals name files there."""
    return f"/worker:{there.worker}/{path[:4_096]}"


class Undo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Scope of an undo: one call, all of a run, or (neither given) the newest effect of the
    session.

    `force` overwrites files that were changed since by someone else.
    """

    call_id: str = ""
    run_id: str = ""
    dry_run: bool = False
    force: bool = False


class Undone(Struct, frozen=True, kw_only=True):
    """`diff` shows, in a dry run, what becomes of the files; `conflicts` are those that somebody
    else has changed.

    `left` are calls at workers whose changes could not be put back.
    """

    calls: tuple[str, ...]
    changes: tuple[FileChange, ...]
    dry_run: bool = False
    diff: str = ""
    conflicts: tuple[str, ...] = ()
    left: tuple[NotUndone, ...] = ()


class _Chosen(Struct, frozen=True):
    """Effects to take back, newest first, the paths that each touched, and what is to be done about
    it, here and elsewhere.
    """

    effects: list[EffectRow]
    paths: dict[str, tuple[str, ...]]
    aim: Aim
    there: list[There]

    @property
    def something(self) -> bool:
        return bool(
            self.aim.changes
            or self.aim.clashes
            or any(each.changes or each.clashes or each.left for each in self.there)
        )


class Undoing:
    def __init__(
        self,
        db: Database,
        checkpoints: Checkpoints,
        restoring: Restoring,
        redactor: Redactor,
        workers_: WorkerUndoPort,
    ) -> None:
        self._db = db
        self._workers = workers_
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
        session, effects = await self._db.read(
            lambda tx: _open_effects(tx, principal, session_id, wanted)
        )
        if wanted.call_id or wanted.run_id:
            chosen = await self._choose(session, effects, wanted)
        else:
            chosen = await self._newest(session, effects, wanted)
        aim = chosen.aim
        undone = self._undone(chosen, wanted)
        if undone.left and not undone.calls:
            raise Unavailable(
                f"{undone.left[0].why}: nothing was undone; another change can be named by its call"
            )
        if wanted.dry_run:
            shown = (
                (await self._checkpoints.preview(aim, session.workspace)).body
                if chosen.effects
                else ""
            )
            diff = "\n".join(filter(None, (shown, *(each.diff for each in chosen.there))))
            return structs.replace(undone, diff=await self._redactor.redacted(diff))
        if undone.conflicts and not wanted.force:
            clashes = (
                *aim.clashes,
                *(
                    Clash(path, "changed there since")
                    for each in chosen.there
                    for path in each.clashes
                ),
            )
            raise Conflict(
                f"not as the call left it: {self._redactor.redact(restore.named(clashes))}",
                files=undone.conflicts,
            )
        if aim.changes:
            await self._restoring.carry_out(
                session,
                "@undo",
                aim,
                partial(_nobody_works, session),
                partial(self._tell, session, chosen),
            )
        there = [
            each if each.left else await self._take_back(session, each, wanted)
            for each in chosen.there
        ]
        return self._undone(structs.replace(chosen, there=there), wanted)

    def _undone(self, chosen: _Chosen, wanted: Undo) -> Undone:
        redact = self._redactor.redact
        changes = (
            *chosen.aim.changes,
            *(change for each in chosen.there for change in each.changes),
        )
        done = [
            *chosen.effects,
            *(effect for each in chosen.there if not each.left for effect in each.effects),
        ]
        return Undone(
            calls=tuple(
                effect.call_id for effect in sorted(done, key=lambda effect: -effect.position)
            ),
            changes=tuple(FileChange(redact(each.path), each.change) for each in changes),
            dry_run=wanted.dry_run,
            conflicts=tuple(
                redact(path)
                for path in (*(clash.path for clash in chosen.aim.clashes), *_clashes(chosen))
            ),
            left=tuple(
                structs.replace(left, why=redact(left.why))
                for each in chosen.there
                for left in each.left
            ),
        )

    async def _take_back(self, session: Session, there: There, wanted: Undo) -> There:
        if not there.changes:
            return there
        act = partial(
            ask,
            self._workers,
            session.session_id,
            there,
            look=False,
            force=wanted.force,
        )
        ready = partial(_nobody_works, session)
        return await self._restoring.elsewhere(
            session, act, ready, partial(self._tell_there, session)
        )

    def _tell_there(self, session: Session, there: There, tx: Tx) -> None:
        for effect in there.effects if not there.left else ():
            changes = tuple(
                FileChange(self._redactor.redact(each.path), each.change)
                for each in there.taken[effect.call_id]
            )
            if changes:
                undone = ToolUndone(
                    call_id=ids.CallId(effect.call_id), changes=changes, tool=effect.tool
                )
                tape.append(tx, session.session_id, session.owner, [undone], effect.run_id)
                artifacts.mark_undone(tx, effect.call_id)

    async def _choose(self, session: Session, effects: list[EffectRow], wanted: Undo) -> _Chosen:
        tracks, touched = Tracks(), {}
        here = [effect for effect in effects if not artifacts.elsewhere(effect)]
        groups = grouped(effect for effect in effects if artifacts.elsewhere(effect))
        there = [
            await ask(self._workers, session.session_id, each, look=True, force=wanted.force)
            for each in groups
        ]
        for effect in reversed(here):
            sealed = await self._db.read(partial(artifacts.checkpoint, call_id=effect.call_id))
            touched[effect.call_id] = await self._checkpoints.follow(tracks, sealed, effect.call_id)
        return _Chosen(
            here,
            touched,
            await self._checkpoints.aim(tracks, session.workspace, force=wanted.force),
            there,
        )

    async def _newest(self, session: Session, effects: list[EffectRow], wanted: Undo) -> _Chosen:
        """A call that was cancelled before it did anything is nothing to undo: then the one before
        is meant.
        """
        for effect in effects:
            chosen = await self._choose(session, [effect], wanted)
            if chosen.something:
                return chosen
        raise NotFound("nothing was changed here that could be undone")

    def _tell(self, session: Session, chosen: _Chosen, tx: Tx) -> Appended:
        told: list[Appended] = []
        for effect in chosen.effects:
            mine = [
                each for each in chosen.aim.changes if each.path in chosen.paths[effect.call_id]
            ]
            if not mine:
                continue
            changes = tuple(
                FileChange(self._redactor.redact(each.path), each.change) for each in mine
            )
            undone = ToolUndone(
                call_id=ids.CallId(effect.call_id), changes=changes, tool=effect.tool
            )
            told += tape.append(tx, session.session_id, session.owner, [undone], effect.run_id)
            artifacts.mark_undone(tx, effect.call_id)
        file_labels.put_back(
            tx,
            session.owner,
            [os.path.join(session.workspace, each.path) for each in chosen.aim.changes],
            session_id=session.session_id,
        )
        return told[0]


def _clashes(chosen: _Chosen) -> list[str]:
    return [path for each in chosen.there for path in each.clashes]


def _nobody_works(session: Session, tx: Tx) -> None:
    if any(
        run.state == "in_progress" for run in runs.unfinished_of_session(tx, session.session_id)
    ):
        raise Conflict("a run is working in this session: stop it, or wait for it, before undoing")


def _open_effects(
    tx: Tx, principal: str, session_id: str, wanted: Undo
) -> tuple[Session, list[EffectRow]]:
    session = sessions.get(tx, session_id, principal)
    _nobody_works(session, tx)
    if wanted.call_id:
        effects = artifacts.effect_of_call(tx, session_id, wanted.call_id)
    elif wanted.run_id:
        effects = artifacts.effects_of_run(tx, session_id, wanted.run_id)
    else:
        effects = artifacts.effects_of_session(tx, session_id)
    # What never got to its worker changed nothing there.
    effects = [
        each
        for each in effects
        if not artifacts.elsewhere(each) or workers_rows.find_lease(tx, each.call_id)
    ]
    if not effects:
        raise NotFound("nothing was changed here that could be undone")
    left = [effect for effect in effects if not effect.undone_ms]
    if not left:
        raise Conflict("that was undone already")
    return session, left
