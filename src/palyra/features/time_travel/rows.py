"""Side effects behind an entry of a tape, as far as they outlive the conversation: changed files,
and what cannot be undone.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core import events, run_state
from palyra.core.events import (
    FileChange,
    SessionRestored,
    ToolFinished,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)
from palyra.core.run_state import RunState
from palyra.core.tools import Effect
from palyra.store import tape
from palyra.store.database import Tx

_LONGEST_WHAT = 160


class ChangedFile(Struct, frozen=True, omit_defaults=True):
    """A change of a file, and what made it: a call, an undo of one, or a rewind."""

    seq: int
    path: str
    change: Literal["created", "modified", "deleted", "restored"]
    by: str
    call_id: str = ""
    run_id: str = ""


class Lasting(Struct, frozen=True, omit_defaults=True):
    """A call that changed something other than files we can put back: a message sent, a command
    run.
    """

    seq: int
    call_id: str
    run_id: str
    tool: str
    effect: Effect
    what: str
    outcome: str = ""


class RunThen(Struct, frozen=True):
    run_id: str
    state: RunState


class SideEffects(Struct, frozen=True):
    changed: tuple[ChangedFile, ...]
    lasting: tuple[Lasting, ...]


def behind(tx: Tx, session_id: str, seq: int) -> SideEffects:
    """Return everything of that kind behind an entry, in its order."""
    rows = tx.all(
        """SELECT seq, run_id, body FROM entries WHERE tape = :tape AND seq > :seq
            AND kind IN ('tool.proposed', 'tool.started', 'tool.finished', 'tool.undone',
            'session.restored') ORDER BY seq""",
        tape=session_id,
        seq=seq,
    )
    proposed: dict[str, ToolProposed] = {}
    lasting: dict[str, Lasting] = {}
    changed: list[ChangedFile] = []
    for at, run_id, body in rows:
        match events.decode(body):
            case ToolProposed() as event:
                proposed[event.call_id] = event
            case ToolStarted() as event:
                call = proposed.setdefault(
                    event.call_id, _proposal(tx, run_id, event.call_id, proposed)
                )
                # Files at a worker are put back by undoing the call, and not by going back in the
                # session.
                if call.effect in ("once", "idempotent") or (
                    call.effect == "reversible" and call.tool.startswith("worker:")
                ):
                    lasting[event.call_id] = Lasting(
                        at, event.call_id, run_id, call.tool, call.effect, _what(call)
                    )
            case ToolFinished() as event:
                tool = _proposal(tx, run_id, event.call_id, proposed).tool if event.changes else ""
                changed += _changes(at, event.changes, tool, event.call_id, run_id)
                if event.call_id in lasting:
                    lasting[event.call_id] = msgspec.structs.replace(
                        lasting[event.call_id], outcome=event.outcome
                    )
            case ToolUndone() as event:
                if event.why == "undo":
                    lasting.pop(event.call_id, None)
                changed += _changes(at, event.changes, "undo", event.call_id, run_id)
            case SessionRestored() as event:
                changed += _changes(at, event.changes, "rewind")
            case _:
                pass
    return SideEffects(tuple(changed), tuple(lasting.values()))


def _proposal(tx: Tx, run_id: str, call_id: str, known: dict[str, ToolProposed]) -> ToolProposed:
    """Return the proposal, which may lie before the entry that we look behind."""
    return known.get(call_id) or tape.proposal(tx, run_id, call_id)


def _changes(
    seq: int, changes: tuple[FileChange, ...], by: str, call_id: str = "", run_id: str = ""
) -> list[ChangedFile]:
    return [ChangedFile(seq, each.path, each.change, by, call_id, run_id) for each in changes]


def _what(call: ToolProposed) -> str:
    text = msgspec.json.encode(call.arguments).decode()
    return text if len(text) <= _LONGEST_WHAT else text[: _LONGEST_WHAT - 1] + "…"


def run_states(tx: Tx, session_id: str, seq: int, most: int) -> tuple[RunThen, ...]:
    """The newest runs that a tape had at an entry, oldest first, and how far each was."""
    rows = tx.all(
        "SELECT run_id, kind FROM entries WHERE tape = :tape AND seq <= :seq AND run_id <> '' ORDER"
        " BY seq",
        tape=session_id,
        seq=seq,
    )
    states: dict[str, RunState | None] = {}
    for run_id, kind in rows:
        states[run_id] = run_state.advance(states.get(run_id), kind)
    return tuple(
        RunThen(run_id, state)
        for run_id, state in list(states.items())[-most:]
        if state is not None
    )
