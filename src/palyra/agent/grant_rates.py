"""Grants that may be used only so often: how often they were, on the daemon's own clock, and what a
wider one would have let run.
"""

from collections.abc import Sequence

from msgspec import Struct

from palyra.core.call_values import rate
from palyra.core.tools import Subject
from palyra.core.verdicts import Ask, Grant, Question
from palyra.policy import grants
from palyra.store import approvals, decisions
from palyra.store.database import Database, Tx
from palyra.store.decisions import RecordedCall

_MOST_EXAMPLES = 10
_MOST_LOOKED_AT = 50_000
_LONGEST_SHOWN = 200


class PastCall(Struct, frozen=True):
    """A recorded call that a grant would have covered. `about`: its values, in a line."""

    time_ms: int
    session_id: str
    verdict: str
    about: str


class PastCalls(Struct, frozen=True):
    """Calls of the recorded past that a grant would have covered: all, those that asked, and the
    last of them.
    """

    calls: int = 0
    asked: int = 0
    examples: tuple[PastCall, ...] = ()


async def covering(
    db: Database, question: Question, ask: Ask, ahead: Sequence[str]
) -> Grant | None:
    """The first grant that answers a question and was not used up. `ahead`: approvals whose grants
    answered for calls of the same turn.
    """

    def query(tx: Tx) -> Grant | None:
        held = approvals.grants_for(tx, question.principal, question.session_id)
        for grant in grants.all_covering(held, question, sends_private=ask.sends_private):
            limit = rate(grant.subject.value) if grant.subject.kind == "arguments" else None
            if limit is None:
                return grant
            since = question.now_ms - limit.period_ms + 1 if limit.period_ms else 0
            used = approvals.uses(tx, grant.approval_id, since).calls
            if used + list(ahead).count(grant.approval_id) < limit.calls:
                return grant
        return None

    return await db.read(query)


def past(db: Database, principal: str, subject: Subject, since_ms: int) -> PastCalls:
    """Look through the recorded decisions. Reads the journal: call it on a thread."""
    calls = asked = looked = 0
    examples: list[PastCall] = []
    for page in decisions.pages(db.read_from_thread, since_ms):
        for each in page:
            if not isinstance(each, RecordedCall):
                continue
            looked += 1
            proposed = each.proposed
            if each.principal != principal or proposed.asked is None:
                continue
            if not subject.covers(proposed.tool, proposed.scope, proposed.asked.values):
                continue
            calls += 1
            asked += each.decided.verdict == "ask"
            values = [value for one in proposed.asked.values.arguments for value in one.values]
            about = ", ".join(values) or proposed.scope.command or ", ".join(proposed.scope.paths)
            examples.append(
                PastCall(
                    each.time_ms, each.session_id, each.decided.verdict, about[:_LONGEST_SHOWN]
                )
            )
            del examples[:-_MOST_EXAMPLES]
        if looked > _MOST_LOOKED_AT:
            break
    return PastCalls(calls, asked, tuple(examples))
