"""Origins of the values of a proposed call, by all that its model has been shown, and what of a
question goes on the tape.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from palyra.agent.active_run import ActiveRun
from palyra.agent.session_cache import LiveSession
from palyra.core import call_values, origins
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.events import AnyEvent, Circumstances, ToolProposed
from palyra.core.tools import ToolSpec
from palyra.core.verdicts import Question


async def values_of(
    run: ActiveRun,
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    ahead: Iterable[AnyEvent],
) -> CallValues:
    """`ahead` begins what was judged of the same turn before this call."""
    return await values_in(run.live, spec, arguments, run.workspace, ahead)


async def values_in(
    live: LiveSession,
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    workspace: str,
    ahead: Iterable[AnyEvent] = (),
) -> CallValues:
    """The values of a call that this session's model proposes now, or would."""
    if spec.use is None:
        return NO_VALUES
    await live.index_shown()
    before = [
        (each.tool, call_values.sinks_key(each.asked.values))
        for each in ahead
        if isinstance(each, ToolProposed)
        and each.asked is not None
        and not each.asked.values.reads_only
    ]
    return origins.call_values(
        live.conversation.shown,
        spec.name,
        spec.source,
        spec.use,
        arguments,
        workspace,
        before,
    )


def circumstances(question: Question, *, exact: bool) -> Circumstances:
    """Return what goes on the tape of what policy was asked."""
    return Circumstances(
        now_ms=question.now_ms,
        origin=question.origin,
        label=question.label,
        capabilities=question.tool.capabilities,
        source=question.tool.source,
        agent=question.agent,
        channel=question.channel,
        rules=question.rules,
        exact=exact,
        values=question.values,
    )
