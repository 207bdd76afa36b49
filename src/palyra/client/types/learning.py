"""Written by scripts/clients.py from the route table: what the verbs about learning give and
take.
"""

from msgspec import Struct

from palyra.features.learning.model import Candidate, Thresholds

__all__ = ["Candidate", "CandidateList", "LearningSettings", "ShownCandidate", "Thresholds"]


class CandidateList(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last. `counts` are of
    all there are, by state.
    """

    candidates: list[Candidate]
    counts: dict[str, int]
    next: str = ""


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
