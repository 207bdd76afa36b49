"""Recorded decisions for tests: what a tape says of calls that were judged, made by judging
them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from palyra.agent.value_origins import circumstances
from palyra.core import ids
from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    RunAccepted,
    RunResumed,
    RunStarted,
    SessionCreated,
    ToolDecided,
    ToolProposed,
)
from palyra.core.ids import OWNER, ApprovalId, CallId
from palyra.core.tools import Preview, Subject
from palyra.core.verdicts import Question, word
from palyra.policy import judge
from palyra.policy.policy_set import PolicySet
from palyra.store import sessions, tape
from palyra.store.database import Database

SESSION = "01JD0000000000000000000001"
RUN = "01JD0000000000000000000002"


def call_id(number: int) -> CallId:
    return CallId(ids.make(1_700_000_000_000, number.to_bytes(10, "big")))


def decision(
    policies: PolicySet, number: int, question: Question
) -> tuple[ToolProposed, ToolDecided]:
    """What the daemon puts on the tape about a call that it judges."""
    verdict = judge.judge(policies, question)
    proposed = ToolProposed(
        call_id=call_id(number),
        tool=question.tool.name,
        arguments={},
        effect=question.tool.effect,
        scope=question.scope,
        asked=circumstances(question, exact=True),
    )
    decided = ToolDecided(
        call_id=proposed.call_id,
        verdict=word(verdict),
        reason=verdict.reason,
        policies=verdict.policies,
        policy_version=policies.version,
    )
    return proposed, decided


def answered(
    number: int, tool: str, subjects: Sequence[Subject], answer: str, **more: Any
) -> list[AnyEvent]:
    """The request for a call that was asked about, and a person's answer."""
    approval = ApprovalId(call_id(10_000_000 + number))
    request = ApprovalRequested(
        approval_id=approval,
        call_id=call_id(number),
        tool=tool,
        about="tool",
        preview=Preview("text", tool),
        risk="low",
        why="",
        subjects=tuple(subjects),
    )
    resolved = ApprovalResolved(
        approval_id=approval, call_id=call_id(number), decision=answer, **more
    )  # type: ignore[arg-type]
    return [request, resolved, RunResumed(after="approval")]


async def record(db: Database, events: Iterable[AnyEvent]) -> None:
    """One session with one run that has all of this on its tape."""
    await db.write(lambda tx: sessions.create(tx, SESSION, SessionCreated(owner=OWNER)))
    await db.write(lambda tx: tape.append(tx, SESSION, OWNER, [RunAccepted(), RunStarted()], RUN))
    batch: list[AnyEvent] = []
    for event in events:
        batch.append(event)
        if len(batch) >= 2_000:
            given, batch = batch, []
            db.write(lambda tx, given=given: tape.append(tx, SESSION, OWNER, given, RUN))  # type: ignore[misc]
    await db.write(lambda tx: tape.append(tx, SESSION, OWNER, batch, RUN) if batch else [])
