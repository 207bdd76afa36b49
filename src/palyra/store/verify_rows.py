"""Deep verification: folds the tape anew and names each row that it does not imply.

Entries are proven by the chain and the tree; the tables beside them are what the daemon works with.
This is where somebody would change a state without touching an entry.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.core import events, run_state
from palyra.core.errors import IllegalTransition
from palyra.core.events import (
    AdminChanged,
    ApprovalRequested,
    ApprovalResolved,
    InputReceived,
    RunAccepted,
    RunCancelled,
    RunFailed,
    SessionRestored,
    ToolFinished,
    ToolStarted,
    ToolUndone,
)
from palyra.core.run_state import RunState
from palyra.store import policy_sets, rights, segment_walk, segments, sessions, tape, write_buffer
from palyra.store.database import Tx
from palyra.store.dialect import Row
from palyra.store.verify_projections import (
    KINDS,
    ProjectionFold,
    scheduled_grants,
    wrong_projections,
)
from palyra.store.verify_sessions import KINDS as SESSION_KINDS
from palyra.store.verify_sessions import SessionFold, wrong_sessions

_CHUNK = 2_000
MOST_ROWS = 100
_TOLD = frozenset(
    {
        "admin.changed",
        "approval.requested",
        "approval.resolved",
        "input.received",
        "model.replied",
        "model.used",
        "model.failed",
        "run.accepted",
        "run.cancelled",
        "run.failed",
        "session.compacted",
        "session.reset",
        "session.restored",
        "tool.finished",
        "tool.started",
        "tool.undone",
        *KINDS,
        *SESSION_KINDS,
        *rights.TELLING,
    }
)


class WrongRow(Struct, frozen=True):
    """A row that the tape does not imply: its table, its key, and what is wrong with it."""

    table: str
    row: str
    problem: str


class _Approval(Struct):
    tape: str
    run_id: str
    call_id: str
    tool: str
    owner: str
    requested: int
    expires_ms: int
    decision: str = ""
    resolved: ApprovalResolved | None = None
    position: int = 0
    seq: int = 0


class _Token(Struct):
    """Token as an entry describes it; one from before owners were recorded has no principal."""

    name: str
    scope: str
    workspace: str
    principal: str
    expires_ms: int
    revoked: bool = False


class _Fold:
    """Fold of the tape's entries about runs, approvals, tokens, grants and money."""

    def __init__(self) -> None:
        self.runs: dict[str, tuple[str, RunState | None]] = {}
        # Whose each run is, where it came from, its schedule, and where that is said.
        self.accepted: dict[str, tuple[str, str, str, int]] = {}
        # Why runs ended that did not complete.
        self.reasons: dict[str, str] = {}
        # The calls that started, by tape and id, each with its run; those that were undone, and the
        # tapes whose files were put back to an earlier state.
        self.started: dict[tuple[str, str], str] = {}
        self.undone: set[str] = set()
        self.put_back: set[str] = set()
        # The artifacts that each tape names.
        self.named: dict[tuple[str, str], int] = {}
        self.approvals: dict[str, _Approval] = {}
        self.tokens: dict[str, _Token] = {}
        self.usage: dict[int, tuple[Any, ...]] = {}
        self.removed: set[str] = set()
        # Where the grants that were given for a session ended, those from behind an entry of it.
        self._ended: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self.illegal: list[WrongRow] = []
        self.projections = ProjectionFold()
        self.sessions = SessionFold()
        # The entries that make rows which give rights: their hash, and the rows.
        self.telling: dict[int, tuple[bytes, tuple[tuple[str, str], ...]]] = {}

    def add(self, row: Row) -> None:
        position, on, seq, time_ms, run_id, principal, kind, body, *_ = row
        if run_id:
            self._move(position, on, run_id, kind)
        if kind not in _TOLD:
            return
        event = events.decode(body)
        if told := rights.told_of(on, event):
            self.telling[position] = (row[8], told)
        if kind in KINDS:
            self.projections.add(principal, event)
        if kind in SESSION_KINDS:
            self.sessions.add(on, run_id, principal, event)
        if isinstance(event, tape.BILLED):
            used = tape.usage_row(event, position, time_ms, on, run_id, principal)
            if used is not None:
                self.usage[position] = used
        match event:
            case RunAccepted():
                self.accepted[run_id] = (principal, event.origin, event.schedule_id, position)
            case RunFailed(reason=reason) | RunCancelled(reason=reason):
                self.reasons[run_id] = reason
            case ToolStarted():
                self.started[on, event.call_id] = run_id
            case ToolUndone():
                self.undone.add(event.call_id)
            case ToolFinished() | InputReceived():
                for artifact_id in _artifacts_of(event):
                    self.named.setdefault((on, artifact_id), position)
            case _:
                self._tell(position, on, seq, run_id, event)

    def _move(self, position: int, on: str, run_id: str, kind: str) -> None:
        where, state = self.runs.get(run_id, (on, None))
        try:
            self.runs[run_id] = (where, run_state.advance(state, kind))
        except IllegalTransition as error:
            self.illegal.append(WrongRow("entries", str(position), error.message))

    def _tell(self, position: int, on: str, seq: int, run_id: str, event: events.AnyEvent) -> None:
        match event:
            case ApprovalRequested():
                owner = self.accepted[run_id][0] if run_id in self.accepted else ""
                self.approvals[event.approval_id] = _Approval(
                    on, run_id, event.call_id, event.tool, owner, position, event.expires_ms
                )
            case ApprovalResolved():
                asked = self.approvals.get(event.approval_id)
                if asked is not None:
                    asked.decision, asked.resolved = event.decision, event
                    asked.position, asked.seq = position, seq
            case events.SessionReset():
                self._ended[on].append((position, 0))
            case SessionRestored():
                if event.conversation:
                    self._ended[on].append((position, event.to_seq))
                if event.files:
                    self.put_back.add(on)
            case AdminChanged(what="token", action="created"):
                named = event.details
                self.tokens[event.subject] = _Token(
                    named.get("name", ""),
                    named.get("scope", ""),
                    named.get("workspace", ""),
                    named.get("principal", ""),
                    named.get("expires_ms", 0),
                )
            case AdminChanged(what="token", action="revoked"):
                if event.subject in self.tokens:
                    self.tokens[event.subject].revoked = True
            case AdminChanged(what="policy", action="grant removed"):
                self.removed.add(event.subject)
            case _:
                pass

    def ended(self, given: _Approval) -> bool:
        """Say if what was allowed for a session was taken back by a reset or a rewind of it."""
        return any(
            given.position < at and given.seq > to_seq for at, to_seq in self._ended[given.tape]
        )


def wrong_rows(
    tx: Tx,
    progress: Callable[[int], None] = lambda entries: None,
    folder: Path | None = None,
    keys: Path | None = None,
) -> list[WrongRow]:
    """Return the first rows that the tape does not imply, at most a hundred. The entries must have
    been verified. `keys`: the folder with the key that rights are sealed with, where it is at hand.
    """
    fold = _Fold()
    for seen, row in enumerate(segment_walk.rows(tx, folder, segments.listing(tx)), 1):
        fold.add(row)
        if seen % _CHUNK == 0:
            progress(seen)
    looks = (fold.illegal, *(look(tx, fold) for look in _LOOKS), _sealed(tx, keys))
    return list(islice(chain.from_iterable(looks), MOST_ROWS))


def _runs(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    seen = set()
    for run_id, session_id, state, reason, *whose in tx.all(
        """SELECT run_id, session_id, state, reason, principal, origin, schedule_id,
            accepted_position FROM runs"""
    ):
        seen.add(run_id)
        if run_id not in fold.runs:
            yield WrongRow("runs", run_id, "no entry tells of this run")
        elif (session_id, state) != fold.runs[run_id]:
            where, told = fold.runs[run_id]
            yield WrongRow(
                "runs", run_id, f"it is {state} in {session_id}; the tape says {told} in {where}"
            )
        elif tuple(whose) != fold.accepted.get(run_id):
            yield WrongRow("runs", run_id, f"it is of {whose[0]}; the tape tells of another")
        elif state in run_state.TERMINAL and reason != fold.reasons.get(run_id, ""):
            yield WrongRow(
                "runs", run_id, f"it ended as {reason!r}; the tape says {fold.reasons.get(run_id)}"
            )
    for run_id in fold.runs.keys() - seen:
        yield WrongRow("runs", run_id, "the tape has this run, the table has not")


def _approvals(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    seen = set()
    for approval_id, *row, owner, requested, expires_ms, resolved in tx.all(
        """SELECT approval_id, session_id, run_id, call_id, tool, decision, owner,
            requested_position, expires_ms, resolved_position FROM approvals"""
    ):
        seen.add(approval_id)
        told = fold.approvals.get(approval_id)
        if told is None:
            yield WrongRow("approvals", approval_id, "no entry tells of this approval")
            continue
        said = [told.tape, told.run_id, told.call_id, told.tool, told.decision]
        if row != said:
            was = row[4] or "pending"
            yield WrongRow(
                "approvals",
                approval_id,
                f"it is {was} for {row[3]}; the tape says {told.decision or 'pending'} for"
                f" {told.tool}",
            )
        elif (owner, requested, expires_ms, resolved) != (
            told.owner,
            told.requested,
            told.expires_ms,
            told.position,
        ):
            yield WrongRow(
                "approvals",
                approval_id,
                f"{owner} answers it until {expires_ms}; the tape says {told.owner} until"
                f" {told.expires_ms}",
            )
    for approval_id in fold.approvals.keys() - seen:
        yield WrongRow("approvals", approval_id, "the tape asks this, the table does not have it")


def _grants(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    for approval_id, principal, session_id, tool, kind, value, until_ms in tx.all(
        """SELECT approval_id, principal, session_id, tool, subject_kind, subject_value, until_ms
        FROM grants"""
    ):
        told = fold.approvals.get(approval_id)
        if told is None and session_id:
            scheduled = scheduled_grants(tx, session_id).get(approval_id)
            if scheduled is not None and principal == scheduled.owner:
                given = scheduled.subject
                if (given.tool, given.kind, given.value) == (tool, kind, value):
                    continue
        if told is None or told.resolved is None or told.resolved.decision != "allow":
            yield WrongRow("grants", approval_id, f"nobody has allowed {tool} by this approval")
            continue
        subject, answer = told.resolved.subject, told.resolved
        said = None if subject is None else (subject.tool, subject.kind, subject.value)
        in_session = told.tape if answer.scope == "session" else None
        if said != (tool, kind, value) or (in_session, answer.until_ms or None) != (
            session_id,
            until_ms,
        ):
            yield WrongRow("grants", approval_id, f"it allows {tool} more widely than was answered")
        elif principal != told.owner:
            yield WrongRow("grants", approval_id, f"it is of {principal}, not of {told.owner}")
        elif approval_id in fold.removed or (session_id and fold.ended(told)):
            yield WrongRow("grants", approval_id, f"{tool} was allowed, and that was revoked")


def _tokens(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    seen = set()
    for token_id, name, scope, workspace, principal, expires_ms, revoked_ms in tx.all(
        "SELECT token_id, name, scope, workspace, principal, expires_ms, revoked_ms FROM tokens"
    ):
        seen.add(token_id)
        told = fold.tokens.get(token_id)
        if told is None:
            yield WrongRow("tokens", token_id, f"no entry tells that {name!r} was made")
        elif (name, scope, workspace) != (told.name, told.scope, told.workspace):
            yield WrongRow("tokens", token_id, f"it was made as {told.name!r} with {told.scope}")
        elif told.principal and (principal, expires_ms) != (told.principal, told.expires_ms):
            yield WrongRow(
                "tokens", token_id, f"it was made for {told.principal}, or for less long"
            )
        elif told.revoked and not revoked_ms:
            yield WrongRow("tokens", token_id, f"{name!r} was revoked, and is not any more")
        elif revoked_ms and not told.revoked:
            yield WrongRow("tokens", token_id, f"nobody has revoked {name!r}")
    for token_id in fold.tokens.keys() - seen:
        yield WrongRow("tokens", token_id, "the tape has this token, the table has not")


def _usage(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    columns = write_buffer.USAGE.columns
    for row in tx.all(f"SELECT {', '.join(columns)} FROM usage"):
        told = fold.usage.pop(row[0], None)
        if told is None:
            yield WrongRow("usage", str(row[0]), "no model call stands at this position")
            continue
        for name, stored, said in zip(columns, row, told, strict=True):
            # Rows from before prices were told count the built-in models as priced.
            before = name == "unpriced" and row[5] in ("demo", "scripted")
            if stored != said and not before:
                problem = f"{name} is {stored}; the tape says {said}"
                yield WrongRow("usage", str(row[0]), problem)
                break
    for position in fold.usage:
        yield WrongRow("usage", str(position), "a model call was paid for and is not counted")


def _artifacts(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    for session_id, artifact_id in tx.all("SELECT session_id, artifact_id FROM artifacts"):
        row = tx.one(
            "SELECT body FROM artifacts WHERE session_id = :session AND artifact_id = :artifact",
            session=session_id,
            artifact=artifact_id,
        )
        if row and sha256(row[0]).hexdigest() != artifact_id:
            yield WrongRow("artifacts", artifact_id, f"its content in {session_id} was changed")
    lying = segments.tapes(tx)
    for (on, artifact_id), position in fold.named.items():
        # What is sealed has its artifacts with it; a branch has those of what it was branched from.
        owners = sessions.ancestors(tx, on)
        if not lying.keys().isdisjoint(owners):
            continue
        if not any(_has_artifact(tx, owner, artifact_id) for owner in owners):
            yield WrongRow("artifacts", artifact_id, f"the entry at {position} has it; it is gone")


def _has_artifact(tx: Tx, session_id: str, artifact_id: str) -> bool:
    return bool(
        tx.one(
            "SELECT 1 FROM artifacts WHERE session_id = :session AND artifact_id = :artifact",
            session=session_id,
            artifact=artifact_id,
        )
    )


def _artifacts_of(event: ToolFinished | InputReceived) -> Iterator[str]:
    """The artifacts that an entry names."""
    if isinstance(event, ToolFinished):
        found = [event.artifact, *(each.artifact for each in event.images)]
    else:
        found = [each.artifact for each in event.references]
        for attached in event.attachments:
            found += [attached.artifact, attached.text_artifact]
    return (each for each in found if each)


def _effects(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    """Check that what can be undone is what a call did. The checkpoint itself is sealed, and bound
    to its call.
    """
    for call_id, session_id, run_id, undone_ms in tx.all(
        "SELECT call_id, session_id, run_id, undone_ms FROM effects WHERE run_id <> ''"
    ):
        if fold.started.get((session_id, call_id)) != run_id:
            yield WrongRow("effects", call_id, "no entry tells that this run started this call")
        elif undone_ms and call_id not in fold.undone and session_id not in fold.put_back:
            yield WrongRow("effects", call_id, "nobody has undone it")


def _policies(tx: Tx, _: _Fold) -> Iterator[WrongRow]:
    for version in policy_sets.versions(tx):
        if policy_sets.find(tx, version) is None:
            yield WrongRow("policy_sets", version, "these are not the policies of this version")


def _projections(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    for table, row, problem in wrong_projections(tx, fold.projections):
        yield WrongRow(table, row, problem)
    for table, row, problem in wrong_sessions(tx, fold.sessions):
        yield WrongRow(table, row, problem)


def _sealed(tx: Tx, keys: Path | None) -> Iterator[WrongRow]:
    """A right carries a seal by the daemon's key, over all that it says."""
    seals, tables = rights.seals_of(keys) if keys is not None else (None, frozenset[str]())
    if seals is None:
        return
    for right in rights.ALL:
        for row in tx.all(f"SELECT {right.columns} FROM {right.table}"):
            if right.table in tables and not seals.holds(right, row):
                yield WrongRow(right.table, rights.names(right, row), "its seal does not hold")


def _bound(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    """A right was made by the entry that it carries. One from before rows said so carries none."""
    for right in rights.ALL:
        for row in tx.all(f"SELECT {right.columns} FROM {right.table} WHERE entry > 0"):
            entry, digest, _ = row[-3:]
            known, told = fold.telling.get(entry, (b"", ()))
            name = rights.names(right, row)
            # What a schedule's runs may do was said with the schedule.
            gives = any(
                made == (right.table, name) or (right is rights.GRANTS and made[0] == "schedules")
                for made in told
            )
            if digest != known or not gives:
                yield WrongRow(right.table, name, f"the entry at {entry} has not made it")


_LOOKS = (
    _runs,
    _approvals,
    _grants,
    _tokens,
    _usage,
    _artifacts,
    _effects,
    _policies,
    _projections,
    _bound,
)
