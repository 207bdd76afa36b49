"""Candidate: something learned from a run and not believed yet, its sources, and the one table of
its review.

The rule: only the owner's own words can be applied automatically, and only above a threshold;
everything else is a suggestion. Whatever was applied can be undone.

Settings of learning, and the name of its tasks.
"""

from typing import Any, Literal

from msgspec import Struct

from palyra.core.errors import IllegalTransition
from palyra.core.events import CandidateState as Settled
from palyra.core.labels import CLEAN, Label
from palyra.core.verdicts import Risk
from palyra.features.memory.model import Kind as MemoryKind

CandidateKind = Literal["fact", "preference", "procedure", "policy"]
CandidateState = Literal["proposed"] | Settled
Move = Literal["hold", "suppress", "conflict", "accept", "apply", "fail", "reject", "roll_back"]

MOST_CANDIDATES = 24
BUDGET_TOKENS = 1_200
COOLDOWN_MS = 5 * 60_000
LONGEST_CONTENT = 600
_MOST_EVIDENCE = 16

# The review, whole: from a state, by a move, into a state. What is not here cannot happen.
TABLE: dict[CandidateState, dict[Move, CandidateState]] = {
    "proposed": {
        "hold": "pending_review",
        "suppress": "suppressed",
        "conflict": "conflicted",
        "accept": "accepted",
    },
    "suppressed": {
        "hold": "pending_review",
        "conflict": "conflicted",
        "accept": "accepted",
        "reject": "rejected",
    },
    "pending_review": {"conflict": "conflicted", "accept": "accepted", "reject": "rejected"},
    "conflicted": {"accept": "accepted", "reject": "rejected"},
    # It was said yes to and could not be done: it waits again, with the reason.
    "accepted": {"apply": "applied", "fail": "pending_review"},
    "applied": {"roll_back": "rolled_back"},
    # A no stands until the person who said it changes their mind.
    "rolled_back": {"accept": "accepted"},
    "rejected": {"accept": "accepted"},
}
WAITING: tuple[CandidateState, ...] = ("pending_review", "conflicted")
STATES: tuple[CandidateState, ...] = tuple(TABLE)


class Evidence(Struct, frozen=True, omit_defaults=True):
    """Place where it was said: an entry of a session's tape, its position in the journal, and the
    words.
    """

    session_id: str
    seq: int
    quote: str = ""
    position: int = 0


class ProcedureStep(Struct, frozen=True, omit_defaults=True):
    """One step of a procedure: a tool, and its arguments; `…` stands for what was different each
    time.
    """

    tool: str
    arguments: dict[str, Any] = {}


class LearningFinding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Finding of rules or of a model in a tape.

    `about` names what it is about without the value it gives, so that another value for the same is
    seen as a conflict.
    """

    kind: CandidateKind
    content: str
    confidence_bps: int
    evidence: tuple[Evidence, ...]
    risk: Risk = "low"
    label: Label = CLEAN
    memory_kind: MemoryKind = "fact"
    about: str = ""
    steps: tuple[ProcedureStep, ...] = ()
    # Of a procedure: the runs in which it succeeded. Of a policy: the text of the permit.
    runs: tuple[str, ...] = ()
    cedar: str = ""
    # Who found it: `rules`, or the name of a model.
    found_by: str = "rules"
    # Whether the person told the agent to keep it, as in "remember that I …".
    addressed: bool = False


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Effect of applying it, so that it can be undone: an item of memory, a skill, a file of
    policies.
    """

    memory_id: str = ""
    # The item whose place it took.
    replaced: str = ""
    skill: str = ""
    file: str = ""


class Candidate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The same on disk, on the wire and on the screen. `conflicts_with` is the item of memory that
    says otherwise.

    `automatic`: nobody was asked before it was applied. `doing` is set while files are being
    brought into line.
    """

    candidate_id: str
    owner: str
    session_id: str = ""
    run_id: str = ""
    kind: CandidateKind
    content: str
    confidence_bps: int
    risk: Risk = "low"
    label: Label = CLEAN
    evidence: tuple[Evidence, ...] = ()
    state: CandidateState = "proposed"
    reason: str = ""
    memory_kind: MemoryKind = "fact"
    about: str = ""
    steps: tuple[ProcedureStep, ...] = ()
    runs: tuple[str, ...] = ()
    cedar: str = ""
    found_by: str = "rules"
    conflicts_with: str = ""
    automatic: bool = False
    effect: Effect = Effect()
    doing: Literal["", "apply", "roll_back"] = ""
    # Of the entry that proposed it.
    position: int = 0
    created_ms: int = 0
    updated_ms: int = 0


class Threshold(Struct, frozen=True):
    """Threshold in basis points. `auto_bps` above 10,000: never automatic."""

    review_bps: int
    auto_bps: int = 10_001


class Thresholds(Struct, frozen=True, kw_only=True):
    """`automatic` false: nothing is applied before a person said so."""

    automatic: bool = True
    fact: Threshold = Threshold(7_500, 9_000)
    preference: Threshold = Threshold(8_000, 9_500)
    procedure: Threshold = Threshold(8_500)
    policy: Threshold = Threshold(8_500)

    def of(self, kind: CandidateKind) -> Threshold:
        found: Threshold = getattr(self, kind)
        return found


def move(state: CandidateState, by: Move, candidate_id: str = "") -> CandidateState:
    """The state that a move leads to."""
    after = TABLE[state].get(by)
    if after is None:
        possible = ", ".join(TABLE[state]) or "nothing"
        raise IllegalTransition(
            f"candidate {candidate_id} is {state}: {by.replace('_', ' ')} is not possible now, only"
            f" {possible.replace('_', ' ')}"
        )
    return after


def first_move(
    finding: LearningFinding, thresholds: Thresholds
) -> Literal["suppress", "hold", "accept"]:
    """Return what happens to a finding by its confidence. Only what the owner told the agent to
    keep is applied at once. Procedures and policies never are, whatever is configured, nor is what
    has anything untrusted in it or could do harm.
    """
    threshold = thresholds.of(finding.kind)
    if finding.confidence_bps < threshold.review_bps:
        return "suppress"
    harmless = (
        finding.addressed
        and finding.label.integrity == "trusted"
        and finding.risk == "low"
        and finding.kind in ("fact", "preference")
    )
    return (
        "accept"
        if thresholds.automatic and harmless and finding.confidence_bps >= threshold.auto_bps
        else "hold"
    )


def more_evidence(known: tuple[Evidence, ...], found: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Join both, each entry once, the oldest first; of many the oldest."""
    seen = {(each.session_id, each.seq): each for each in reversed((*known, *found))}
    return tuple(sorted(seen.values(), key=lambda each: (each.position, each.seq)))[:_MOST_EVIDENCE]


KIND = "reflect"
FEED_MS = 30_000


class LearningSettings(Struct, frozen=True, kw_only=True):
    """`model` empty: rules find what is said. `enabled` false: nothing is read by itself, only on
    demand.
    """

    enabled: bool = True
    thresholds: Thresholds = Thresholds()
    cooldown_ms: int = COOLDOWN_MS
    budget_tokens: int = BUDGET_TOKENS
    most_candidates: int = MOST_CANDIDATES
    model: str = ""
