"""Written by scripts/clients.py from the route table: types of the verbs about learning."""

from msgspec import Struct

from palyra.client.types.runs import Candidate

__all__ = [
    "Candidate",
    "CandidateList",
    "LearningSettings",
    "ShownCandidate",
    "Threshold",
    "Thresholds",
]


class CandidateList(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last. `counts` are of
    all there are, by state.
    """

    candidates: list[Candidate]
    counts: dict[str, int]
    next: str = ""


class Threshold(Struct, frozen=True, kw_only=True):
    """Threshold in basis points. `auto_bps` above 10,000: never automatic."""

    review_bps: int
    auto_bps: int = 10001


class Thresholds(Struct, frozen=True, kw_only=True):
    """`automatic` false: nothing is applied before a person said so."""

    automatic: bool = True
    fact: Threshold = Threshold(review_bps=7500, auto_bps=9000)
    preference: Threshold = Threshold(review_bps=8000, auto_bps=9500)
    procedure: Threshold = Threshold(review_bps=8500)
    policy: Threshold = Threshold(review_bps=8500)


class LearningSettings(Struct, frozen=True, kw_only=True):
    """`model` empty: rules find what is said. `enabled` false: nothing is read by itself, only on
    demand.
    """

    enabled: bool = True
    thresholds: Thresholds = Thresholds()
    cooldown_ms: int = 300000
    budget_tokens: int = 1200
    most_candidates: int = 24
    model: str = ""


class ShownCandidate(Struct, frozen=True, kw_only=True):
    """A candidate with what accepting it would do, in words and as a difference; `problem`: why it
    could not be done.
    """

    candidate: Candidate
    would: str
    diff: str = ""
    problem: str = ""
    moves: tuple[str, ...] = ()
