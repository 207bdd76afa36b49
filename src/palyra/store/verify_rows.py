"""Deep verification: folds the tape anew and names each row that it does not imply.

Entries are proven by the chain and the tree; the tables beside them are what the daemon works with.
This is where somebody would change a state without touching an entry.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from palyra.core import events, run_state
from palyra.core.errors import IllegalTransition
from palyra.core.events import (
    AdminChanged,
    ApprovalRequested,
    ApprovalResolved,
    InputReceived,
    ModelFailed,
    ModelReplied,
    ModelUsed,
    RunAccepted,
    SessionCompacted,
    ToolFinished,
    ToolStarted,
)
from palyra.core.run_state import RunState
from palyra.store import policy_sets, rights, segment_walk, segments, sessions
from palyra.store.database import Tx
from palyra.store.dialect import Row
from palyra.store.verify_projections import (
    KINDS,
    ProjectionFold,
    scheduled_grants,
    wrong_projections,
)

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
        "session.compacted",
        "session.reset",
        "session.restored",
        "tool.finished",
        "tool.started",
        *KINDS,
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
        # Whose each run is, where it came from and its schedule.
        self.accepted: dict[str, tuple[str, str, str]] = {}
        # The calls that started, each on its tape, and the artifacts that each tape names.
        self.started: set[tuple[str, str]] = set()
        self.named: dict[tuple[str, str], int] = {}
        self.approvals: dict[str, _Approval] = {}
        self.tokens: dict[str, _Token] = {}
        self.usage: dict[int, tuple[str, str, str, str, int, int, int]] = {}
        self.removed: set[str] = set()
        # Where the grants that were given for a session ended, those from behind an entry of it.
        self._ended: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self.illegal: list[WrongRow] = []
        self.projections = ProjectionFold()
        # The entries that make rows which give rights: their hash, and the rows.
        self.telling: dict[int, tuple[bytes, tuple[tuple[str, str], ...]]] = {}

    def add(self, row: Row) -> None:
        position, tape, seq, _, run_id, principal, kind, body, *_ = row
        if run_id:
            self._move(position, tape, run_id, kind)
        if kind not in _TOLD:
            return
        event = events.decode(body)
        if told := rights.told_of(tape, event):
            self.telling[position] = (row[8], told)
        if kind in KINDS:
            self.projections.add(principal, event)
        match event:
            case RunAccepted():
                self.accepted[run_id] = (principal, event.origin, event.schedule_id)
            case ToolStarted():
                self.started.add((tape, event.call_id))
            case ToolFinished() | InputReceived():
                for artifact_id in _artifacts_of(event):
                    self.named.setdefault((tape, artifact_id), position)
            case _:
                self._tell(position, tape, seq, run_id, event)

    def _move(self, position: int, tape: str, run_id: str, kind: str) -> None:
        where, state = self.runs.get(run_id, (tape, None))
        try:
            self.runs[run_id] = (where, run_state.advance(state, kind))
        except IllegalTransition as error:
            self.illegal.append(WrongRow("entries", str(position), error.message))

    def _tell(
        self, position: int, tape: str, seq: int, run_id: str, event: events.AnyEvent
    ) -> None:
        match event:
            case ApprovalRequested():
                owner = self.accepted.get(run_id, ("", "", ""))[0]
                self.approvals[event.approval_id] = _Approval(
                    tape, run_id, event.call_id, event.tool, owner, position, event.expires_ms
                )
            case ApprovalResolved():
                asked = self.approvals.get(event.approval_id)
                if asked is not None:
                    asked.decision, asked.resolved = event.decision, event
                    asked.position, asked.seq = position, seq
            case ModelReplied() | ModelUsed():
                self._bill(position, tape, run_id, event)
            case ModelFailed() if event.billed:
                self._bill(position, tape, run_id, event)
            case SessionCompacted() if event.provider:
                self._bill(position, tape, run_id, event)
            case events.SessionReset():
                self._ended[tape].append((position, 0))
            case events.SessionRestored(conversation=True, to_seq=to_seq):
                self._ended[tape].append((position, to_seq))
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

    def _bill(
        self,
        position: int,
        tape: str,
        run_id: str,
        event: ModelReplied | ModelUsed | ModelFailed | SessionCompacted,
    ) -> None:
        used = event.usage
        self.usage[position] = (
            tape,
            run_id,
            event.provider,
            event.model,
            used.input_tokens,
            used.output_tokens,
            event.cost_microusd,
        )


def wrong_rows(
    tx: Tx, progress: Callable[[int], None] = lambda entries: None, folder: Path | None = None
) -> list[WrongRow]:
    """Return the first rows that the tape does not imply, at most a hundred. The entries must have
    been verified.
    """
    fold = _Fold()
    for seen, row in enumerate(segment_walk.rows(tx, folder, segments.listing(tx)), 1):
        fold.add(row)
        if seen % _CHUNK == 0:
            progress(seen)
    found = fold.illegal[:MOST_ROWS]
    for look in _LOOKS:
        for each in look(tx, fold):
            found.append(each)
            if len(found) >= MOST_ROWS:
                return found
    return found


def _runs(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    seen = set()
    for run_id, session_id, state, *whose in tx.all(
        "SELECT run_id, session_id, state, principal, origin, schedule_id FROM runs"
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
    for token_id, name, scope, workspace, principal, expires_ms, revoked_ms in tx.all(
        "SELECT token_id, name, scope, workspace, principal, expires_ms, revoked_ms FROM tokens"
    ):
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


def _usage(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    for position, *row in tx.all(
        """SELECT position, session_id, run_id, provider, model, input_tokens, output_tokens,
            cost_microusd FROM usage"""
    ):
        told = fold.usage.pop(position, None)
        if told is None:
            yield WrongRow("usage", str(position), "no model call stands at this position")
        elif tuple(row) != told:
            yield WrongRow("usage", str(position), f"it says {row}, the tape {list(told)}")
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
    for (tape, artifact_id), position in fold.named.items():
        # What is sealed has its artifacts with it; a branch has those of what it was branched from.
        owners = sessions.ancestors(tx, tape)
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
    for call_id, session_id in tx.all("SELECT call_id, session_id FROM effects WHERE run_id <> ''"):
        if (session_id, call_id) not in fold.started:
            yield WrongRow("effects", call_id, "no entry tells that this call was started")


def _policies(tx: Tx, _: _Fold) -> Iterator[WrongRow]:
    for version in policy_sets.versions(tx):
        if policy_sets.find(tx, version) is None:
            yield WrongRow("policy_sets", version, "these are not the policies of this version")


def _projections(tx: Tx, fold: _Fold) -> Iterator[WrongRow]:
    for table, row, problem in wrong_projections(tx, fold.projections):
        yield WrongRow(table, row, problem)


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
