"""What came of a run, in a few values that can be laid beside those of another: decisions, calls,
answer, usage.
"""

from collections.abc import Iterable

from msgspec import Struct

from palyra.core import events
from palyra.core.events import (
    Entry,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolDecided,
    ToolFinished,
)


class CallOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call: what was asked for, what was decided, what came of it."""

    tool: str
    arguments: dict[str, object]
    verdict: str = ""
    by: str = ""
    outcome: str = ""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: str = "in_progress"
    text: str = ""
    calls: tuple[CallOutcome, ...] = ()
    models: tuple[str, ...] = ()
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0


def of(entries: Iterable[Entry], run_id: str, after: int = 0) -> Outcome:
    """Of the entries of one run behind a position."""
    replies: list[ModelReplied] = []
    # Every call that was sent costs, whatever came of it.
    billed: list[ModelReplied | ModelFailed] = []
    decided: dict[str, ToolDecided] = {}
    finished: dict[str, ToolFinished] = {}
    state, text = "in_progress", ""
    for entry in entries:
        if entry.run_id != run_id or entry.seq <= after:
            continue
        match events.decode(bytes(entry.event)):
            case ModelReplied() as reply:
                replies.append(reply)
                billed.append(reply)
            case ModelFailed() as failed:
                billed.append(failed)
            case ToolDecided() as event:
                decided[event.call_id] = event
            case ToolFinished() as event:
                finished[event.call_id] = event
            case RunCompleted() as event:
                state, text = "done", event.text
            case RunFailed() as event:
                state, text = "failed", f"{event.reason}: {event.message}"
            case RunCancelled() as event:
                state, text = "cancelled", event.reason
            case _ if entry.kind == "approval.requested":
                state = "waiting"
            case _ if entry.kind == "run.resumed":
                state = "in_progress"
    calls = [
        CallOutcome(
            tool=call.tool,
            arguments=call.arguments,
            verdict=decided[call.id].verdict if call.id in decided else "",
            by=decided[call.id].by if call.id in decided else "",
            outcome=finished[call.id].outcome if call.id in finished else "",
        )
        for reply in replies
        for call in reply.calls
    ]
    return Outcome(
        state=state,
        text=text,
        calls=tuple(calls),
        models=tuple(dict.fromkeys(f"{reply.provider}/{reply.model}" for reply in replies)),
        turns=len(replies),
        input_tokens=sum(each.usage.input_tokens for each in billed),
        output_tokens=sum(each.usage.output_tokens for each in billed),
        cost_microusd=sum(each.cost_microusd for each in billed),
    )
