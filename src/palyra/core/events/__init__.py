"""The event vocabulary: one tagged union. The same bytes are the tape entry, the wire message and
what a screen draws.

An event says what happened, in the past tense. Add a kind when something new must be remembered;
never a second word for an old thing. New fields get a default, so that every old tape still reads.
`runs` has those of a run, `records` all others, `parts` what they are made of.
"""

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from palyra.core.events.parts import (
    DOUBT,
    MEMORY_SEARCH,
    Administered,
    AgentEnd,
    ApprovalAbout,
    Asker,
    AssembledPart,
    Attachment,
    Attestation,
    Brought,
    BudgetAsked,
    Budgets,
    Call,
    CandidateState,
    Circumstances,
    ClientTool,
    Commission,
    Decision,
    Domain,
    Earlier,
    Event,
    FileChange,
    FileDigest,
    Flow,
    Given,
    GivenCall,
    GivenTurn,
    GrantScope,
    InputMode,
    LeftBecause,
    NoticeAbout,
    PassedOver,
    Point,
    PointKind,
    Priced,
    Reference,
    ReferenceKind,
    RefusedWorker,
    Severity,
    Shadow,
    TaskClass,
    TriedResult,
    WaitReason,
    Wanted,
)
from palyra.core.events.records import (
    AccessRefused,
    AccessWidened,
    AdminChanged,
    CandidateProposed,
    CandidateSettled,
    IncidentClosed,
    IncidentOpened,
    IncidentTried,
    JournalArchived,
    JournalCheckpointed,
    JournalRestored,
    MemoryRemoved,
    MemoryWritten,
    MessageReceived,
    MessageRefused,
    OwnerNotified,
    ReplyAbandoned,
    ReplySent,
    SessionBranched,
    SessionChanged,
    SessionCompacted,
    SessionCreated,
    SessionPinned,
    SessionReset,
    SessionRestored,
    SessionRuled,
    SessionUncompacted,
    TaskFinished,
    WorkerJoined,
    WorkerLeft,
    WorkerRefused,
)
from palyra.core.events.runs import (
    AgentAnswered,
    AgentAsked,
    AgentSpawned,
    AnswerRefused,
    ApprovalRequested,
    ApprovalResolved,
    FilesLabelled,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    ModelUsed,
    PlanDeclared,
    RoutePlanned,
    RunAccepted,
    RunCancelled,
    RunClockChanged,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    ToolDecided,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)
from palyra.core.ids import CallId, RunId
from palyra.core.messages import FailureClass

__all__ = [
    "DOUBT",
    "KINDS",
    "MEMORY_SEARCH",
    "AccessRefused",
    "AccessWidened",
    "AdminChanged",
    "Administered",
    "AgentAnswered",
    "AgentAsked",
    "AgentEnd",
    "AgentSpawned",
    "AnswerRefused",
    "AnyEvent",
    "ApprovalAbout",
    "ApprovalRequested",
    "ApprovalResolved",
    "Asker",
    "AssembledPart",
    "Attachment",
    "Attestation",
    "Brought",
    "BudgetAsked",
    "Budgets",
    "Call",
    "CandidateProposed",
    "CandidateSettled",
    "CandidateState",
    "Circumstances",
    "ClientTool",
    "Commission",
    "Decision",
    "Domain",
    "Earlier",
    "Entry",
    "Event",
    "FileChange",
    "FileDigest",
    "FilesLabelled",
    "Flow",
    "Given",
    "GivenCall",
    "GivenTurn",
    "GrantScope",
    "IncidentClosed",
    "IncidentOpened",
    "IncidentTried",
    "InputAssembled",
    "InputMode",
    "InputReceived",
    "JournalArchived",
    "JournalCheckpointed",
    "JournalRestored",
    "LeftBecause",
    "LiveEvent",
    "MemoryRemoved",
    "MemoryWritten",
    "MessageReceived",
    "MessageRefused",
    "ModelDelta",
    "ModelFailed",
    "ModelReplied",
    "ModelUsed",
    "NoticeAbout",
    "OwnerNotified",
    "PassedOver",
    "PlanDeclared",
    "Point",
    "PointKind",
    "Priced",
    "Reference",
    "ReferenceKind",
    "RefusedWorker",
    "ReplyAbandoned",
    "ReplySent",
    "RetryPlanned",
    "RoutePlanned",
    "RunAccepted",
    "RunCancelled",
    "RunClockChanged",
    "RunCompleted",
    "RunFailed",
    "RunResumed",
    "RunStarted",
    "RunWaiting",
    "SessionBranched",
    "SessionChanged",
    "SessionCompacted",
    "SessionCreated",
    "SessionPinned",
    "SessionReset",
    "SessionRestored",
    "SessionRuled",
    "SessionUncompacted",
    "Severity",
    "Shadow",
    "StateChanged",
    "TaskClass",
    "TaskFinished",
    "ToolDecided",
    "ToolFinished",
    "ToolHandedOver",
    "ToolProgress",
    "ToolProposed",
    "ToolStarted",
    "ToolUndone",
    "Topic",
    "TriedResult",
    "WaitReason",
    "Wanted",
    "WorkerJoined",
    "WorkerLeft",
    "WorkerRefused",
    "decode",
    "encode",
    "kind_of",
]


AnyEvent = (
    RunAccepted
    | RunStarted
    | RunResumed
    | RunWaiting
    | RunClockChanged
    | RunCompleted
    | RunFailed
    | RunCancelled
    | InputReceived
    | InputAssembled
    | RoutePlanned
    | ModelReplied
    | ModelFailed
    | ModelUsed
    | ToolProposed
    | ToolDecided
    | ToolStarted
    | ToolFinished
    | ToolHandedOver
    | AnswerRefused
    | PlanDeclared
    | FilesLabelled
    | ToolUndone
    | ApprovalRequested
    | ApprovalResolved
    | AgentSpawned
    | AgentAsked
    | AgentAnswered
    | SessionCreated
    | SessionReset
    | SessionBranched
    | SessionCompacted
    | SessionUncompacted
    | SessionPinned
    | SessionRestored
    | SessionRuled
    | SessionChanged
    | CandidateProposed
    | CandidateSettled
    | MemoryWritten
    | MemoryRemoved
    | MessageReceived
    | MessageRefused
    | ReplySent
    | ReplyAbandoned
    | IncidentOpened
    | IncidentTried
    | IncidentClosed
    | OwnerNotified
    | TaskFinished
    | AdminChanged
    | AccessRefused
    | AccessWidened
    | WorkerJoined
    | WorkerLeft
    | WorkerRefused
    | JournalArchived
    | JournalRestored
    | JournalCheckpointed
)


class ModelDelta(Event, frozen=True, kw_only=True, tag="model.delta"):
    """`whole`: everything that the turn has said until now, for whoever missed some of it, in place
    of what they heard. `progress`: how much of the prompt the server has read, in percent.
    """

    run_id: RunId
    turn: int
    text: str = ""
    reasoning: str = ""
    call: str = ""
    whole: bool = False
    progress: int | None = None


class ToolProgress(Event, frozen=True, kw_only=True, tag="tool.progress"):
    run_id: RunId
    call_id: CallId
    text: str


class RetryPlanned(Event, frozen=True, kw_only=True, tag="run.retry_planned"):
    """The provider that a run waits for is asked again at another time than was told before."""

    run_id: RunId
    cause: FailureClass
    message: str
    next_try_ms: int
    attempt: int = 1


Topic = Literal[
    "certificates",
    "channels",
    "incidents",
    "learning",
    "schedules",
    "settings",
    "tasks",
    "tokens",
    "workers",
]


class StateChanged(Event, frozen=True, kw_only=True, tag="state.changed"):
    """Something of these is not what it was. What it is now is asked for, by whoever may: nothing
    of it is told here.
    """

    what: tuple[Topic, ...]


LiveEvent = ModelDelta | ToolProgress | RetryPlanned | StateChanged

KINDS: frozenset[str] = frozenset(str(event.__struct_config__.tag) for event in get_args(AnyEvent))

encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode(body: bytes) -> AnyEvent:
    return _decoder.decode(body)


def kind_of(event: Event) -> str:
    return str(event.__struct_config__.tag)


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One stored event with its envelope. `event` holds the stored bytes: nothing re-encodes
    them.
    """

    tape: str
    seq: int
    position: int
    time_ms: int
    run_id: str = ""
    principal: str
    kind: str
    hash: str
    # The version of the link that `hash` was made by.
    link: int = 1
    event: msgspec.Raw
