"""Written by scripts/clients.py from the route table: types of the verbs about runs."""

from typing import Any, Literal

from msgspec import Struct

from palyra.client.types.sessions import RunPage, RunRow
from palyra.core.events import AssembledPart, RoutePlanned
from palyra.core.labels import Label

__all__ = [
    "AskedModel",
    "AssembledPart",
    "BilledTurn",
    "Candidate",
    "Difference",
    "Effect",
    "Evidence",
    "Forked",
    "LearningStep",
    "PlannedRoute",
    "Reflected",
    "Replayed",
    "RoutePlanned",
    "RunPage",
    "RunPlans",
    "RunReplay",
    "RunRow",
    "Side",
    "Stopped",
    "TokenBill",
]


class BilledTurn(Struct, frozen=True, kw_only=True):
    """One model turn. `tokens` is our reckoning of what went in, `input_tokens` what the provider
    reported, 0 if it did not.
    """

    turn: int
    seq: int
    model: str = ""
    tokens: int
    budget: int
    parts: tuple[AssembledPart, ...]
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


class TokenBill(Struct, frozen=True, kw_only=True):
    turns: list[BilledTurn]


class Stopped(Struct, frozen=True, kw_only=True):
    """`cancelled`: the runs whose work was broken off. `recorded`: whether their ends are on their
    tapes by now.
    """

    cancelled: tuple[str, ...]
    recorded: bool = True


class AskedModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a model. `failure` is the class of what went wrong, empty where it answered."""

    seq: int
    time_ms: int
    model: str
    failure: str = ""
    message: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    priced: str = ""
    duration_ms: int = 0


class PlannedRoute(Struct, frozen=True, kw_only=True):
    """A plan with the calls that were made by it, until the next one."""

    seq: int
    time_ms: int
    plan: RoutePlanned
    calls: list[AskedModel]


class RunPlans(Struct, frozen=True, kw_only=True):
    """`plans` is empty where the run asked nobody yet, or where its tape was put away."""

    run: RunRow
    plans: list[PlannedRoute]


class Side(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the two entries; `at` is what stands at the place where they differ."""

    kind: str
    at: Any = None
    body: Any = None


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first entry that is not the same. A side is absent where its tape has no such entry."""

    seq: int
    where: str = ""
    recorded: Side | None = None
    replayed: Side | None = None
    hint: str = ""


class Replayed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`entries` is how many were compared and are the same; `difference` is the first that is
    not.
    """

    session_id: str
    run_id: str = ""
    title: str = ""
    identical: bool
    entries: int
    difference: Difference | None = None


class RunReplay(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a run's replay. `problem`: why it could not be replayed."""

    run_id: str
    state: Literal["done", "failed", "running"]
    replayed: Replayed | None = None
    problem: str = ""


class Forked(Struct, frozen=True, kw_only=True):
    """`at` is the entry it was forked behind: the wanted one, or the one before it at which the
    model was asked.
    """

    run_id: str
    session_id: str
    seq: int
    forked_run_id: str
    forked_session_id: str
    at: int


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Place where it was said: an entry of a session's tape, its position in the journal, and the
    words.
    """

    session_id: str
    seq: int
    quote: str = ""
    position: int = 0


class LearningStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a procedure: a tool, and its arguments; `…` stands for what was different each
    time.
    """

    tool: str
    arguments: dict[str, Any] = {}


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Effect of applying it, so that it can be undone: an item of memory, a skill, a file of
    policies.
    """

    memory_id: str = ""
    replaced: str = ""
    skill: str = ""
    file: str = ""


class Candidate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The same on disk, on the wire and on the screen. `conflicts_with` is the item of memory that
    says otherwise.
    """

    candidate_id: str
    owner: str
    session_id: str = ""
    run_id: str = ""
    kind: Literal["fact", "policy", "preference", "procedure"]
    content: str
    confidence_bps: int
    risk: Literal["critical", "high", "low", "medium"] = "low"
    label: Label = Label()
    evidence: tuple[Evidence, ...] = ()
    state: (
        Literal["proposed"]
        | Literal[
            "accepted",
            "applied",
            "conflicted",
            "pending_review",
            "rejected",
            "rolled_back",
            "suppressed",
        ]
    ) = "proposed"
    reason: str = ""
    memory_kind: Literal["constraint", "decision", "fact", "preference", "procedure"] = "fact"
    about: str = ""
    steps: tuple[LearningStep, ...] = ()
    runs: tuple[str, ...] = ()
    cedar: str = ""
    found_by: str = "rules"
    conflicts_with: str = ""
    automatic: bool = False
    effect: Effect = Effect()
    doing: Literal["", "apply", "roll_back"] = ""
    position: int = 0
    created_ms: int = 0
    updated_ms: int = 0


class Reflected(Struct, frozen=True, kw_only=True):
    """Result of a reflection. `found_by` is who read; `note` says why a configured model did
    not.
    """

    session_id: str
    candidates: list[Candidate]
    found_by: str = "rules"
    note: str = ""
