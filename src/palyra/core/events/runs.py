"""Events of one run: its input, prompts, model calls, tool calls, approvals and subagents."""

from typing import Any, Literal

from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.degenerate import Flaw
from palyra.core.events.parts import (
    DOUBT,
    MEMORY_SEARCH,
    AgentEnd,
    ApprovalAbout,
    Asker,
    AssembledPart,
    Attachment,
    Attestation,
    BudgetAsked,
    Budgets,
    Call,
    Circumstances,
    ClientTool,
    Commission,
    Decision,
    Event,
    FileChange,
    FileDigest,
    Flow,
    Given,
    GrantScope,
    InputMode,
    PassedOver,
    Priced,
    Reference,
    Shadow,
    TaskClass,
    Wanted,
)
from palyra.core.ids import ApprovalId, ArtifactId, CallId, RunId, SessionId
from palyra.core.labels import CLEAN, Label, join
from palyra.core.messages import FailureClass, Native, StopReason, Usage
from palyra.core.plans import PlannedCall
from palyra.core.tools import Effect, Outcome, Preview, Scope, Subject
from palyra.core.verdicts import Origin, Risk


class RunAccepted(Event, frozen=True, kw_only=True, tag="run.accepted"):
    origin: Origin = "interactive"
    model: str = ""
    budgets: Budgets = Budgets()
    parent_run_id: RunId | None = None
    # Of a fork: the run it takes up again, and the folder of policies that are in force for it
    # alone.
    forked_run_id: RunId | None = None
    policy: str = ""
    # Of a subagent's run.
    commission: Commission | None = None
    # Of a run that a schedule started: what it uses is counted for it.
    schedule_id: str = ""
    # Beside the agent's own: the calls of these are handed to the program that asks.
    offered: tuple[ClientTool, ...] = ()
    wanted: Wanted | None = None
    # The trace that the program which asked works in, as its `traceparent` says.
    trace: str = ""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    node: str = "local"


class RunResumed(Event, frozen=True, kw_only=True, tag="run.resumed"):
    after: Literal[
        "crash", "approval", "in_doubt", "budget", "child", "client", "paused", "provider"
    ]
    node: str = "local"
    # Of one after `client`: what the program wants from now on.
    wanted: Wanted | None = None
    # Of one after `provider`: the model that a person chose instead, from now on.
    model: str = ""


class RunWaiting(Event, frozen=True, kw_only=True, tag="run.waiting"):
    """No provider can answer now, so the run waits and is tried again.

    `next_try_ms` is when Palyra plans to ask again, as known when the wait began; later plans are
    told live (`run.retry_planned`). `deadline_ms` is when the run fails if nobody answered by then.
    `since_ms` is when the run first waited since the model's last reply, and `attempt` counts its
    waits since then.
    """

    cause: FailureClass
    message: str
    provider: str
    model: str
    next_try_ms: int
    deadline_ms: int
    since_ms: int = 0
    attempt: int = 1
    reason: Literal["provider"] = "provider"


class RunClockChanged(Event, frozen=True, kw_only=True, tag="run.clock_changed"):
    """The wall clock moved while the run worked: the machine slept, or somebody set the clock.

    `active_ms` is how long the run really worked since its entry before this one; `moved_ms`, how
    far the clock moved beyond that, back if it is negative; `slept_ms`, how much of it the machine
    was asleep.
    """

    active_ms: int
    moved_ms: int
    slept_ms: int = 0


class RunCompleted(Event, frozen=True, kw_only=True, tag="run.completed"):
    text: str


class RunFailed(Event, frozen=True, kw_only=True, tag="run.failed"):
    """`reason` is stable (`turn_budget`, `model_auth`, …); `message` says what was done so far and
    what to do next.
    """

    reason: str
    message: str


class RunCancelled(Event, frozen=True, kw_only=True, tag="run.cancelled"):
    reason: str = "cancelled"


class InputReceived(Event, frozen=True, kw_only=True, tag="input.received"):
    submission_id: str
    text: str
    mode: InputMode = "followup"
    attachments: tuple[Attachment, ...] = ()
    label: Label = CLEAN
    references: tuple[Reference, ...] = ()
    # Of a message from chat, unless it came from a user of the daemon: who said it, for the model
    # to see.
    sender: str = ""
    given: Given | None = None

    @property
    def brings(self) -> Label:
        """Of everything it brings into the conversation: what was said, named, attached and told of
        before.
        """
        if not (self.references or self.attachments or self.given):
            return self.label
        given = self.given.label if self.given else CLEAN
        return join(
            [
                self.label,
                given,
                *(each.label for each in self.references),
                *(each.label for each in self.attachments),
            ]
        )


class InputAssembled(Event, frozen=True, kw_only=True, tag="input.assembled"):
    """Input that the model was shown. Messages up to `upto_seq` have joined the conversation.

    `from_seq` is set when the window slid: turns of runs that were accepted before it are no longer
    shown.
    """

    turn: int
    upto_seq: int
    parts: tuple[AssembledPart, ...]
    tokens: int
    budget: int
    # What the daemon told the model with the new input: work of its that was undone.
    notes: tuple[str, ...] = ()
    from_seq: int | None = None
    # SHA-256 of the whole request, and what in it comes from outside the tape, by its content; both
    # so that it can be shown again.
    digest: str = ""
    surroundings: ArtifactId | None = None
    # Items of memory that earlier runs were shown, and that stand where they stood then.
    kept_memory: tuple[str, ...] = ()
    # How many results of this run gave way to fit the window.
    left_out: int = 0
    # What the model was told besides: by settings, and by whoever asked.
    options: CallOptions = NOTHING
    # Whether the prompt was fitted to a small window, and the tools it then offered; none: all.
    fitted: bool = False
    offered: tuple[str, ...] = ()

    @property
    def memory_problem(self) -> str:
        return next((part.note for part in self.parts if part.source == MEMORY_SEARCH), "")

    @property
    def recalled(self) -> list[tuple[str, float]]:
        """The items of memory that this run is shown, with their scores."""
        note = next((part.note for part in self.parts if part.source == "memory"), "")
        return [
            (memory_id, float(score.rstrip(DOUBT)))
            for memory_id, _, score in (each.partition(" ") for each in note.split(", ") if each)
        ]

    @property
    def doubted(self) -> tuple[str, ...]:
        """Memories that were shown to the model with a word of doubt."""
        note = next((part.note for part in self.parts if part.source == "memory"), "")
        return tuple(
            each.partition(" ")[0] for each in note.split(", ") if each and each.endswith(DOUBT)
        )


class RoutePlanned(Event, frozen=True, kw_only=True, tag="route.planned"):
    """Plan of a model call: which provider, for what, why, and the expected cost; `fallbacks` are
    tried in turn if it fails.

    `expected_microusd` is absent where the price is unknown.
    """

    provider: str
    model: str
    reason: str
    fallbacks: tuple[str, ...] = ()
    task: TaskClass = "interactive"
    # Every consideration that had a part in it, in plain words.
    reasons: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    # The rule of the configuration that chose, if one did.
    rule: str = ""
    expected_input_tokens: int = 0
    expected_output_tokens: int = 0
    expected_microusd: int | None = None


class ModelReplied(Event, frozen=True, kw_only=True, tag="model.replied"):
    """A reply. With `stop` `interrupted` it is incomplete: a person's input, a cancel, STOP or the
    time budget broke it off.
    """

    turn: int
    provider: str
    model: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    stop: StopReason = "end"
    usage: Usage = Usage()
    # 0 also where the cost is not known: `priced` says which.
    cost_microusd: int = 0
    priced: Priced = ""
    task: TaskClass = "interactive"
    # The provider did not say what was used: this is our own count.
    estimated: bool = False
    first_delta_ms: int = 0
    duration_ms: int = 0
    native: Native | None = None


class ModelFailed(Event, frozen=True, kw_only=True, tag="model.failed"):
    """A model call that gave no reply. If the provider may bill it, `usage` is our own count of
    what was sent and received.

    `text` and `reasoning` are what was shown of the reply before it failed.
    """

    turn: int
    provider: str
    model: str
    failure: FailureClass
    message: str
    will_retry: bool
    attempt: int = 1
    wait_ms: int = 0
    text: str = ""
    reasoning: str = ""
    usage: Usage = Usage()
    cost_microusd: int = 0
    priced: Priced = ""
    task: TaskClass = "interactive"
    estimated: bool = False
    first_delta_ms: int = 0
    duration_ms: int = 0

    @property
    def billed(self) -> bool:
        """Return whether the call counts as made: a call that the provider refused used nothing."""
        return bool(self.usage.input_tokens or self.usage.output_tokens)


class ModelUsed(Event, frozen=True, kw_only=True, tag="model.used"):
    """A model was asked for something beside a conversation: what was used is counted like that of
    a reply.
    """

    provider: str
    model: str
    task: TaskClass
    purpose: str = ""
    usage: Usage = Usage()
    cost_microusd: int = 0
    priced: Priced = ""
    estimated: bool = False
    first_delta_ms: int = 0
    duration_ms: int = 0


class ToolProposed(Event, frozen=True, kw_only=True, tag="tool.proposed"):
    """A call with its arguments as they will be used: validated, scalars in their right types."""

    call_id: CallId
    tool: str
    arguments: dict[str, Any]
    effect: Effect = "once"
    scope: Scope = Scope()
    # Absent when policy was not asked.
    asked: Circumstances | None = None


class ToolDecided(Event, frozen=True, kw_only=True, tag="tool.decided"):
    call_id: CallId
    verdict: Literal["allow", "ask", "deny"]
    reason: str
    by: Literal["policy", "grant", "hard_rule", "catalogue", "rule", "client"] = "policy"
    policies: tuple[str, ...] = ()
    policy_version: str = ""
    # Set when the shadow policies would have decided otherwise.
    shadow: Shadow | None = None


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool.started"):
    """On disk before the tool runs. `key` is the same for every attempt of an idempotent call."""

    call_id: CallId
    key: str
    attempt: int = 1


class ToolFinished(Event, frozen=True, kw_only=True, tag="tool.finished"):
    call_id: CallId
    outcome: Outcome
    text: str = ""
    data: Any = None
    images: tuple[Attachment, ...] = ()
    artifact: ArtifactId | None = None
    size: int = 0
    duration_ms: int = 0
    changes: tuple[FileChange, ...] = ()
    label: Label = CLEAN
    attestation: Attestation | None = None
    # Of a call that started a subagent.
    agent: AgentEnd | None = None


class FilesLabelled(Event, frozen=True, kw_only=True, tag="files.labelled"):
    """Files were written after untrusted content was read. A clean label takes theirs away."""

    files: tuple[FileDigest, ...]
    label: Label = CLEAN
    session_id: str = ""
    run_id: str = ""


class PlanDeclared(Event, frozen=True, kw_only=True, tag="plan.declared"):
    """Plan of a run, recorded before it reads untrusted content: what the model declares (`calls`),
    and what the user's words ask for (`asked`).
    """

    calls: tuple[PlannedCall, ...] = ()
    asked: tuple[PlannedCall, ...] = ()


class AnswerRefused(Event, frozen=True, kw_only=True, tag="answer.refused"):
    """A reply that cannot be used; the model is told why and asked again.

    `flaw`: it has not the form that the calling program wants, it is empty, its call was made with
    the same result before, its arguments were wrong again, it repeats itself, text follows its
    call, or it describes a call and makes none.
    """

    turn: int
    problem: str
    flaw: Flaw = "form"


class ToolHandedOver(Event, frozen=True, kw_only=True, tag="tool.handed_over"):
    """The program that asked does these calls itself; the run waits until it brings what came of
    all of them.
    """

    calls: tuple[CallId, ...]


class ToolUndone(Event, frozen=True, kw_only=True, tag="tool.undone"):
    call_id: CallId
    changes: tuple[FileChange, ...]
    tool: str = ""
    why: Literal["undo", "settled"] = "undo"


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval.requested"):
    approval_id: ApprovalId
    call_id: CallId
    tool: str
    about: ApprovalAbout
    preview: Preview
    risk: Risk
    why: str
    subjects: tuple[Subject, ...] = ()
    policies: tuple[str, ...] = ()
    label: Label = CLEAN
    expires_ms: int = 0
    cost_microusd: int = 0
    # Absent where the label does not matter: nothing leaves and everything can be taken back.
    flow: Flow | None = None
    # Set when a subagent asks.
    asker: Asker | None = None
    # Of a question about money or tokens.
    budget: BudgetAsked | None = None
    # Where the values of the call's arguments come from.
    values: CallValues = NO_VALUES
    # What the run meant to do, in one line, where this call is no part of it.
    plan: str = ""
    # The first of those that were asked in one turn: they are one question.
    group: str = ""


class ApprovalResolved(Event, frozen=True, kw_only=True, tag="approval.resolved"):
    approval_id: ApprovalId
    call_id: CallId
    decision: Decision
    scope: GrantScope = "once"
    subject: Subject | None = None
    until_ms: int = 0
    # The arguments to use instead of those proposed, already validated.
    arguments: dict[str, Any] | None = None
    reason: str = ""
    surface: str = ""
    # What was approved, if the arguments were edited: the request shows what was proposed.
    preview: Preview | None = None


class AgentSpawned(Event, frozen=True, kw_only=True, tag="agent.spawned"):
    """A call of this run is done by a run of its own, in a session of its own; it begins in the
    same step.
    """

    call_id: CallId
    session_id: SessionId
    run_id: RunId
    budgets: Budgets


class AgentAsked(Event, frozen=True, kw_only=True, tag="agent.asked"):
    """A subagent of this run waits for a person. `call_id` is this run's own call that it works
    for.
    """

    call_id: CallId
    session_id: SessionId
    run_id: RunId
    request: ApprovalRequested


class AgentAnswered(Event, frozen=True, kw_only=True, tag="agent.answered"):
    call_id: CallId
    session_id: SessionId
    run_id: RunId
    answer: ApprovalResolved
