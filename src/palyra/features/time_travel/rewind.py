"""Rewinding: a session's files and its conversation, together, as they were after an entry of its
tape.

The rule: the tape only grows. A rewind is an entry that says where to; going forward again is a
rewind to before that entry. Nobody else's work is overwritten: a file that somebody changed stops
it, or is left as it is and named.
"""

import os
from functools import partial
from typing import Literal

from msgspec import Struct, structs

from palyra.agent import session_cache
from palyra.agent.checkpoints import Checkpoints
from palyra.agent.runs import Runs
from palyra.core import ids
from palyra.core.errors import Conflict, InvalidInput
from palyra.core.events import FileChange, SessionRestored
from palyra.features.time_travel import rows, session_snapshot
from palyra.features.time_travel.file_restore import Restoring
from palyra.features.time_travel.rows import Lasting
from palyra.store import artifacts, file_labels, runs, session_rules, sessions, tape
from palyra.store import rewinds as store_rewinds
from palyra.store.database import Appended, Database, Tx
from palyra.store.rewinds import FileEffect
from palyra.store.sessions import Session
from palyra.system.redactor import Redactor
from palyra.tools.files import restore
from palyra.tools.files.restore import Aim, Clash, Tracks


class Rewind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rewind to the entry `to`. `conflicts`: what becomes of a rewind that meets files somebody
    else has changed.

    `stop` ends what runs or waits in the session first; without it, that is a conflict.
    """

    to: int
    files: bool = True
    conversation: bool = True
    preview: bool = False
    stop: bool = False
    conflicts: Literal["abort", "skip"] = "abort"


class Rewound(Struct, frozen=True, kw_only=True):
    """Result of a rewind, or its preview. `seq` is its entry; to go forward again, rewind to the
    one before it.

    `lasting` is what cannot be undone. `rules` come into force again. `running` has to be stopped
    first.
    """

    session_id: str
    to: int
    seq: int = 0
    preview: bool = False
    files: bool = True
    conversation: bool = True
    changes: tuple[FileChange, ...] = ()
    conflicts: tuple[Clash, ...] = ()
    lasting: tuple[Lasting, ...] = ()
    rules: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    turns_now: int = 0
    turns_then: int = 0
    diff: str = ""


class _Plan(Struct, frozen=True):
    session: Session
    known: list[FileEffect]
    behind: list[FileEffect]
    lasting: tuple[Lasting, ...]
    rules: tuple[str, ...]
    running: tuple[str, ...]
    turns_now: int
    turns_then: int


class Rewinding:
    def __init__(
        self,
        db: Database,
        runs_: Runs,
        checkpoints: Checkpoints,
        restoring: Restoring,
        redactor: Redactor,
    ) -> None:
        self._db = db
        self._runs = runs_
        self._checkpoints = checkpoints
        self._restoring = restoring
        self._redactor = redactor

    async def rewind(self, principal: str, session_id: str, wanted: Rewind) -> Rewound:
        ids.check(session_id, "session_id")
        if not (wanted.files or wanted.conversation):
            raise InvalidInput("nothing to rewind: choose files, conversation or both")
        if wanted.stop and not wanted.preview:
            await self._stop(principal, session_id)
        return await self._restoring.alone(lambda: self._rewind(principal, session_id, wanted))

    async def _stop(self, principal: str, session_id: str) -> None:
        def unfinished(tx: Tx) -> list[runs.RunRow]:
            sessions.get(tx, session_id, principal)
            return runs.unfinished_of_session(tx, session_id)

        # The newest first, so that no mailbox begins another one in between.
        for run in reversed(await self._db.read(unfinished)):
            await self._runs.cancel(run, "the session was rewound")

    async def _rewind(self, principal: str, session_id: str, wanted: Rewind) -> Rewound:
        plan = await self._db.read(
            lambda tx: _plan(tx, sessions.get(tx, session_id, principal), wanted)
        )
        aim = await self._aim(plan, wanted)
        redact = self._redactor.redact
        rewound = Rewound(
            session_id=session_id,
            to=wanted.to,
            preview=wanted.preview,
            files=wanted.files,
            conversation=wanted.conversation,
            changes=tuple(FileChange(redact(each.path), each.change) for each in aim.changes),
            conflicts=tuple(Clash(redact(each.path), each.why) for each in aim.clashes),
            lasting=plan.lasting,
            rules=plan.rules,
            running=plan.running,
            turns_now=plan.turns_now,
            turns_then=plan.turns_then,
        )
        if wanted.preview:
            shown = (
                await self._checkpoints.preview(aim, plan.session.workspace)
                if aim.changes
                else None
            )
            return structs.replace(
                rewound, diff=await self._redactor.redacted(shown.body) if shown else ""
            )
        if aim.clashes and wanted.conflicts == "abort":
            paths = tuple(clash.path for clash in rewound.conflicts)
            raise Conflict(
                f"nobody's work is overwritten: {restore.named(rewound.conflicts)}", files=paths
            )
        tell = partial(_tell, plan, wanted, rewound, aim)
        told = await self._restoring.carry_out(
            plan.session, "@rewind", aim, partial(_still_so, plan.session), tell
        )
        return structs.replace(rewound, seq=told.seq)

    async def _aim(self, plan: _Plan, wanted: Rewind) -> Aim:
        tracks = Tracks()
        for effect in plan.behind if wanted.files else ():
            sealed = await self._db.read(partial(artifacts.checkpoint, call_id=effect.call_id))
            await self._checkpoints.follow(tracks, sealed, effect.call_id)
        return await self._checkpoints.aim(tracks, plan.session.workspace)


def _plan(tx: Tx, session: Session, wanted: Rewind) -> _Plan:
    session_snapshot.check(session, wanted.to)
    if wanted.to == session.head_seq:
        raise InvalidInput(
            f"entry {wanted.to} is the last one: there is nothing behind it", last=session.head_seq
        )
    session_id = session.session_id
    known = store_rewinds.effects(tx, session_id)
    in_force = {rule.words for rule in session_rules.of_session(tx, session_id)}
    returning = [
        rule.words
        for rule in session_rules.as_of(tx, session_id, wanted.to)
        if rule.words not in in_force
    ]
    return _Plan(
        session,
        known,
        store_rewinds.behind(tx, session_id, known, wanted.to),
        rows.behind(tx, session_id, wanted.to).lasting,
        tuple(returning) if wanted.conversation else (),
        tuple(run.run_id for run in runs.unfinished_of_session(tx, session_id)),
        len(session_cache.conversation_at(tx, session, session.head_seq).turns),
        len(session_cache.conversation_at(tx, session, wanted.to).turns),
    )


def _still_so(session: Session, tx: Tx) -> None:
    """Check that nothing works, and nothing has happened since the plan was made."""
    _nothing_runs(session, tx)
    if tape.head(tx, session.session_id) != session.head_seq:
        raise Conflict(
            "something happened in this session in the meantime: look again, and try again"
        )


def _nothing_runs(session: Session, tx: Tx) -> None:
    """A run must not find itself in a conversation that it is no longer part of."""
    if runs.unfinished_of_session(tx, session.session_id):
        raise Conflict(
            "a run works or waits in this session: wait for it, or rewind with stop (--stop)"
        )


def _tell(plan: _Plan, wanted: Rewind, rewound: Rewound, aim: Aim, tx: Tx) -> Appended:
    session, to = plan.session, wanted.to
    _nothing_runs(session, tx)
    event = SessionRestored(
        to_seq=to,
        changes=rewound.changes,
        conversation=wanted.conversation,
        files=wanted.files,
        left=tuple(clash.path for clash in rewound.conflicts),
    )
    (told,) = tape.append(tx, session.session_id, session.owner, [event])
    if wanted.files:
        file_labels.put_back(
            tx,
            session.owner,
            [os.path.join(session.workspace, each.path) for each in aim.changes],
            session_id=session.session_id,
        )
        taken_back = {effect.call_id for effect in plan.behind}
        store_rewinds.mark(
            tx,
            plan.known,
            store_rewinds.in_force(tx, session.session_id, plan.known, to) - taken_back,
        )
    if wanted.conversation:
        sessions.fold_anew(tx, session.session_id)
        store_rewinds.drop_grants(tx, session.session_id, to)
        session_rules.bring_back(tx, session.session_id, session.owner, to)
    return told
