"""Subagents as rows: which call of which run is done by which other run. The tapes of both say so
too.

The rule: a call has one subagent at most, and its result reaches the call once.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import events, run_state
from palyra.core.events import (
    AgentAnswered,
    AgentAsked,
    AgentEnd,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolFinished,
)
from palyra.core.ids import CallId, RunId, SessionId
from palyra.core.run_state import RunState
from palyra.store import rights, tape
from palyra.store.database import Tx
from palyra.store.rights import SESSIONS

_COLUMNS = "run_id, session_id, parent_run_id, parent_session_id, call_id, principal, depth, task"
_ENDS = ("run.completed", "run.failed", "run.cancelled")


class Subagent(Struct, frozen=True, kw_only=True):
    """`run_id` works in `session_id` on the call `call_id` of the run `parent_run_id`."""

    run_id: RunId
    session_id: SessionId
    parent_run_id: RunId
    parent_session_id: SessionId
    call_id: CallId
    principal: str
    depth: int
    task: str


class Agent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subagent in its tree: `depth` 1 works for the session itself."""

    session_id: SessionId
    run_id: RunId
    parent_session_id: SessionId
    parent_run_id: RunId
    call_id: CallId
    depth: int
    task: str
    state: RunState
    reason: str = ""
    created_ms: int
    ended_ms: int = 0


def _child(row: tuple[Any, ...]) -> Subagent:
    return Subagent(**dict(zip(Subagent.__struct_fields__, row, strict=True)))


def add(tx: Tx, child: Subagent) -> None:
    tx.run(
        f"""INSERT INTO children ({_COLUMNS}, delivered)
        VALUES (:run_id, :session_id, :parent_run_id, :parent_session_id, :call_id, :principal,
        :depth, :task, 0)""",
        **{name: getattr(child, name) for name in Subagent.__struct_fields__},
    )
    tx.run(
        "UPDATE sessions SET parent_run_id = :parent WHERE session_id = :id",
        parent=child.parent_run_id,
        id=child.session_id,
    )
    rights.seal(tx, SESSIONS, session_id=child.session_id)


def find(tx: Tx, run_id: str) -> Subagent | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM children WHERE run_id = :run_id", run_id=run_id)
    return _child(row) if row else None


def of_run(tx: Tx, run_id: str) -> list[Subagent]:
    """Return the subagents of a run, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM children WHERE parent_run_id = :run_id ORDER BY run_id",
        run_id=run_id,
    )
    return [_child(row) for row in rows]


def undelivered(tx: Tx) -> list[Subagent]:
    """Return the subagents whose result has not reached the call that they work for."""
    return [
        _child(row)
        for row in tx.all(f"SELECT {_COLUMNS} FROM children WHERE delivered = 0 ORDER BY run_id")
    ]


def waited_for(tx: Tx) -> list[Subagent]:
    """All that work or worked for a run which waits for such."""
    columns = ", ".join(f"c.{name}" for name in Subagent.__struct_fields__)
    rows = tx.all(f"""SELECT {columns} FROM runs r JOIN children c ON c.parent_run_id = r.run_id
        WHERE r.state = 'waiting' AND r.reason = 'child' ORDER BY c.run_id""")
    return [_child(row) for row in rows]


def is_delivered(tx: Tx, run_id: str) -> bool:
    return (
        tx.one("SELECT 1 FROM children WHERE run_id = :run_id AND delivered = 1", run_id=run_id)
        is not None
    )


def deliver(tx: Tx, run_id: str) -> None:
    tx.run("UPDATE children SET delivered = 1 WHERE run_id = :run_id", run_id=run_id)


def tree(tx: Tx, session_id: str) -> list[Agent]:
    """All that work or worked for a session, each behind the one it works for."""
    rows = tx.all(
        """WITH RECURSIVE below (run_id, session_id, parent_session_id, parent_run_id, call_id,
        level, task, place) AS (
            SELECT run_id, session_id, parent_session_id, parent_run_id, call_id, 1, task, run_id
                FROM children WHERE parent_session_id = :id
            UNION ALL SELECT c.run_id, c.session_id, c.parent_session_id, c.parent_run_id,
            c.call_id, b.level + 1, c.task,
                b.place || c.run_id FROM children c JOIN below b ON c.parent_session_id =
                b.session_id WHERE b.level < 8)
        SELECT b.session_id, b.run_id, b.parent_session_id, b.parent_run_id, b.call_id, b.level,
        b.task, r.state, r.reason,
            r.created_ms, r.ended_ms
        FROM below b JOIN runs r ON r.run_id = b.run_id ORDER BY b.place LIMIT 1000""",
        id=session_id,
    )
    return [Agent(**dict(zip(Agent.__struct_fields__, row, strict=True))) for row in rows]


def root(tx: Tx, session_id: str) -> str:
    """The session that a person began and that this one works for; itself, if nobody spawned it."""
    while row := tx.one(
        "SELECT r.session_id FROM sessions s JOIN runs r ON r.run_id = s.parent_run_id WHERE"
        " s.session_id = :id",
        id=session_id,
    ):
        session_id = str(row[0])
    return session_id


class SubagentResult(Struct, frozen=True):
    """End of a subagent's run, in its own words, and its usage."""

    event: RunCompleted | RunFailed | RunCancelled
    end: AgentEnd


def ending(tx: Tx, child: Subagent) -> SubagentResult | None:
    """None while the run has not ended."""
    rows = tx.all(
        "SELECT seq, time_ms, kind, body FROM entries WHERE run_id = :run_id AND run_id <> '' ORDER"
        " BY seq",
        run_id=child.run_id,
    )
    if not any(row[2] in _ENDS for row in rows):
        return None
    state: RunState | None = None
    used = dict.fromkeys(
        ("turns", "calls", "active_ms", "input_tokens", "output_tokens", "cost_microusd"), 0
    )
    before, last, ended = 0, 0, None
    for seq, time_ms, kind, body in rows:
        if kind == "run.clock_changed":
            used["active_ms"] += getattr(events.decode(body), "active_ms", 0)
        elif state == "in_progress" and kind != "run.resumed":
            used["active_ms"] += max(0, time_ms - before)
        if state not in run_state.TERMINAL:
            state = run_state.advance(state, kind)
            before, last = time_ms, seq
        if kind in ("model.replied", "model.failed", "tool.finished", *_ENDS):
            event = events.decode(body)
            _count(used, event)
            if isinstance(event, RunCompleted | RunFailed | RunCancelled):
                ended = event
    assert ended is not None
    assert state in ("done", "failed", "cancelled")
    return SubagentResult(
        ended,
        AgentEnd(session_id=child.session_id, run_id=child.run_id, seq=last, state=state, **used),
    )


def _count(used: dict[str, int], event: events.AnyEvent) -> None:
    match event:
        case ModelReplied():
            used["turns"] += 1
            used["calls"] += len(event.calls)
            _spend(used, event)
        case ModelFailed():
            _spend(used, event)
        case ToolFinished(agent=AgentEnd() as below):
            for name in used:
                used[name] += getattr(below, name)
        case _:
            pass


def _spend(used: dict[str, int], event: ModelReplied | ModelFailed) -> None:
    used["input_tokens"] += event.usage.input_tokens
    used["output_tokens"] += event.usage.output_tokens
    used["cost_microusd"] += event.cost_microusd


def unfinished_calls(tx: Tx, run_ids: Sequence[str]) -> dict[str, list[CallId]]:
    """The calls of runs that began and have no result, by run."""
    begun: dict[tuple[str, CallId], None] = {}
    for run_id, kind, body in tx.all(
        """SELECT e.run_id, e.kind, e.body FROM json_each(:ids) i JOIN entries e ON e.run_id =
        i.value
            WHERE e.run_id <> '' AND e.kind IN ('tool.started', 'tool.finished', 'tool.undone')
            ORDER BY e.run_id, e.seq""",
        ids=msgspec.json.encode(run_ids).decode(),
    ):
        call_id = getattr(events.decode(body), "call_id", CallId(""))
        if kind == "tool.started":
            begun[run_id, call_id] = None
        else:
            begun.pop((run_id, call_id), None)
    found: dict[str, list[CallId]] = {}
    for run_id, call_id in begun:
        found.setdefault(run_id, []).append(call_id)
    return found


def related(tx: Tx, run_ids: Sequence[str]) -> set[str]:
    """Return the runs among these that are subagents, or have subagents."""
    rows = tx.all(
        """SELECT i.value FROM json_each(:ids) i WHERE EXISTS (SELECT 1 FROM children c WHERE
        c.run_id = i.value)
            OR EXISTS (SELECT 1 FROM children c WHERE c.parent_run_id = i.value)""",
        ids=msgspec.json.encode(run_ids).decode(),
    )
    return {str(run_id) for (run_id,) in rows}


def asked(tx: Tx, run_id: str, request: events.ApprovalRequested) -> None:
    """Tell every run that this one works for: their sessions show what is waited for."""
    own, above = _above(tx, run_id)
    for child in above:
        event = AgentAsked(
            call_id=child.call_id, session_id=own, run_id=RunId(run_id), request=request
        )
        tape.append(tx, child.parent_session_id, child.principal, [event], child.parent_run_id)


def answered(tx: Tx, run_id: str, answer: events.ApprovalResolved) -> None:
    own, above = _above(tx, run_id)
    for child in above:
        event = AgentAnswered(
            call_id=child.call_id, session_id=own, run_id=RunId(run_id), answer=answer
        )
        tape.append(tx, child.parent_session_id, child.principal, [event], child.parent_run_id)


def _above(tx: Tx, run_id: str) -> tuple[SessionId, list[Subagent]]:
    """A run's session, and each link from it up to the run that a person began, without those that
    are over.
    """
    own, found, at = SessionId(""), list[Subagent](), run_id
    while (child := find(tx, at)) is not None:
        own = own or child.session_id
        row = tx.one("SELECT state FROM runs WHERE run_id = :run_id", run_id=child.parent_run_id)
        if row and row[0] not in run_state.TERMINAL:
            found.append(child)
        at = child.parent_run_id
    return own, found
