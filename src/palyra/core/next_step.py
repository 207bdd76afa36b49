"""The next step of a run, as a pure function of how far it has come."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from palyra.core import degenerate
from palyra.core.degenerate import Correct, DeadEnd, EndRun
from palyra.core.events import ModelReplied, WaitReason
from palyra.core.run_progress import CallProgress, RunProgress
from palyra.core.run_state import TERMINAL

# The tool whose calls are done by subagents, and how many of them work for one run at once.
SPAWN = "agent.spawn"


AGENTS_AT_ONCE = 4


class AskModel(Struct, frozen=True):
    """Assemble the input and ask; `continuing` when the last reply was cut off at its length."""

    continuing: bool = False


class Decide(Struct, frozen=True):
    """Validate and judge these calls, all before any of them runs."""

    call_ids: tuple[str, ...]


class Perform(Struct, frozen=True):
    call_ids: tuple[str, ...]


class Settle(Struct, frozen=True):
    """A call began and its result is not on the tape: decide by its effect what that means."""

    call_id: str


class WaitForPerson(Struct, frozen=True):
    reason: WaitReason


class Finish(Struct, frozen=True):
    text: str


class GiveUp(Struct, frozen=True):
    reason: Literal["turn_budget", "call_budget", "time_budget"] | DeadEnd


Next = AskModel | Decide | Perform | Settle | WaitForPerson | Finish | Correct | GiveUp


def what_next(run: RunProgress) -> Next:
    """The next step of a run that is in progress or waiting. Pure: resume, replay and live work are
    the same call.
    """
    if run.state in TERMINAL or run.state == "accepted":
        raise ValueError(f"a run that is {run.state} has no next step")
    reason = run.waits_for
    if reason is not None:
        return WaitForPerson(reason)
    calls = run.last.calls if run.last is not None else []
    in_doubt = next(
        (call for call in calls if call.started and not call.finished and not call.spawned), None
    )
    if in_doubt is not None:
        # Before any budget: what was begun must be settled, however late it is.
        return Settle(in_doubt.call.id)
    if run.active_ms >= run.budgets.active_ms:
        return GiveUp("time_budget")
    if run.last is not None:
        undecided = tuple(call.call.id for call in calls if not call.decided and not call.finished)
        if undecided:
            if run.calls > run.budgets.calls:
                return GiveUp("call_budget")
            return Decide(undecided)
        ready = _to_perform(calls)
        if ready:
            return Perform(ready)
        if any(call.away for call in calls):
            return WaitForPerson("child")
        if any(call.handed_over and not call.finished for call in calls):
            return WaitForPerson("client")
        following = _of_the_last(run)
        if following is not None:
            return following
    if run.turns + run.agent_turns >= run.budgets.turns:
        return GiveUp("turn_budget")
    return AskModel()


def _to_perform(calls: Sequence[CallProgress]) -> tuple[str, ...]:
    """The calls whose turn it is. While subagents work, only those beside them that are subagents
    too, up to so many at once.
    """
    if not any(call.away for call in calls):
        return tuple(call.call.id for call in calls if call.ready)
    free = AGENTS_AT_ONCE - sum(call.away for call in calls)
    following: list[str] = []
    for call in calls:
        if call.ready and call.call.tool == SPAWN:
            following.append(call.call.id)
        elif call.ready:
            break
    return tuple(following[: max(0, free)])


def _of_the_last(run: RunProgress) -> Next | None:
    """Return what the last reply leads to, all its calls done; None: call the model as usual."""
    last = run.last
    if last is None or run.inputs or run.refused or last.reply.stop == "interrupted":
        return None
    turns_left = run.turns + run.agent_turns < run.budgets.turns
    if last.calls:
        tools = [call.call.tool for call in last.calls]
        found = degenerate.of_calls(tools, run.repeats, run.told)
    elif run.formed and last.reply.stop != "repetition":
        # Two pieces of JSON are none: one that was cut off is refused, and then asked for again as
        # a whole.
        return Finish(last.reply.text)
    else:
        found = degenerate.of_answer(_answer(run), last.reply.stop, run.told)
    match found:
        case EndRun(reason=reason):
            return GiveUp(reason)
        case Correct():
            return found if turns_left else GiveUp("turn_budget")
    if last.calls:
        return None
    # Whoever says how long a reply may be wants no more than that.
    bounded = last.reply.stop == "length" and run.options.max_tokens is not None
    if not bounded and degenerate.goes_on(last.reply.stop, last.reply.text, run.pieces):
        return AskModel(continuing=True) if turns_left else GiveUp("turn_budget")
    answer = _answer(run)
    if last.reply.stop == "length" and run.wanted is None and not bounded:
        answer += degenerate.INCOMPLETE
    return Finish(answer)


def ends_with(run: RunProgress, reply: ModelReplied, upto_seq: int, now_ms: int) -> bool:
    """Return whether a reply ends the run by itself: what `what_next` finds when it is on the tape.
    `upto_seq`: the last entry that the model was shown. False where that is not plain.
    """
    last = run.last
    more = any(at > upto_seq for at, _ in run.inputs) or (last is not None and not last.calls)
    if more or run.formed or run.refused or run.told or run.waits_for is not None:
        return False
    if reply.calls or reply.stop != "end" or not reply.text.strip():
        return False
    return run.active_ms + max(0, now_ms - run.last_time_ms) < run.budgets.active_ms


def _answer(run: RunProgress) -> str:
    return degenerate.join([*run.pieces, run.last.reply.text]) if run.last else ""
