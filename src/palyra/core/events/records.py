"""Events outside a run: sessions, learning, memory, messages, incidents, workers, settings."""

from typing import Any, Literal

from palyra.core.events.parts import (
    Administered,
    CandidateState,
    Domain,
    Event,
    FileChange,
    LeftBecause,
    NoticeAbout,
    Point,
    Priced,
    RefusedWorker,
    Severity,
    TriedResult,
)
from palyra.core.ids import OWNER, CallId, RunId, SessionId
from palyra.core.labels import CLEAN, Label
from palyra.core.messages import Usage
from palyra.core.tools import Tier
from palyra.core.verdicts import Risk


class SessionCreated(Event, frozen=True, kw_only=True, tag="session.created"):
    owner: str
    key: str = ""
    label: str = ""
    title: str = ""
    device: str = ""
    channel: str = ""
    workspace: str = ""
    # Of a subagent's session: the run that it works for.
    parent_run_id: RunId | None = None


class SessionReset(Event, frozen=True, kw_only=True, tag="session.reset"):
    pass


class SessionBranched(Event, frozen=True, kw_only=True, tag="session.branched"):
    """Written on both tapes: the child knows where it comes from, the parent where it was
    continued.
    """

    parent: SessionId
    parent_seq: int
    child: SessionId


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    """From now on a summary stands for the turns up to `upto_seq`, and for the summary before it.

    The tape stays whole, so this can be taken back: `checkpoint` says where the conversation was
    folded from before it.
    """

    summary: str
    upto_seq: int
    strategy: str = "session_window_v1"
    # Of what was condensed, and of the summary that stands for it.
    tokens_before: int = 0
    tokens_after: int = 0
    # Of everything the model has been shown so far.
    label: Label = CLEAN
    # The first entry that any summary since then stands for.
    from_seq: int = 0
    # How many turns the summary stands for, and how many of them came with this one.
    records: int = 0
    turns: int = 0
    # What the summary must not lose, as found by rules, whoever wrote it.
    points: tuple[Point, ...] = ()
    # Where the runs that were kept whole by a pin were accepted.
    pins: tuple[int, ...] = ()
    # A fold that begins here gives the same conversation; 0: nobody said.
    kept_from: int = 0
    checkpoint: int = 0
    automatic: bool = False
    written_by: Literal["extractive", "model"] = "extractive"
    # Why a model did not write it although one is configured.
    fallback: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    cost_microusd: int = 0
    priced: Priced = ""
    estimated: bool = False
    duration_ms: int = 0


class SessionUncompacted(Event, frozen=True, kw_only=True, tag="session.uncompacted"):
    """These compactions count as never made. Whoever folds the tape passes over them."""

    compactions: tuple[int, ...]


class SessionPinned(Event, frozen=True, kw_only=True, tag="session.pinned"):
    """A run whose turns no compaction condenses, named by the entry that accepted it."""

    accepted_seq: int
    removed: bool = False


class SessionRestored(Event, frozen=True, kw_only=True, tag="session.restored"):
    """The session was taken back to an entry of its own tape; the tape stays whole.

    `conversation`: what lies between that entry and this one is no longer part of the conversation,
    as if it were branched there. `files`: what the session changed since was put back, except
    `left`, which somebody else had changed.
    """

    to_seq: int
    changes: tuple[FileChange, ...] = ()
    conversation: bool = True
    files: bool = True
    left: tuple[str, ...] = ()


class SessionRuled(Event, frozen=True, kw_only=True, tag="session.ruled"):
    rule_id: str
    words: str
    removed: bool = False


class SessionChanged(Event, frozen=True, kw_only=True, tag="session.changed"):
    """A title given by a person, archiving and its opposite, or the choice of a model."""

    title: str | None = None
    archived: bool | None = None
    # Whether it stays in the journal however old it gets.
    kept: bool | None = None
    # The model of its runs where a message names none; empty: the default again.
    model: str | None = None


class CandidateProposed(Event, frozen=True, kw_only=True, tag="candidate.proposed"):
    candidate_id: str
    candidate_kind: str
    content: str
    confidence_bps: int
    risk: Risk = "low"
    # Positions in the journal.
    evidence: tuple[int, ...] = ()
    owner: str = ""
    session_id: str = ""
    label: Label = CLEAN
    # `rules`, or the name of a model.
    found_by: str = ""


class CandidateSettled(Event, frozen=True, kw_only=True, tag="candidate.settled"):
    candidate_id: str
    state: CandidateState
    reason: str = ""
    # Nobody was asked.
    automatic: bool = False
    # What it is now, or was: `memory ID`, `skill NAME`, `policy FILE`.
    became: str = ""
    # What it says since then, if the person who accepted it put it in other words.
    content: str = ""


class MemoryWritten(Event, frozen=True, kw_only=True, tag="memory.written"):
    """An item as it stands from now on. Its text is not said: what is on the tape stays there, and
    a purge must be one.

    `digest` is the SHA-256 of the item's salt and text; with the salt gone it says nothing. `about`
    is the same of where it is from, whom it is told to, and until when it holds.
    """

    memory_id: str
    text: str = ""
    memory_kind: str = "fact"
    scope: str = ""
    label: Label = CLEAN
    supersedes: str = ""
    state: str = "active"
    pinned: bool = False
    digest: str = ""
    about: str = ""


class MemoryRemoved(Event, frozen=True, kw_only=True, tag="memory.removed"):
    memory_id: str
    reason: str = ""


class MessageReceived(Event, frozen=True, kw_only=True, tag="message.received"):
    message_id: str
    connector: str
    conversation: str
    sender: str
    text: str
    label: Label = CLEAN


class MessageRefused(Event, frozen=True, kw_only=True, tag="message.refused"):
    message_id: str
    reason: str


class ReplySent(Event, frozen=True, kw_only=True, tag="reply.sent"):
    message_id: str
    native_id: str = ""
    possibly_duplicated: bool = False


class ReplyAbandoned(Event, frozen=True, kw_only=True, tag="reply.abandoned"):
    message_id: str
    reason: str


class IncidentOpened(Event, frozen=True, kw_only=True, tag="incident.opened"):
    """`key` names what is wrong; at most one incident is open for it."""

    incident_id: str
    domain: Domain
    severity: Severity
    summary: str
    key: str = ""
    fix: str = ""


class IncidentTried(Event, frozen=True, kw_only=True, tag="incident.tried"):
    """A remedy: `begun` is on disk before its effect. `severity` is set when the incident is worse
    from now on.
    """

    incident_id: str
    remedy: str
    result: TriedResult
    detail: str = ""
    severity: Severity | None = None


class IncidentClosed(Event, frozen=True, kw_only=True, tag="incident.closed"):
    incident_id: str
    outcome: str


class OwnerNotified(Event, frozen=True, kw_only=True, tag="owner.notified"):
    """Somebody is told what they did not ask for, once for each key. `link` is a page of the
    console.
    """

    notice_id: str
    about: NoticeAbout
    key: str
    text: str
    link: str = ""
    to: str = OWNER


class TaskFinished(Event, frozen=True, kw_only=True, tag="task.finished"):
    task_id: str
    task_kind: str
    outcome: Literal["done", "failed", "expired", "cancelled"]
    message: str = ""


class AdminChanged(Event, frozen=True, kw_only=True, tag="admin.changed"):
    what: Administered
    action: str
    subject: str = ""
    details: dict[str, Any] = {}


class AccessRefused(Event, frozen=True, kw_only=True, tag="access.refused"):
    """Somebody at this address tried credentials that are not good, so often since the last of
    these. Empty: many addresses.
    """

    address: str
    attempts: int


class AccessWidened(Event, frozen=True, kw_only=True, tag="access.widened"):
    """A token was used from an address where it had not been used before."""

    token_id: str
    address: str


class WorkerJoined(Event, frozen=True, kw_only=True, tag="worker.joined"):
    """A worker on another machine is there, with what it offers."""

    worker: str
    version: str
    platform: str = ""
    tier: Tier = "none"
    tools: tuple[str, ...] = ()


class WorkerLeft(Event, frozen=True, kw_only=True, tag="worker.left"):
    """A worker is away. Lost: its leases are over, and the calls that it held are in doubt."""

    worker: str
    why: LeftBecause
    calls: tuple[CallId, ...] = ()


class WorkerRefused(Event, frozen=True, kw_only=True, tag="worker.refused"):
    """Somebody who would be a worker, or a word of one, was turned away. `times`: so often since it
    was last said.
    """

    why: RefusedWorker
    worker: str = ""
    address: str = ""
    call_id: CallId | None = None
    detail: str = ""
    times: int = 1


class JournalArchived(Event, frozen=True, kw_only=True, tag="journal.archived"):
    """These tapes lie in a segment from now on, whose SHA-256 is its name; `entries` and `bytes`
    are of the segment.
    """

    segment: str
    entries: int
    bytes: int
    tapes: tuple[str, ...]


class JournalRestored(Event, frozen=True, kw_only=True, tag="journal.restored"):
    """A tape was put back from its segment."""

    segment: str
    tape: str


class JournalCheckpointed(Event, frozen=True, kw_only=True, tag="journal.checkpointed"):
    size: int
    root: str
    note: str = ""
