"""From a stretch of tape to findings: what was said by rules or by a model, what was done twice,
what was approved again and again.

The rule: reading changes nothing, and untrusted text is at most a suggestion, never a reason to
apply something.
"""

import asyncio
from collections.abc import Sequence

from palyra.core import labels
from palyra.core.events import InputReceived, RunAccepted, SessionCompacted, ToolUndone
from palyra.features.learning import procedures as learning_procedures
from palyra.features.learning import rows, rules
from palyra.features.learning.model import Evidence, LearningFinding
from palyra.features.learning.procedures import Done
from palyra.features.learning.rows import UnreadStretch
from palyra.features.learning.rules import SaidInput
from palyra.policy import suggest
from palyra.policy.backtest import about
from palyra.policy.policy_set import PolicySet
from palyra.store import decisions
from palyra.store.database import Database
from palyra.store.decisions import AnsweredCall

# Runs that a new one is compared with.
MOST_SEQUENCES = 64
# Approvals of one thing that make a pattern, and how far back they are looked for.
_LEAST_APPROVALS = 3
_APPROVALS_MS = 14 * 24 * 3_600_000
_APPROVED_BPS, _AGAIN_BPS, _MOST_BPS, _DENIED_NEAR_BPS = 8_500, 300, 9_500, 500


def inputs_of(stretch: UnreadStretch) -> list[SaidInput]:
    """What people said. What a schedule or an agent that started another one put in is nobody's
    word about anything.
    """
    origins = {
        line.run_id: line.event.origin
        for line in stretch.lines
        if isinstance(line.event, RunAccepted)
    }
    found = []
    for line in stretch.lines:
        origin = origins.get(line.run_id, "api")
        if isinstance(line.event, InputReceived) and origin in ("interactive", "api"):
            found.append(
                SaidInput(
                    stretch.session_id,
                    line.seq,
                    line.position,
                    line.event,
                    by_program=origin == "api",
                )
            )
    return found


def said(stretch: UnreadStretch) -> list[LearningFinding]:
    """Facts and preferences by rules: from what a person said, then from what summaries kept of
    it.
    """
    found = rules.of_inputs(inputs_of(stretch))
    for line in stretch.lines:
        if isinstance(line.event, SessionCompacted):
            found += rules.of_summary(stretch.session_id, line.seq, line.position, line.event)
    once: dict[tuple[str, bytes], LearningFinding] = {}
    for each in found:
        once.setdefault((each.kind, rows.key(each.kind, each.content, each.about)), each)
    return list(once.values())


def sequences_of(stretch: UnreadStretch) -> list[Done]:
    """What each completed run of a stretch did."""
    runs: dict[str, list[rows.SessionLine]] = {}
    for line in stretch.lines:
        if line.run_id:
            runs.setdefault(line.run_id, []).append(line)
    found = (
        learning_procedures.of_run(
            stretch.session_id, run_id, [(line.seq, line.position, line.event) for line in lines]
        )
        for run_id, lines in runs.items()
    )
    return [each for each in found if each is not None]


def undone(stretch: UnreadStretch) -> set[str]:
    """Runs of which something was undone."""
    return {
        line.run_id for line in stretch.lines if isinstance(line.event, ToolUndone) and line.run_id
    }


def procedures(new: Sequence[Done], before: Sequence[Done]) -> list[LearningFinding]:
    """What was done again: the best of each new run with those before it."""
    found: dict[str, LearningFinding] = {}
    known = {each.run_id: each for each in before}
    for each in new:
        finding = learning_procedures.find(
            each, [other for other in known.values() if other.run_id != each.run_id]
        )
        known[each.run_id] = each
        if finding is not None:
            found[finding.about] = finding
    return list(found.values())


async def permits(
    db: Database, owner: str, policies: PolicySet, now_ms: int
) -> list[LearningFinding]:
    """Permits that would have spared this owner what they approved again and again. Long: it is
    done on a thread.
    """
    return await asyncio.to_thread(_permits, db, owner, policies, now_ms)


def _permits(db: Database, owner: str, policies: PolicySet, now_ms: int) -> list[LearningFinding]:
    answers = [
        each
        for page in decisions.pages(db.read_from_thread, now_ms - _APPROVALS_MS)
        for each in page
        if isinstance(each, AnsweredCall) and each.call.principal == owner
    ]
    found = []
    for permit in suggest.of_answers(answers, policies).permits:
        if permit.covers < _LEAST_APPROVALS:
            continue
        cases = [
            each
            for each in answers
            if each.call.proposed.tool == permit.tool
            and each.answer.decision == "allow"
            and about(each.call.proposed.scope) in permit.examples
        ]
        bps = min(_MOST_BPS, _APPROVED_BPS + _AGAIN_BPS * (permit.covers - _LEAST_APPROVALS))
        found.append(
            LearningFinding(
                kind="policy",
                content=f"run {permit.what} without asking: it was approved {permit.covers} times",
                confidence_bps=bps - (_DENIED_NEAR_BPS if permit.kept_narrow_by else 0),
                evidence=tuple(_evidence(db, each) for each in cases[:16]),
                risk=(
                    "high"
                    if permit.tool.startswith(("shell", "http", "browser", "mcp"))
                    else "medium"
                ),
                label=labels.join(
                    each.call.proposed.asked.label
                    for each in cases
                    if each.call.proposed.asked is not None
                ),
                about=f"permit {permit.tool} {permit.what}",
                cedar=permit.cedar.replace(f'@id("{permit.id}")', '@id("learned")', 1),
            )
        )
    return found


def _evidence(db: Database, case: AnsweredCall) -> Evidence:
    position = case.call.position
    seq = db.read_from_thread(lambda tx: rows.seq_of(tx, position))
    return Evidence(case.call.session_id, seq, about(case.call.proposed.scope)[:160], position)
