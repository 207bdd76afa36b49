"""Calls that change nothing: a file is written that has this content already. Nobody is asked, and
nothing runs, so no change of the file in between can matter.
"""

import msgspec

from palyra.core.events import ToolDecided, ToolFinished, ToolProposed
from palyra.core.ports import Policy
from palyra.core.tools import ToolResult
from palyra.core.verdicts import Allow, Ask, Question
from palyra.system import thread_pool
from palyra.tools.catalogue import Arguments, Catalogue, ComparingTool, TypedTool

REASON = "it changes nothing"


async def result(
    catalogue: Catalogue,
    policy: Policy,
    tool: TypedTool,
    arguments: Arguments,
    question: Question,
    workspace: str,
) -> ToolResult | None:
    """Return the result of a call that changes nothing. It tells what the file holds, so it counts
    only where reading the file needs no approval.
    """
    if not isinstance(tool, ComparingTool):
        return None
    same = await thread_pool.everyday.run(tool.unchanged, arguments, workspace)
    if same is None:
        return None
    reading = msgspec.structs.replace(question, tool=catalogue.get("fs.read").spec)
    return same if isinstance(policy.judge(reading), Allow) else None


def events(
    proposed: ToolProposed, ask: Ask, version: str, same: ToolResult
) -> tuple[ToolDecided, ToolFinished]:
    """Return the decision and the result. What policy would have asked about counts as answered, as
    by a grant.
    """
    decided = ToolDecided(
        call_id=proposed.call_id,
        verdict="allow",
        reason=REASON,
        by="grant",
        policies=ask.policies,
        policy_version=version,
    )
    finished = ToolFinished(
        call_id=proposed.call_id,
        outcome=same.outcome,
        text=same.text,
        size=len(same.text.encode()),
        label=same.label,
    )
    return decided, finished
