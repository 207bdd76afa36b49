"""Limits of a subagent: the tools it was given, and a part of what its parent has left. Never more
than that.
"""

from collections.abc import Collection
from typing import get_args

from palyra.core.events import Asker, Budgets, Commission, TaskClass
from palyra.core.next_step import SPAWN
from palyra.core.run_progress import RunProgress

# How far down subagents may have subagents; a run that a person began is at 0.
DEEPEST = 3
_LONGEST_TASK = 300


def not_given(commission: Commission | None, tool: str) -> str:
    """Return why a run may not use a tool whatever policy says, or nothing."""
    if commission is None:
        return ""
    if tool == SPAWN and commission.depth >= DEEPEST:
        return f"a subagent at depth {DEEPEST} has no subagents of its own: do it yourself"
    if commission.tools is not None and tool not in commission.tools:
        return (
            f"this subagent was not given {tool}: it has"
            f" {', '.join(commission.tools) or 'no tools'}"
        )
    return ""


def narrowed(parent: Commission | None, wanted: Collection[str]) -> tuple[str, ...] | None:
    """The tools of a subagent: those asked for, or all of its parent's."""
    if not wanted:
        return parent.tools if parent else None
    return tuple(dict.fromkeys(wanted))


def class_of(model: str) -> TaskClass | None:
    """Return the task class, where one stands in the place of a model."""
    return next((each for each in get_args(TaskClass) if each == model), None)


def asker(commission: Commission | None) -> Asker | None:
    return Asker(commission.task, commission.depth, commission.root) if commission else None


def shortened(task: str) -> str:
    """A task as it is told beside what asks for its sake."""
    line = " ".join(task.split())
    return line if len(line) <= _LONGEST_TASK else line[: _LONGEST_TASK - 1] + "…"


def left(run: RunProgress) -> Budgets:
    """Return what a run may still use: without what its subagents were given and have not accounted
    for.
    """
    away = [
        call.spawned.budgets
        for call in (run.last.calls if run.last else ())
        if call.spawned and not call.finished
    ]
    return Budgets(
        turns=run.budgets.turns - run.turns - run.agent_turns - sum(each.turns for each in away),
        calls=run.budgets.calls - run.calls - sum(each.calls for each in away),
        active_ms=run.budgets.active_ms - run.active_ms - sum(each.active_ms for each in away),
        tokens=_rest(
            run.budgets.tokens, run.tokens + run.agent_tokens + sum(each.tokens for each in away)
        ),
        # The cost of subagents that have ended is in the run's own.
        microusd=_rest(
            run.budgets.microusd, run.cost_microusd + sum(each.microusd for each in away)
        ),
    )


def _rest(limit: int, used: int) -> int:
    """0 where there is no limit, below it where there is nothing left."""
    return (limit - used if used < limit else -1) if limit else 0


def share(have: Budgets, among: int, asked: Budgets) -> Budgets | None:
    """Return the share of each of so many subagents: an equal part, or less if it asks for less.
    None: nothing is left to give.

    One turn is kept back for the parent, to read the results.
    """
    given = Budgets(
        turns=min(asked.turns or have.turns, (have.turns - 1) // among),
        calls=min(asked.calls or have.calls, have.calls // among),
        active_ms=min(asked.active_ms or have.active_ms, have.active_ms // among),
        tokens=have.tokens // among,
        microusd=have.microusd // among,
    )
    enough = given.turns >= 1 and given.calls >= 0 and given.active_ms >= 1
    # A part of a limit that rounds to nothing must not become none.
    paid = (not have.tokens or given.tokens > 0) and (not have.microusd or given.microusd > 0)
    return given if enough and paid else None
