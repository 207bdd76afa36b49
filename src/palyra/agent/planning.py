"""The plan of a run, as it goes on the tape: before its first call that may bring in what strangers
wrote, and whenever its model declares one before that.
"""

from collections.abc import Iterator, Sequence

import msgspec

from palyra.agent.active_run import ActiveRun
from palyra.agent.judged_call import Judged
from palyra.core import plans
from palyra.core.events import PlanDeclared, ToolProposed
from palyra.core.verdicts import Question


def declared(run: ActiveRun, judged: Sequence[Judged]) -> Iterator[PlanDeclared]:
    """Yield the plans that these calls declare. Judging refuses a plan that comes too late."""
    proposed = [
        each
        for each in (one.events[0] for one in judged if not one.refused)
        if isinstance(each, ToolProposed)
    ]
    calls = tuple(
        line
        for each in proposed
        if each.tool == plans.TOOL
        for line in plans.read(each.arguments.get("calls"))
    )
    known = any(each.asked for each in run.progress.plans)
    reads = any(
        each.asked is not None and plans.outside(each.asked.source, each.asked.capabilities)
        for each in proposed
    )
    asked = () if known or not reads else plans.asks(run.live.conversation.shown.turn)
    if calls or asked:
        yield PlanDeclared(calls=calls, asked=asked)


def too_late(run: ActiveRun, tool: str) -> str:
    """Return why a plan is not taken any more."""
    if tool != plans.TOOL or run.live.conversation.label.integrity == "trusted":
        return ""
    return "untrusted content was read already, so the plan is fixed: only the user can add to it"


def beside(run: ActiveRun, question: Question) -> str:
    """The run's plan, for a call that is no part of it."""
    if question.label.integrity == "trusted" or question.values.planned:
        return ""
    return plans.words([each for one in run.progress.plans for each in (*one.calls, *one.asked)])


def ask_together(judged: Sequence[Judged]) -> None:
    """Make one question of the requests of a turn, named after the first."""
    requests = [(one, one.request) for one in judged if one.request is not None]
    for one, request in requests if len(requests) > 1 else ():
        grouped = msgspec.structs.replace(request, group=requests[0][1].approval_id)
        one.events[one.events.index(request)] = grouped
        one.request = grouped
