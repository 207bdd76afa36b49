"""The run's state machine, as a literal table.

State is never assigned: it is the fold of the run's events through TRANSITIONS. An event that has
no row for the present state is illegal and must not be written. Terminal states have no rows, so
the first terminal event wins.
"""

from typing import Literal

from palyra.core.errors import IllegalTransition, InvalidInput

RunState = Literal["accepted", "in_progress", "waiting", "done", "failed", "cancelled"]

TERMINAL: frozenset[RunState] = frozenset({"done", "failed", "cancelled"})
ACTIVE: frozenset[RunState] = frozenset({"in_progress", "waiting"})

TRANSITIONS: dict[RunState | None, dict[str, RunState]] = {
    None: {
        "run.accepted": "accepted",
    },
    "accepted": {
        "input.received": "accepted",
        "run.started": "in_progress",
        "run.failed": "failed",
        "run.cancelled": "cancelled",
    },
    "in_progress": {
        "input.received": "in_progress",
        "input.assembled": "in_progress",
        "route.planned": "in_progress",
        "model.replied": "in_progress",
        "model.failed": "in_progress",
        "tool.proposed": "in_progress",
        "tool.decided": "in_progress",
        "tool.started": "in_progress",
        "tool.finished": "in_progress",
        "tool.undone": "in_progress",
        "approval.requested": "waiting",
        "tool.handed_over": "waiting",
        "answer.refused": "in_progress",
        "plan.declared": "in_progress",
        "agent.spawned": "waiting",
        "agent.asked": "in_progress",
        "agent.answered": "in_progress",
        "run.resumed": "in_progress",
        "run.waiting": "waiting",
        "run.clock_changed": "in_progress",
        "run.completed": "done",
        "run.failed": "failed",
        "run.cancelled": "cancelled",
    },
    "waiting": {
        "input.received": "waiting",
        # A call may be proposed and decided in the same step as another one's request.
        "tool.proposed": "waiting",
        "tool.decided": "waiting",
        "tool.finished": "waiting",
        "tool.undone": "waiting",
        "approval.requested": "waiting",
        "approval.resolved": "waiting",
        # Several are spawned in one step, and their results come one by one.
        "agent.spawned": "waiting",
        "agent.asked": "waiting",
        "agent.answered": "waiting",
        # The clock was set: the wait is planned again.
        "run.waiting": "waiting",
        "run.resumed": "in_progress",
        "run.failed": "failed",
        "run.cancelled": "cancelled",
    },
    "done": {},
    "failed": {},
    "cancelled": {},
}

# Events that carry a run id but speak about it from outside: an effect may be undone long after its
# run has ended.
_OUTSIDE = frozenset(
    {"tool.undone", "model.used", "candidate.proposed", "memory.written", "memory.removed"}
)

_OTHER_NAMES: dict[str, RunState] = {
    "pending": "accepted",
    "queued": "accepted",
    "running": "in_progress",
    "streaming": "in_progress",
    "inprogress": "in_progress",
    "completed": "done",
    "aborted": "cancelled",
    "expired": "failed",
}


def advance(state: RunState | None, kind: str) -> RunState | None:
    """The state after an event of this kind, or IllegalTransition."""
    following = TRANSITIONS[state].get(kind)
    if following is not None:
        return following
    if kind in _OUTSIDE and state is not None:
        return state
    raise IllegalTransition(
        f"a run that is {state or 'unknown'} cannot take {kind}", state=state or "", kind=kind
    )


def parse(name: str) -> RunState:
    """A state by its own name, or by one of the names other documents use for it."""
    lowered = name.strip().lower()
    state = _OTHER_NAMES.get(lowered.replace("_", ""), lowered)
    if state not in TRANSITIONS:
        raise InvalidInput(
            f"unknown run state {name!r}: use accepted, in_progress, waiting, done, failed or"
            " cancelled"
        )
    return state
