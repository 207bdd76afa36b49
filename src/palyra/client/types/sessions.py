"""Written by scripts/clients.py from the route table: types of the verbs about sessions."""

from typing import Any, Literal

from msgspec import Struct

from palyra.core.call_options import CallOptions
from palyra.core.events import Entry, FileChange
from palyra.core.labels import Label
from palyra.core.verdicts import SessionRule

__all__ = [
    "Agent",
    "Agents",
    "Attaching",
    "CallOptions",
    "ChangedFile",
    "Clash",
    "Compaction",
    "CompactionPage",
    "DeletedSession",
    "Entry",
    "EntryPage",
    "FileChange",
    "Label",
    "Lasting",
    "Moment",
    "NotUndone",
    "PathList",
    "Pinned",
    "PreviewedReference",
    "ReferencesPreview",
    "Rewound",
    "RuleList",
    "RunPage",
    "RunRow",
    "RunThen",
    "RunWait",
    "Said",
    "SaidPage",
    "ScoreParts",
    "Session",
    "SessionPage",
    "SessionRule",
    "ShownCall",
    "ShownRule",
    "ShownTurn",
    "StoredFile",
    "Submitted",
    "Uncompacted",
    "Undone",
]


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: str
    key: str | None = None
    label: str = ""
    title: str = ""
    owner: str
    device: str = ""
    channel: str = ""
    workspace: str = ""
    created_ms: int
    updated_ms: int
    archived: bool = False
    parent_id: str = ""
    parent_seq: int = 0
    fold_from: int = 1
    parent_run_id: str = ""
    segment_id: str = ""
    kept: bool = False
    model: str = ""
    head_seq: int = 0
    active: str = ""


class SessionPage(Struct, frozen=True, kw_only=True):
    sessions: list[Session]
    next: str | None


class EntryPage(Struct, frozen=True, kw_only=True):
    """`next` is the cursor of the next page, null on the last one."""

    entries: list[Entry]
    next: int | None


class Submitted(Struct, frozen=True, kw_only=True):
    """`run_id` is the run that will answer: a new one, or the one this input joined. Watch from
    `seq`.
    """

    run_id: str
    session_id: str
    submission_id: str
    state: Literal["accepted", "cancelled", "done", "failed", "in_progress", "waiting"]
    outcome: Literal["joined", "queued", "repeated", "started"]
    seq: int


class Attaching(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the session that goes with a message, by the id that storing it gave."""

    artifact: str
    name: str = ""


class RunWait(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Wait of a run: why, when the model is called next, and when the run gives up."""

    cause: Literal[
        "auth",
        "bad_request",
        "content_blocked",
        "context_too_long",
        "cut",
        "interrupted",
        "malformed",
        "model_not_found",
        "network",
        "not_a_model_server",
        "overloaded",
        "permission",
        "quota",
        "rate_limited",
        "timeout",
        "tools_unsupported",
    ]
    message: str
    provider: str
    model: str
    next_try_ms: int
    deadline_ms: int
    attempt: int = 1
    since_ms: int = 0


class RunRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reason` says what a waiting run waits for, and why a failed or cancelled one ended."""

    run_id: str
    session_id: str
    principal: str
    origin: Literal["api", "channel", "child", "interactive", "scheduled"]
    state: Literal["accepted", "cancelled", "done", "failed", "in_progress", "waiting"]
    reason: str = ""
    created_ms: int
    started_ms: int = 0
    ended_ms: int = 0
    heartbeat_ms: int = 0
    recorded: bool = True
    wait: RunWait | None = None


class RunPage(Struct, frozen=True, kw_only=True):
    runs: list[RunRow]
    next: str | None


class ShownRule(Struct, frozen=True, kw_only=True):
    """`words` is the rule as it is kept; `means` says what the daemon does about it; `cedar` is
    what policy is asked with.
    """

    rule_id: str
    words: str
    means: str
    cedar: str
    created_ms: int


class RuleList(Struct, frozen=True, kw_only=True):
    rules: list[ShownRule]


class StoredFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reads_as`: what a model gets of it. `characters` is how much text it has; `note` says why
    there is none.
    """

    artifact: str
    name: str
    media_type: str
    size: int
    reads_as: Literal["description", "image", "text"]
    width: int = 0
    height: int = 0
    characters: int = 0
    note: str = ""


class PreviewedReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`size` is of the whole, in `unit`; `characters` and `tokens` are of what the model would be
    shown. `error`: why it fails.
    """

    reference: str
    kind: Literal["diff", "file", "folder", "memory", "run", "staged", "url"]
    target: str = ""
    size: int = 0
    unit: str = "characters"
    characters: int = 0
    tokens: int = 0
    truncated: bool = False
    label: Label = Label()
    warnings: tuple[str, ...] = ()
    error: str = ""
    policies: tuple[str, ...] = ()


class ReferencesPreview(Struct, frozen=True, kw_only=True):
    """`errors` are about the message as a whole. With an error anywhere the message would be
    refused.
    """

    references: tuple[PreviewedReference, ...]
    characters: int
    tokens: int
    errors: tuple[str, ...] = ()


class PathList(Struct, frozen=True, kw_only=True):
    """Folders end in a slash."""

    paths: list[str]


class ScoreParts(Struct, frozen=True, kw_only=True):
    """Parts of a score, each in 0 to 1: how much of the question's words it has, how near its
    meaning is, what these two come to, the best of its neighbours, how recent it is, how sure we
    are.
    """

    words: float
    meaning: float
    own: float
    neighbour: float
    recency: float
    confidence: float


class Said(Struct, frozen=True, kw_only=True):
    """Passage of a session that was found. `seq` is its entry on the session's tape; `label` is
    what it was made from.
    """

    session_id: str
    title: str
    seq: int
    time_ms: int
    speaker: str
    snippet: str
    score: float
    parts: ScoreParts
    label: Label
    run_id: str


class SaidPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Entries, best first. `words_only`: why meanings were not searched. `not_searched`: entries
    that are not indexed yet.
    """

    found: list[Said]
    words_only: str = ""
    not_searched: int = 0


class ShownCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    call_id: str
    tool: str
    arguments: dict[str, Any]
    outcome: str = ""
    text: str = ""
    undone: bool = False


class ShownTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn as a model would have been shown it; `notes` are the daemon's own words to it."""

    seq: int
    who: Literal["model", "summary", "user"]
    text: str = ""
    run_id: str = ""
    notes: tuple[str, ...] = ()
    calls: tuple[ShownCall, ...] = ()


class RunThen(Struct, frozen=True, kw_only=True):
    run_id: str
    state: Literal["accepted", "cancelled", "done", "failed", "in_progress", "waiting"]


class ChangedFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of a file, and what made it: a call, an undo of one, or a rewind."""

    seq: int
    path: str
    change: Literal["created", "deleted", "modified", "restored"]
    by: str
    call_id: str = ""
    run_id: str = ""


class Lasting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that changed something other than files we can put back: a message sent, a command
    run.
    """

    seq: int
    call_id: str
    run_id: str
    tool: str
    effect: Literal["idempotent", "once", "pure", "reversible"]
    what: str
    outcome: str = ""


class Moment(Struct, frozen=True, kw_only=True):
    """`unread` was said and had not reached the model; `changed` and `lasting` came after this
    entry.
    """

    session_id: str
    seq: int
    head_seq: int
    time_ms: int
    kind: str
    turns: tuple[ShownTurn, ...]
    left_out: int
    unread: tuple[str, ...]
    label: Label
    rules: tuple[SessionRule, ...]
    runs: tuple[RunThen, ...]
    changed: tuple[ChangedFile, ...]
    lasting: tuple[Lasting, ...]


class Clash(Struct, frozen=True, kw_only=True):
    """A file that cannot be put back without losing what somebody else did to it."""

    path: str
    why: str


class Rewound(Struct, frozen=True, kw_only=True):
    """Result of a rewind, or its preview. `seq` is its entry; to go forward again, rewind to the
    one before it.
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


class NotUndone(Struct, frozen=True, kw_only=True):
    """A call whose changes could not be put back, and why."""

    call_id: str
    tool: str
    why: str


class Undone(Struct, frozen=True, kw_only=True):
    """`diff` shows, in a dry run, what becomes of the files; `conflicts` are those that somebody
    else has changed.
    """

    calls: tuple[str, ...]
    changes: tuple[FileChange, ...]
    dry_run: bool = False
    diff: str = ""
    conflicts: tuple[str, ...] = ()
    left: tuple[NotUndone, ...] = ()


class Agent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subagent in its tree: `depth` 1 works for the session itself."""

    session_id: str
    run_id: str
    parent_session_id: str
    parent_run_id: str
    call_id: str
    depth: int
    task: str
    state: Literal["accepted", "cancelled", "done", "failed", "in_progress", "waiting"]
    reason: str = ""
    created_ms: int
    ended_ms: int = 0


class Agents(Struct, frozen=True, kw_only=True):
    """The tree of a session's subagents, each behind the one it works for."""

    agents: list[Agent]


class DeletedSession(Struct, frozen=True, kw_only=True):
    """A session that was deleted: `segment_id` names the sealed file that still proves it."""

    session_id: str
    segment_id: str
    entries: int
    bytes: int


class Compaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One compaction as it is told. `seq` is 0 as long as it was not applied, and `why` says why it
    was not.
    """

    seq: int = 0
    time_ms: int = 0
    applied: bool = False
    stands: bool = False
    automatic: bool = False
    why: str = ""
    summary: str = ""
    from_seq: int = 0
    upto_seq: int = 0
    turns: int = 0
    records: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    written_by: Literal["", "extractive", "model"] = ""
    fallback: str = ""


class CompactionPage(Struct, frozen=True, kw_only=True):
    """All of a session, oldest first."""

    compactions: list[Compaction]


class Uncompacted(Struct, frozen=True, kw_only=True):
    """The compactions that count as never made: the one that was named, and those that were built
    on it.
    """

    compactions: tuple[int, ...]


class Pinned(Struct, frozen=True, kw_only=True):
    """Positions at which the pinned runs were accepted; these stay whole."""

    pins: tuple[int, ...]
