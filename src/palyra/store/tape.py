"""Appending to tapes and reading them. The only place that writes `entries`, and the only place
that moves a run's state.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import chain, events, run_state
from palyra.core.errors import NotFound
from palyra.core.events import (
    AnyEvent,
    Entry,
    ModelReplied,
    RunAccepted,
    RunCompleted,
    RunFailed,
    ToolProposed,
    kind_of,
)
from palyra.core.run_state import ACTIVE, TERMINAL, RunState
from palyra.store import run_waits
from palyra.store.database import Appended, Tx
from palyra.store.write_buffer import WriteBuffer

_COLUMNS = "tape, seq, position, time_ms, run_id, principal, kind, hash, link, body"
_encode_entry = msgspec.json.Encoder().encode


def append(
    tx: Tx, tape: str, principal: str, new: Sequence[AnyEvent], run_id: str = ""
) -> list[Appended]:
    """Append events to a tape, in order, and move the run they belong to. Illegal events raise and
    nothing is written.
    """
    held = tx.held
    assert held is not None, "only a step can append"
    (seq, prev), state = _head(tx, held, tape, run_id)
    new, ahead = _on_time(tx, tape, seq, new, run_id, state)
    position = tx.connection.next_positions(len(new))
    if run_id:
        state = _move_run(tx, tape, principal, run_id, new, position, state)
    time_ms = tx.now_ms
    appended: list[Appended] = []
    for event in new:
        seq += 1
        kind = kind_of(event)
        body = events.encode(event)
        prev = chain.link(
            prev,
            tape=tape,
            seq=seq,
            time_ms=time_ms,
            run_id=run_id,
            principal=principal,
            kind=kind,
            body_hash=sha256(body).digest(),
        )
        held.entries.append(
            (position, tape, seq, time_ms, run_id, principal, kind, body, prev, chain.NEWEST)
        )
        wire = _wire(
            tape, seq, position, time_ms, run_id, principal, kind, prev, chain.NEWEST, body
        )
        appended.append(
            Appended(tape, seq, position, time_ms, run_id, kind, event, wire, principal)
        )
        position += 1
    held.remember(tape, (seq, prev), run_id, state)
    if run_id and tx.pace is not None:
        tx.pace.note(run_id, time_ms, working=state is not None and state[0] == "in_progress")
    for entry in appended:
        _project(tx, held, entry, principal)
    tx.appended.extend(appended)
    return appended[ahead:]


def _on_time(
    tx: Tx,
    tape: str,
    seq: int,
    new: Sequence[AnyEvent],
    run_id: str,
    state: tuple[RunState, str] | None,
) -> tuple[Sequence[AnyEvent], int]:
    """The events with what must be said before them if the wall clock has moved while the run
    worked, and how many that is.
    """
    if not run_id or tx.pace is None or state is None or state[0] != "in_progress":
        return new, 0
    if not new or isinstance(new[0], events.RunResumed | events.RunClockChanged):
        return new, 0
    changed = tx.pace.changed(tape, seq, run_id, tx.now_ms)
    return (new, 0) if changed is None else ([changed, *new], 1)


def expect(tx: Tx, found: Sequence[tuple[str, str]]) -> None:
    """Read where many (tape, run) stand in one question, before something is appended to each of
    them.
    """
    held = tx.held
    assert held is not None, "only a step can append"
    unknown = [pair for pair in found if pair[0] not in held.heads or pair[1] not in held.states]
    rows = tx.all(
        """SELECT t.tape, r.run_id, t.head_seq, t.head_hash, r.state, r.reason FROM
        json_each(:found) f
            JOIN runs r ON r.run_id = f.value JOIN tapes t ON t.tape = r.session_id""",
        found=msgspec.json.encode([run_id for _, run_id in unknown]).decode(),
    )
    for tape, run_id, seq, digest, state, reason in rows:
        held.remember(tape, (seq, digest), run_id, (state, reason))


def _head(
    tx: Tx, held: WriteBuffer, tape: str, run_id: str
) -> tuple[tuple[int, bytes], tuple[RunState, str] | None]:
    """Return where a tape ends, and the state and reason of a run, if there is one."""
    head, state = held.heads.get(tape), held.states.get(run_id)
    if head is not None and (state is not None or not run_id):
        return head, state
    row = tx.one(
        """SELECT t.head_seq, t.head_hash, r.state, r.reason FROM tapes t LEFT JOIN runs r ON
        r.run_id = :run_id
        WHERE t.tape = :tape""",
        tape=tape,
        run_id=run_id,
    )
    if row is None:
        return (0, chain.GENESIS), None
    return (row[0], row[1]), None if row[2] is None else (row[2], row[3])


def _move_run(
    tx: Tx,
    tape: str,
    principal: str,
    run_id: str,
    new: Sequence[AnyEvent],
    position: int,
    was: tuple[RunState, str] | None,
) -> tuple[RunState, str]:
    """Fold the new events into the run's row. `reason` says what it waits for, or why it ended."""
    before, reason = was or (None, "")
    state = before
    for event in new:
        state = run_state.advance(state, kind_of(event))
        match event:
            case RunFailed():
                reason = event.reason
            case events.RunCancelled():
                reason = event.reason
            case events.ApprovalRequested():
                reason = "approval" if event.about == "tool" else event.about
            case events.AgentSpawned():
                reason = "child"
            case events.ToolHandedOver():
                reason = "client"
            case events.RunWaiting():
                reason = event.reason
                run_waits.put(tx, run_id, event)
            case events.RunResumed() | RunCompleted():
                reason = ""
            case _:
                pass
    if was == ("waiting", "provider") and state != "waiting":
        run_waits.remove(tx, run_id)
    now = tx.now_ms
    if before is None:
        accepted = next(event for event in new if isinstance(event, RunAccepted))
        tx.run(
            """INSERT INTO runs (run_id, session_id, principal, origin, state, reason,
            accepted_position, created_ms, heartbeat_ms,
                schedule_id)
            VALUES (:run_id, :tape, :principal, :origin, :state, :reason, :position, :now, :now,
            :schedule_id)""",
            position=position,
            run_id=run_id,
            tape=tape,
            principal=principal,
            origin=accepted.origin,
            schedule_id=accepted.schedule_id,
            state=state,
            reason=reason,
            now=now,
        )
    if state != before and before is not None:
        assert tx.held is not None
        tx.held.moves.append(
            {
                "run_id": run_id,
                "state": state,
                "reason": reason,
                "now": now,
                "active": state in ACTIVE,
                "ended": state in TERMINAL,
            }
        )
    # The row keeps its reason as long as it keeps its state.
    if was is not None and state == before:
        return was
    assert state is not None, "a run begins by being accepted"
    return state, reason


def _project(tx: Tx, held: WriteBuffer, entry: Appended, principal: str) -> None:
    """The rows that an event implies beyond its run: what it cost, and where the next fold
    begins.
    """
    event = entry.event
    match event:
        case events.InputAssembled() if event.from_seq is not None:
            # The next fold begins where the window does, unless that is behind a summary that it
            # must not lose.
            tx.run(
                """UPDATE sessions SET fold_from = :seq WHERE session_id = :id AND fold_from < :seq
                    AND (parent_id = '' OR fold_from > 0) AND NOT EXISTS (SELECT 1 FROM entries
                        WHERE tape = :id AND seq >= sessions.fold_from AND kind =
                        'session.compacted')""",
                seq=event.from_seq,
                id=entry.tape,
            )
        case events.SessionCompacted():
            if event.kept_from:
                tx.run(
                    "UPDATE sessions SET fold_from = :seq WHERE session_id = :id AND fold_from <"
                    " :seq",
                    seq=event.kept_from,
                    id=entry.tape,
                )
        case _:
            pass
    if isinstance(event, BILLED):
        bill = usage_row(event, entry.position, entry.time_ms, entry.tape, entry.run_id, principal)
        if bill is not None:
            held.usage.append(bill)


BILLED = (ModelReplied, events.ModelUsed, events.ModelFailed, events.SessionCompacted)


def usage_row(
    event: ModelReplied | events.ModelFailed | events.ModelUsed | events.SessionCompacted,
    position: int,
    time_ms: int,
    tape: str,
    run_id: str,
    principal: str,
) -> tuple[Any, ...] | None:
    """Return the usage that an entry tells of, whatever it was for: a row of
    `write_buffer.USAGE`. None: nothing was used.
    """
    match event:
        case events.SessionCompacted(provider=""):
            return None
        case events.ModelFailed(billed=False):
            return None
        case events.SessionCompacted():
            first_delta_ms, task = 0, "summary"
        case _:
            first_delta_ms, task = event.first_delta_ms, event.task
    used = event.usage
    unpriced = event.priced in ("", "unknown")
    return (
        position,
        time_ms,
        tape,
        run_id,
        principal,
        event.provider,
        event.model,
        used.input_tokens,
        used.output_tokens,
        used.cached_tokens,
        event.cost_microusd,
        event.duration_ms,
        first_delta_ms,
        task,
        unpriced,
        event.estimated,
        used.cache_write_tokens,
    )


def _wire(
    tape: str,
    seq: int,
    position: int,
    time_ms: int,
    run_id: str,
    principal: str,
    kind: str,
    digest: bytes,
    link: int,
    body: bytes,
) -> bytes:
    return _encode_entry(
        Entry(
            tape=tape,
            seq=seq,
            position=position,
            time_ms=time_ms,
            run_id=run_id,
            principal=principal,
            kind=kind,
            hash=digest.hex(),
            link=link,
            event=msgspec.Raw(body),
        )
    )


class StoredEntry(Struct, frozen=True, gc=False):
    """An entry as read: what a watcher needs, without decoding the event."""

    seq: int
    position: int
    time_ms: int
    run_id: str
    kind: str
    wire: bytes


def _stored(row: tuple[Any, ...]) -> StoredEntry:
    _, seq, position, time_ms, run_id, _, kind, *_ = row
    return StoredEntry(seq, position, time_ms, run_id, kind, _wire(*row))


def after(tx: Tx, tape: str, seq: int, limit: int = 500) -> list[StoredEntry]:
    """The entries of a tape behind a cursor, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM entries WHERE tape = :tape AND seq > :seq ORDER BY seq LIMIT"
        " :limit",
        tape=tape,
        seq=seq,
        limit=limit,
    )
    return [_stored(row) for row in rows]


def after_position(
    tx: Tx, position: int, owner: str, limit: int = 500
) -> tuple[list[StoredEntry], int]:
    """The entries of all of a principal's tapes behind a global cursor, with what they were told,
    and the cursor behind them.

    In commit order. That cursor has passed other principals' entries too, so they are looked at
    once.
    """
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM entries
        WHERE position > :position AND (tape IN (SELECT session_id FROM sessions WHERE owner =
        :owner)
            OR position IN (SELECT position FROM notices WHERE principal = :owner AND position >
            :position))
        ORDER BY position LIMIT :limit""",
        position=position,
        owner=owner,
        limit=limit,
    )
    stored = [_stored(row) for row in rows]
    return stored, stored[-1].position if len(stored) == limit else max(position, last_position(tx))


def everything_after(tx: Tx, position: int, limit: int = 500) -> list[StoredEntry]:
    """The entries of every tape behind a global cursor, in commit order."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM entries WHERE position > :position ORDER BY position LIMIT :limit",
        position=position,
        limit=limit,
    )
    return [_stored(row) for row in rows]


def kinds_between(tx: Tx, after: int, last: int) -> dict[str, int]:
    """Return how many entries of each kind were appended between two positions, the second one
    included.
    """
    rows = tx.all(
        "SELECT kind, count(*) FROM entries WHERE position > :after AND position <= :last GROUP BY"
        " kind",
        after=after,
        last=last,
    )
    return {str(kind): int(count) for kind, count in rows}


def events_between(
    tx: Tx, tape: str, first: int, last: int
) -> list[tuple[int, str, int, AnyEvent]]:
    """Decoded events of a stretch of tape, both ends included: what the conversation is folded
    from.
    """
    rows = tx.all(
        "SELECT seq, run_id, time_ms, body FROM entries WHERE tape = :tape AND seq BETWEEN :first"
        " AND :last ORDER BY seq",
        tape=tape,
        first=first,
        last=last,
    )
    return [(seq, run_id, time_ms, events.decode(body)) for seq, run_id, time_ms, body in rows]


def entry_at(tx: Tx, position: int) -> Entry:
    row = tx.one(f"SELECT {_COLUMNS} FROM entries WHERE position = :position", position=position)
    if row is None:
        raise NotFound(f"the journal has no entry at position {position}")
    return msgspec.json.decode(_stored(row).wire, type=Entry)


def proposal(tx: Tx, run_id: str, call_id: str) -> ToolProposed:
    """A call as it was proposed."""
    for (body,) in tx.all(
        "SELECT body FROM entries WHERE run_id = :run_id AND run_id <> '' AND kind ="
        " 'tool.proposed' ORDER BY seq DESC",
        run_id=run_id,
    ):
        event = events.decode(body)
        if isinstance(event, ToolProposed) and event.call_id == call_id:
            return event
    raise NotFound(f"call {call_id} was never proposed", call_id=call_id)


def head(tx: Tx, tape: str) -> int:
    row = tx.one("SELECT head_seq FROM tapes WHERE tape = :tape", tape=tape)
    return int(row[0]) if row else 0


def last_position(tx: Tx) -> int:
    """The global position of the newest entry, which is also how many there are."""
    row = tx.one("SELECT coalesce(max(position), 0) FROM entries")
    return int(row[0]) if row else 0


def last_start(tx: Tx, run_id: str) -> int:
    """The position at which a run last started a tool, 0 if it never did."""
    row = tx.one(
        "SELECT max(position) FROM entries WHERE run_id = :run_id AND run_id <> '' AND kind ="
        " 'tool.started'",
        run_id=run_id,
    )
    return int(row[0]) if row and row[0] else 0


def of_run(tx: Tx, tape: str, run_id: str) -> list[tuple[int, bytes]]:
    """A run's entries on a tape: number and stored bytes, in order."""
    rows = tx.all(
        "SELECT seq, body FROM entries WHERE run_id = :run_id AND run_id <> '' AND tape = :tape"
        " ORDER BY seq",
        run_id=run_id,
        tape=tape,
    )
    return [(int(seq), body) for seq, body in rows]
