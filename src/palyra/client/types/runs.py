"""Written by scripts/clients.py from the route table: what the verbs about runs give and take."""

from typing import Any, Literal

from msgspec import Struct

from palyra.client.types.sessions import RunRow
from palyra.core.events import AssembledPart, RoutePlanned
from palyra.features.learning.model import Candidate

__all__ = [
    "AskedModel",
    "AssembledPart",
    "BilledTurn",
    "Candidate",
    "Difference",
    "Forked",
    "PlannedRoute",
    "Reflected",
    "Replayed",
    "RoutePlanned",
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


class Reflected(Struct, frozen=True, kw_only=True):
    """What a reflection found. `found_by` is who read; `note` says why a model that is configured
    did not.
    """

    session_id: str
    candidates: list[Candidate]
    found_by: str = "rules"
    note: str = ""


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
    """How far the replay of a run is. `problem`: why it could not be replayed."""

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
