"""Progress of a run: its turns, its calls and what it waits for."""

from dataclasses import dataclass, field
from typing import Any

from palyra.core import labels
from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.degenerate import Flaw, Repeats
from palyra.core.events import (
    AgentSpawned,
    ApprovalRequested,
    ApprovalResolved,
    Budgets,
    Call,
    InputReceived,
    ModelFailed,
    ModelReplied,
    PlanDeclared,
    Point,
    RunAccepted,
    RunWaiting,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
    WaitReason,
    Wanted,
)
from palyra.core.ids import ApprovalId, RunId
from palyra.core.labels import Label
from palyra.core.run_state import RunState


@dataclass(slots=True)
class CallProgress:
    """Progress of one tool call."""

    call: Call
    proposed: ToolProposed | None = None
    decided: ToolDecided | None = None
    asked: ApprovalRequested | None = None
    answered: ApprovalResolved | None = None
    started: ToolStarted | None = None
    attempts: int = 0
    finished: ToolFinished | None = None
    # Where on the tape its result stands.
    finished_seq: int = 0
    undone: bool = False
    # Set when a run of its own does it.
    spawned: AgentSpawned | None = None
    # Set when the program that asked does it.
    handed_over: bool = False

    @property
    def away(self) -> bool:
        """A subagent works on it."""
        return self.spawned is not None and self.finished is None

    @property
    def clients(self) -> bool:
        """Return whether the calling program executes this call."""
        return self.decided is not None and self.decided.by == "client"

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments as a person edited them, else as proposed, else as the model wrote them."""
        if self.answered is not None and self.answered.arguments is not None:
            return self.answered.arguments
        return self.proposed.arguments if self.proposed is not None else self.call.arguments

    @property
    def ready(self) -> bool:
        """Decided in its favour and not yet begun."""
        if self.finished or self.started or self.handed_over or not self.decided:
            return False
        return self.decided.verdict == "allow" or (
            self.answered is not None and self.answered.decision == "allow"
        )


@dataclass(slots=True)
class UserTurn:
    """Messages of people, and `notes` on what happened to the model's work since its last turn."""

    seq: int
    run_id: str
    accepted_seq: int
    inputs: tuple[InputReceived, ...]
    notes: tuple[str, ...] = ()
    # The items of memory that were shown with it. Their text is not on the tape.
    recalled: tuple[str, ...] = ()
    # Those of them that were told with a word of doubt.
    doubted: tuple[str, ...] = ()


@dataclass(slots=True)
class ModelTurn:
    seq: int
    run_id: str
    accepted_seq: int
    reply: ModelReplied
    calls: list[CallProgress]


@dataclass(slots=True)
class Summary:
    """Summary that a compaction made of the turns before it; the next one builds on `points`."""

    seq: int
    accepted_seq: int
    text: str
    label: Label = labels.CLEAN
    points: tuple[Point, ...] = ()
    records: int = 0
    from_seq: int = 0


Turn = UserTurn | ModelTurn | Summary


@dataclass(slots=True)
class RunProgress:
    """One unfinished run: its state, its last reply's calls, what it used up."""

    run_id: RunId
    state: RunState
    accepted: RunAccepted
    accepted_seq: int
    inputs: list[tuple[int, InputReceived]] = field(default_factory=list)
    pending: dict[ApprovalId, ApprovalRequested] = field(default_factory=dict)
    last: ModelTurn | None = None
    begun: bool = False
    # Whether anything of its input is a turn of the conversation.
    heard: bool = False
    turns: int = 0
    calls: int = 0
    # Replies that were cut off before the last one, which continues them.
    pieces: list[str] = field(default_factory=list)
    # Whether a person has spoken since the last reply.
    interjected: bool = False
    active_ms: int = 0
    cost_microusd: int = 0
    # Who is being asked, and how far a person let the run go on beyond a budget, by account.
    route: str = ""
    raised: dict[str, int] = field(default_factory=dict)
    last_time_ms: int = 0
    # Model turns of its subagents that have ended. Their calls, their time and their cost are
    # counted with its own.
    agent_turns: int = 0
    tokens: int = 0
    agent_tokens: int = 0
    agent_microusd: int = 0
    # What was shown of a reply that failed, unless a whole one has come since.
    partial: ModelFailed | None = None
    # What the calling program wants, and how many turns there had been when it said so.
    wanted: Wanted | None = None
    wanted_at: int = 0
    # What is wrong with the last answer, of which kind that is, and how often its form was wrong.
    refused: str = ""
    flaw: Flaw = "form"
    refusals: int = 0
    # Of which flaws the model was told since it last did something new.
    told: list[str] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    # While no provider can answer: what the run waits for. `waited` stays until the next reply, so
    # that its deadline counts from the first wait.
    waiting: RunWaiting | None = None
    waited: RunWaiting | None = None
    # The active time before the present try: one that brought nothing is no work.
    before_try_ms: int = 0
    # What it was going to do, as it said before it read anything untrusted.
    plans: list[PlanDeclared] = field(default_factory=list)
    # The model that a person chose while the run waited.
    chosen: str = ""

    @property
    def model(self) -> str:
        """The model that the run is to ask by name; empty: the usual one."""
        return self.chosen or self.accepted.model

    @property
    def waits_for(self) -> WaitReason | None:
        if self.waiting is not None:
            return "provider"
        for request in self.pending.values():
            match request.about:
                case "tool":
                    return "approval"
                case "in_doubt":
                    return "in_doubt"
                case "budget":
                    return "budget"
        return None

    @property
    def formed(self) -> bool:
        """The answer is to have a form that can be checked."""
        return self.wanted is not None and self.wanted.form != "text"

    @property
    def options(self) -> CallOptions:
        return self.wanted.options if self.wanted is not None else NOTHING

    @property
    def budgets(self) -> Budgets:
        return self.accepted.budgets
