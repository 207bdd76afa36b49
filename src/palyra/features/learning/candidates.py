"""From findings to candidates, in one step: known ones are strengthened, conflicts seen, thresholds
held, the sure ones applied.

The rule: nothing is applied that nobody looked at unless the owner said it, above the threshold,
without a conflict, and memory itself would take it without a look.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from palyra.core import labels
from palyra.core.ids import SYSTEM
from palyra.features.learning import apply, model, rows, rules
from palyra.features.learning.model import MOST_CANDIDATES, Candidate, LearningFinding, Thresholds
from palyra.features.memory import words
from palyra.features.memory.model import Item, Where
from palyra.features.memory.rows import index
from palyra.features.memory.rows import search as rows_search
from palyra.store.database import Tx

# How many of the items that are nearest by their words are looked at for the same or the opposite.
_MOST_COMPARED = 20
_REPEATED_BPS = 800
_MOST_BPS = 9_900


class ComparedFinding(NamedTuple):
    """A finding with the item of memory that says otherwise, if one does."""

    finding: LearningFinding
    conflicts_with: str = ""


def best(findings: Sequence[LearningFinding]) -> list[LearningFinding]:
    """As many as one reflection may keep, the surest first; of several about the same the last."""
    last = {(each.kind, each.about or each.content): each for each in findings}
    return sorted(last.values(), key=lambda each: -each.confidence_bps)[:MOST_CANDIDATES]


def compare(tx: Tx, where: Where, finding: LearningFinding) -> ComparedFinding | None:
    """Look a finding up in what is remembered; None if that says the same. A search takes its time:
    this is for a reader.
    """
    partitions = index.visible(tx, where) if _remembers(finding) else []
    if not partitions:
        return ComparedFinding(finding)
    key = words.same_key(finding.content)
    other = ""
    for each in rows_search.search(tx, partitions, finding.content, _MOST_COMPARED):
        if words.same_key(each.item.text) == key:
            return None
        if not other and finding.about and rules.about(each.item.text) == finding.about:
            other = each.item.memory_id
    return ComparedFinding(finding, other)


def _remembers(finding: LearningFinding) -> bool:
    return finding.kind in ("fact", "preference")


class CandidateWriter:
    """One step's work. `item_of` says what would be remembered, `new_id` names what is new."""

    def __init__(
        self,
        tx: Tx,
        where: Where,
        thresholds: Thresholds,
        item_of: Callable[[Candidate], Item],
        new_id: Callable[[], str],
        run_id: str = "",
    ) -> None:
        self._tx = tx
        self._where = where
        self._thresholds = thresholds
        self._item_of = item_of
        self._new_id = new_id
        self._run_id = run_id

    def keep(self, compared: Sequence[ComparedFinding]) -> list[Candidate]:
        """The candidates that these findings are or became."""
        return [
            kept
            for each in compared
            if (kept := self._one(each.finding, each.conflicts_with)) is not None
        ]

    def _one(self, finding: LearningFinding, conflicts_with: str) -> Candidate | None:
        known = rows.same(self._tx, self._where.principal, finding)
        if known is not None:
            return self._again(known, finding)
        candidate = rows.propose(self._tx, self._candidate(finding, conflicts_with))
        for older in (
            rows.about_same(self._tx, candidate.owner, finding) if _remembers(finding) else ()
        ):
            if older.candidate_id != candidate.candidate_id:
                rows.settle(
                    self._tx,
                    older,
                    "conflict",
                    SYSTEM,
                    f"something else was said later: {candidate.candidate_id}",
                )
        return self._settled(candidate, finding)

    def _settled(self, candidate: Candidate, finding: LearningFinding) -> Candidate:
        """The first move of a candidate, and all that follows from it at once."""
        tx = self._tx
        move = model.first_move(finding, self._thresholds)
        if move == "suppress":
            return rows.settle(tx, candidate, "suppress", SYSTEM, "not sure enough to ask")
        if candidate.conflicts_with:
            return rows.settle(
                tx,
                candidate,
                "conflict",
                SYSTEM,
                f"memory {candidate.conflicts_with} says otherwise",
            )
        if move == "hold":
            return rows.settle(tx, candidate, "hold", SYSTEM, _why_held(finding, self._thresholds))
        item = self._item_of(candidate)
        if item.state != "active":
            return rows.settle(tx, candidate, "hold", SYSTEM, item.why)
        accepted = rows.settle(
            tx, candidate, "accept", SYSTEM, "sure enough to be applied at once", automatic=True
        )
        effect = apply.remember(tx, accepted, item)
        return rows.settle(
            tx, accepted, "apply", SYSTEM, "sure enough to be applied at once", effect=effect
        )

    def _again(self, known: Candidate, finding: LearningFinding) -> Candidate | None:
        """It was found before: more evidence makes it surer, once for each entry. A person's no
        stands.
        """
        seen = {(each.session_id, each.seq) for each in known.evidence}
        fresh = [each for each in finding.evidence if (each.session_id, each.seq) not in seen]
        if not fresh or known.state in ("applied", "accepted", "rejected", "rolled_back"):
            return None
        bps = max(known.confidence_bps, finding.confidence_bps)
        stronger = msgspec.structs.replace(
            known,
            evidence=model.more_evidence(known.evidence, finding.evidence),
            runs=tuple(dict.fromkeys((*known.runs, *finding.runs))),
            label=labels.join([known.label, finding.label]),
            confidence_bps=(
                bps
                if finding.kind in ("procedure", "policy")
                else min(_MOST_BPS, bps + _REPEATED_BPS)
            ),
        )
        stronger = rows.propose(self._tx, stronger)
        if (
            stronger.state == "suppressed"
            and stronger.confidence_bps >= self._thresholds.of(stronger.kind).review_bps
        ):
            return rows.settle(self._tx, stronger, "hold", SYSTEM, "said more than once")
        return stronger

    def _candidate(self, finding: LearningFinding, conflicts_with: str) -> Candidate:
        return Candidate(
            candidate_id=self._new_id(),
            owner=self._where.principal,
            session_id=self._where.session,
            run_id=self._run_id,
            kind=finding.kind,
            content=finding.content,
            confidence_bps=finding.confidence_bps,
            risk=finding.risk,
            label=finding.label,
            evidence=model.more_evidence((), finding.evidence),
            memory_kind=finding.memory_kind,
            about=finding.about,
            steps=finding.steps,
            runs=finding.runs,
            cedar=finding.cedar,
            found_by=finding.found_by,
            conflicts_with=conflicts_with,
            created_ms=self._tx.now_ms,
        )


def _why_held(finding: LearningFinding, thresholds: Thresholds) -> str:
    if finding.label.integrity == "untrusted":
        return "comes from untrusted content: " + (
            ", ".join(finding.label.sources) or "source unknown"
        )
    if finding.kind in ("procedure", "policy"):
        return f"a {finding.kind} is never applied by itself"
    if finding.risk == "high":
        return "looks like an instruction to the agent"
    if finding.risk == "medium":
        return "a program sent it: nobody is known to have typed it"
    return (
        ""
        if finding.confidence_bps < thresholds.of(finding.kind).auto_bps
        else "applying by itself is off in the config"
    )
