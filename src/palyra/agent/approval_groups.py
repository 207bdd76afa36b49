"""Calls of one turn that need approval are one question: its lines are answered together, each
allowed or denied. A yes to a line is what a yes to it alone would be, with all its checks.
"""

from typing import Literal

from msgspec import Struct

from palyra.agent.approval_steps import Answer
from palyra.agent.approvals import ApprovalService
from palyra.core.errors import InvalidInput, PalyraError
from palyra.core.events import GrantScope
from palyra.store import approvals
from palyra.store.approvals import Approval
from palyra.store.database import Database, Tx


class GroupAnswer(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`decision` is for the lines in `only`, or for all; `others`: for the rest, nothing leaves
    them pending. A wider `scope` covers for each line the narrowest that it can. `seen`: by
    approval, the digest of what the person has seen whole.
    """

    decision: Literal["allow", "deny"]
    only: tuple[str, ...] = ()
    others: Literal["", "allow", "deny"] = ""
    scope: GrantScope = "once"
    for_ms: int = 0
    reason: str = ""
    seen: dict[str, str] = {}


class LineProblem(Struct, frozen=True):
    """A line that could not be answered so, and why."""

    approval_id: str
    message: str


class AnsweredGroup(Struct, frozen=True):
    approvals: tuple[Approval, ...] = ()
    problems: tuple[LineProblem, ...] = ()


def lines(tx: Tx, approval_id: str, principal: str) -> list[Approval]:
    """The pending lines of the question that an approval belongs to, in the order of the calls."""
    return pending_lines(tx, approvals.get(tx, approval_id, principal))


def pending_lines(tx: Tx, first: Approval) -> list[Approval]:
    group = first.request.group
    found = [
        each
        for each in approvals.pending_of_run(tx, first.run_id)
        if each.approval_id == first.approval_id or (group and each.request.group == group)
    ]
    return sorted(found, key=lambda each: each.seq)


async def answer(
    db: Database,
    service: ApprovalService,
    principal: str,
    approval_id: str,
    given: GroupAnswer,
    surface: str,
) -> AnsweredGroup:
    """Answer the lines of a question one after another. What is wrong with one line leaves that
    line pending.
    """
    found = await db.read(lambda tx: lines(tx, approval_id, principal))
    known = {str(each.approval_id) for each in found}
    if strange := [each for each in given.only if each not in known]:
        raise InvalidInput(f"{strange[0]} is no pending line of this question")
    chosen = set(given.only) or known
    done: list[Approval] = []
    problems: list[LineProblem] = []
    for each in found:
        decision = given.decision if each.approval_id in chosen else given.others
        if not decision:
            continue
        scope = given.scope if decision == "allow" and each.request.subjects else "once"
        one = Answer(
            decision=decision,
            scope=scope,
            for_ms=given.for_ms if scope == "timed" else 0,
            reason=given.reason,
            seen=given.seen.get(each.approval_id, ""),
        )
        try:
            done.append(await service.answer(principal, each.approval_id, one, surface))
        except PalyraError as error:
            problems.append(LineProblem(each.approval_id, error.message))
    return AnsweredGroup(tuple(done), tuple(problems))
