"""Parts of events: their base, enumerations, and values that several events have."""

from typing import Any, Literal

from msgspec import Struct

from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.ids import ApprovalId, ArtifactId, CallId, RunId, SessionId
from palyra.core.labels import CLEAN, Label, untrusted
from palyra.core.tools import Capability, Tier
from palyra.core.verdicts import Origin, SessionRule

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
    """Reference in a message, as it was when the message came. `size` is of the whole, in `unit`;
    the model sees `text`.

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
    """Attestation of who executed a call, where and under which rules."""

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
    """Facts about a call that policy was given beyond its tool, effect and scope, so that the same
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
    """Decision that the shadow policy, which is not in force, would have made."""

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
    """Commission of a subagent's run: its parent, its task, and what it may use.

    `tools` are the only ones it may call; None: those of its parent, which then has no limit
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


class GivenCall(Struct, frozen=True, omit_defaults=True):
    """A tool call that a calling program says a model made."""

    call_id: str
    name: str
    arguments: dict[str, Any] = {}


class GivenTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of a conversation as a calling program tells it. It is no record of the daemon's: it
    says what the model is shown, and nothing about what was done or approved.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[GivenCall, ...] = ()
    # Of a tool's result.
    call_id: str = ""


class Given(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Context that a calling program gives beside its message: general instructions, and the
    conversation as it remembers it.
    """

    instructions: str = ""
    # As older daemons took it: shown to the model as one text.
    earlier: tuple[Earlier, ...] = ()
    turns: tuple[GivenTurn, ...] = ()

    @property
    def told(self) -> list[tuple[str, str]]:
        """Roles and texts of the conversation that it tells of."""
        before = [(each.role, each.text) for each in self.earlier]
        return [*before, *((each.role, each.text) for each in self.turns)]

    @property
    def label(self) -> Label:
        """Label of the context: words quoted from others may come from anywhere; the user's are as
        good as the message itself.
        """
        return untrusted("client") if any(role != "user" for role, _ in self.told) else CLEAN


class Wanted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Form of the answer that a calling program, or another caller, wants.

    `form`: the answer is one JSON object, or JSON that fits `schema`. `call`: a tool of the
    caller's own that is to be called first. `options`: further options of the model call.
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
    """End of a subagent's tape, and the usage of the subagent and all of its own subagents."""

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


class PassedOver(Struct, frozen=True, omit_defaults=True):
    """A model that could have been asked, and why it is not."""

    model: str
    why: str
