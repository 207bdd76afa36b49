"""The event vocabulary: one tagged union. The same bytes are the tape entry, the wire message and
what a screen draws.

An event says what happened, in the past tense. Add a kind when something new must be remembered;
never a second word for an old thing. New fields get a default, so that every old tape still reads.
"""

from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.degenerate import Flaw
from palyra.core.ids import OWNER, ApprovalId, ArtifactId, CallId, RunId, SessionId
from palyra.core.labels import CLEAN, Label, join, untrusted
from palyra.core.messages import FailureClass, Native, StopReason, Usage
from palyra.core.plans import PlannedCall
from palyra.core.tools import Capability, Effect, Outcome, Preview, Scope, Subject, Tier
from palyra.core.verdicts import Origin, Risk, SessionRule

InputMode = Literal["followup", "steer", "interrupt", "collect"]
WaitReason = Literal["approval", "budget", "child", "client", "in_doubt", "paused", "provider"]
ApprovalAbout = Literal["tool", "in_doubt", "budget"]
Decision = Literal["allow", "deny", "expired", "withdrawn", "happened", "again", "skip"]
GrantScope = Literal["once", "session", "timed", "always"]
ReferenceKind = Literal["file", "folder", "diff", "staged", "url", "memory", "run"]
# What a model is asked for; who answers is chosen by it.
TaskClass = Literal["interactive", "background", "summary", "extraction", "vision"]
# How a call's cost is known: from the list of prices that is shipped, from the owner's own, because
# it costs nothing, or not at all. Empty: it was recorded before there were prices.
Priced = Literal["", "list", "own", "free", "unknown"]
CandidateState = Literal[
    "pending_review", "accepted", "applied", "rolled_back", "rejected", "suppressed", "conflicted"
]

Administered = Literal[
    "config",
    "policy",
    "secret",
    "pairing",
    "token",
    "journal",
    "skill",
    "mcp",
    "notes",
    "budget",
    "task",
    "schedule",
    "daemon",
    "channel",
    "certificate",
    "listening",
    "worker",
]
Severity = Literal["info", "warning", "error", "critical"]
Domain = Literal[
    "run", "task", "browser", "artifact", "approval", "connector", "worker", "journal", "resource"
]
TriedResult = Literal["begun", "done", "failed"]
LeftBecause = Literal["lost", "closed", "revoked", "replaced"]
RefusedWorker = Literal[
    "certificate", "revoked", "code", "version", "double", "late_result", "not_its_call", "message"
]
NoticeAbout = Literal[
    "approval",
    "budget",
    "incident",
    "schedule",
    "learning",
    "daemon",
    "channel",
    "notes",
    "provider",
]


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of the union; the tag is the kind."""


class Attachment(Struct, frozen=True, omit_defaults=True):
    artifact: ArtifactId
    media_type: str
    name: str = ""
    size: int = 0
    # In pixels, of an image.
    width: int = 0
    height: int = 0
    # Of a file that a person attached: the beginning of its text, and the artifact that holds all
    # of it if that is more.
    text: str = ""
    text_artifact: ArtifactId | None = None
    note: str = ""
    label: Label = CLEAN


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a message named, as it was when the message came. `size` is of the whole, in `unit`; the
    model sees `text`.

    `artifact` holds the whole text if only a part is shown.
    """

    kind: ReferenceKind
    target: str = ""
    label: Label = CLEAN
    size: int = 0
    unit: Literal["bytes", "characters", "files"] = "characters"
    truncated: bool = False
    text: str = ""
    artifact: ArtifactId | None = None
    note: str = ""


PointKind = Literal["constraint", "decision", "question", "fact", "done", "course"]


class Point(Struct, frozen=True, omit_defaults=True):
    """One thing that a summary says, with the entry it comes from. `times`: so many were put
    together into one.
    """

    kind: PointKind
    text: str
    seq: int = 0
    times: int = 1


class Call(Struct, frozen=True, omit_defaults=True):
    """One tool call of a reply. `id` is ours and unique; `native_id` is the provider's, which may
    repeat between turns.
    """

    id: CallId
    tool: str
    arguments: dict[str, Any]
    native_id: str = ""
    # Set when the model's argument text was not a JSON object: what was wrong with it.
    malformed: str = ""
    # What was repaired in the model's argument text; `arguments` are the repaired ones.
    repaired: str = ""


# The source of a part without tokens: its note says why memory was not searched as it should be.
MEMORY_SEARCH = "memory search"
# Behind the score of an item that was told with a word of doubt.
DOUBT = "?"


class AssembledPart(Struct, frozen=True, omit_defaults=True):
    source: str
    tokens: int
    label: Label = CLEAN
    note: str = ""


class Budgets(Struct, frozen=True, omit_defaults=True):
    turns: int = 50
    calls: int = 100
    active_ms: int = 30 * 60_000
    # Tokens and millionths of a dollar that the run's model calls may use; 0: no limit of its own.
    tokens: int = 0
    microusd: int = 0


class Attestation(Struct, frozen=True, omit_defaults=True):
    """Who executed a call, where and under which rules."""

    executor: str
    tier: Tier
    policy_version: str
    input_sha256: str
    output_sha256: str
    approval_id: ApprovalId | None = None


class FileChange(Struct, frozen=True, omit_defaults=True):
    path: str
    change: Literal["created", "modified", "deleted", "restored"]


class FileDigest(Struct, frozen=True, omit_defaults=True):
    """A file, or a folder with everything in it. `digest`: the SHA-256 of its content, if known."""

    path: str
    digest: str = ""


class Circumstances(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What policy was told about a call beyond its tool, effect and scope, so that the same
    question can be asked again.
    """

    now_ms: int
    origin: Origin = "interactive"
    label: Label = CLEAN
    capabilities: tuple[Capability, ...] = ()
    source: str = "internal"
    agent: str = "default"
    channel: str = ""
    rules: tuple[SessionRule, ...] = ()
    # False when the scope on the tape is a redacted one: policy was told more than the tape may
    # say.
    exact: bool = True
    # Where the values of the arguments come from.
    values: CallValues = NO_VALUES


class Shadow(Struct, frozen=True, omit_defaults=True):
    """What another set of policies, which is not in force, would have decided."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    policies: tuple[str, ...] = ()
    policy_version: str = ""


class Brought(Struct, frozen=True, omit_defaults=True):
    """Which entry brought something into the conversation. `seq` 0: before the window; `tape`:
    another session's, if it is.
    """

    source: str
    seq: int = 0
    tool: str = ""
    tape: str = ""
    untrusted: bool = False
    private: bool = False


class BudgetAsked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit that is used up, and how far a yes lets the run go on: until `upto` is spent. In
    tokens or millionths of a dollar.
    """

    name: str
    # What is counted: whose spending, and since when.
    account: str
    unit: Literal["tokens", "microusd"]
    limit: int
    spent: int
    upto: int


class Flow(Struct, frozen=True, omit_defaults=True):
    """The way from what the model has read to where a call could take it.

    `sends_private`: private data would go there and no policy permits that. A wider yes then
    permits it, because it was said.
    """

    sources: tuple[Brought, ...]
    sinks: tuple[str, ...] = ()
    sends_private: bool = False


class Commission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a subagent's run was given: for whom it works, what to do, and what it may use.

    `tools` are the only ones it may call; None: those of its parent, which then has no bounds
    either. `root` is the session that a person began. `label` is of everything its parent had read
    when it wrote the task.
    """

    session_id: SessionId
    run_id: RunId
    call_id: CallId
    root: SessionId
    depth: int = 1
    task: str = ""
    tools: tuple[str, ...] | None = None
    label: Label = CLEAN
    # What it is asked for, where its parent said so: who serves that is chosen by the same rules as
    # for anybody.
    serves: TaskClass | None = None


class ClientTool(Struct, frozen=True, omit_defaults=True):
    """A tool that the program which asks brings along and does itself."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class Earlier(Struct, frozen=True, omit_defaults=True):
    role: Literal["user", "assistant", "tool"]
    text: str


class Given(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a calling program says beside its message: what it wants in general, and the
    conversation as it remembers it.
    """

    instructions: str = ""
    earlier: tuple[Earlier, ...] = ()

    @property
    def label(self) -> Label:
        """What others are said to have said may come from anywhere; what its user said is as good
        as the message itself.
        """
        return untrusted("client") if any(each.role != "user" for each in self.earlier) else CLEAN


class Wanted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a calling program, or whoever else asks, wants to be answered.

    `form`: the answer is one JSON object, or JSON that fits `schema`. `call`: a tool of its own
    that is to be called first. `options`: what the model is to be told besides.
    """

    form: Literal["text", "object", "schema"] = "text"
    # What the program calls the schema, and whether it asks the provider to keep to it by force.
    name: str = ""
    schema: dict[str, Any] = {}
    strict: bool = False
    call: str = ""
    options: CallOptions = NOTHING


class Asker(Struct, frozen=True, omit_defaults=True):
    """The subagent that asks: what it was given to do, how deep it is, and in whose session that
    began.
    """

    task: str
    depth: int
    root: SessionId


class AgentEnd(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a subagent's tape ended, and what it used with all those that worked for it."""

    session_id: SessionId
    run_id: RunId
    seq: int
    state: Literal["done", "failed", "cancelled"]
    turns: int = 0
    calls: int = 0
    active_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0


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
    """What the model was shown. Inputs up to `upto_seq` have joined the conversation.

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
        """Those of them that the model was told with a word of doubt."""
        note = next((part.note for part in self.parts if part.source == "memory"), "")
        return tuple(
            each.partition(" ")[0] for each in note.split(", ") if each and each.endswith(DOUBT)
        )


class PassedOver(Struct, frozen=True, omit_defaults=True):
    """A model that could have been asked, and why it is not."""

    model: str
    why: str


class RoutePlanned(Event, frozen=True, kw_only=True, tag="route.planned"):
    """Who is asked, for what, why, and what that is expected to cost; `fallbacks` are asked in turn
    if it fails.

    `expected_microusd` is absent where nobody knows the price.
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
        """Whether it counts as a call that was made: nothing was used by one that the provider
        refused.
        """
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
    """What a run is going to do, recorded before it reads untrusted content: what the model
    declares (`calls`), and what the user's words ask for (`asked`).
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


class MemoryWritten(Event, frozen=True, kw_only=True, tag="memory.written"):
    """An item as it stands from now on. Its text is not said: what is on the tape stays there, and
    a purge must be one.

    `digest` is the SHA-256 of the item's salt and text; with the salt gone it says nothing.
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
