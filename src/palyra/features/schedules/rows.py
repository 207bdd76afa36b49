"""Schedules and their firings as rows. A firing is a row before it is a run: the pair of schedule
and due time exists once.
"""

from typing import Any

import msgspec

from palyra.core.errors import Forbidden, NotFound
from palyra.features.schedules.model import Firing, FiringState, Schedule
from palyra.store import rights
from palyra.store.database import Tx
from palyra.store.rights import SCHEDULES

_FIRING = "schedule_id, due_ms, state, run_id, session_id, note, artifact, updated_ms"
_OPEN = "('due', 'queued', 'started')"


def _schedules(tx: Tx, rows: list[tuple[Any, ...]]) -> list[Schedule]:
    """One whose seal does not hold is none: its scopes would become grants."""
    return [
        msgspec.json.decode(row[2], type=Schedule)
        for row in rows
        if rights.holds(tx, SCHEDULES, row)
    ]


def save(tx: Tx, schedule: Schedule, entry: int = 0) -> None:
    """Save a schedule, as an entry says; without one only its next time is another."""
    tx.run(
        """INSERT INTO schedules (schedule_id, owner, state, next_ms, body) VALUES (:id, :owner,
        :state, :next_ms, :body)
        ON CONFLICT (schedule_id) DO UPDATE SET owner = excluded.owner, state = excluded.state,
        next_ms = excluded.next_ms, body = excluded.body""",
        id=schedule.schedule_id,
        owner=schedule.owner,
        state=schedule.state,
        next_ms=schedule.next_ms,
        body=msgspec.json.encode(schedule),
    )
    rights.seal(tx, SCHEDULES, entry, schedule_id=schedule.schedule_id)


def find(tx: Tx, schedule_id: str) -> Schedule | None:
    """Return a schedule that the daemon has saved."""
    rows = tx.all(
        f"SELECT {SCHEDULES.columns} FROM schedules WHERE schedule_id = :id", id=schedule_id
    )
    found = _schedules(tx, rows)
    return found[0] if found else None


def entry_of(tx: Tx, schedule_id: str) -> int:
    """Return the position of the entry that made a schedule what it is."""
    row = tx.one("SELECT entry FROM schedules WHERE schedule_id = :id", id=schedule_id)
    return int(row[0]) if row else 0


def get(tx: Tx, schedule_id: str, owner: str) -> Schedule:
    found = find(tx, schedule_id)
    if found is None:
        raise NotFound(
            f"there is no schedule {schedule_id}: `palyra schedule list` shows those there are",
            schedule_id=schedule_id,
        )
    if found.owner != owner:
        raise Forbidden("this schedule belongs to someone else", schedule_id=schedule_id)
    return found


def listing(tx: Tx, owner: str = "", limit: int = 10_000) -> list[Schedule]:
    """Return schedules, oldest first; of everybody if no owner is named."""
    rows = tx.all(
        f"SELECT {SCHEDULES.columns} FROM schedules WHERE (:owner = '' OR owner = :owner) ORDER BY"
        " schedule_id LIMIT :limit",
        owner=owner,
        limit=limit,
    )
    return _schedules(tx, rows)


def count(tx: Tx, owner: str) -> int:
    row = tx.one("SELECT count(*) FROM schedules WHERE owner = :owner", owner=owner)
    return int(row[0]) if row else 0


def remove(tx: Tx, schedule_id: str) -> None:
    for table in ("schedules", "firings", "hook_calls"):
        tx.run(f"DELETE FROM {table} WHERE schedule_id = :id", id=schedule_id)


def _firing(row: tuple[Any, ...]) -> Firing:
    return Firing(**dict(zip(Firing.__struct_fields__, row, strict=True)))


def add_firing(
    tx: Tx,
    schedule_id: str,
    due_ms: int,
    state: FiringState,
    note: str = "",
    *,
    artifact: str = "",
    session_id: str = "",
) -> bool:
    """Return whether it is new. A firing that is known is left as it is, whoever asks again."""
    row = tx.one(
        """INSERT INTO firings (schedule_id, due_ms, state, note, artifact, session_id, updated_ms)
        VALUES (:id, :due, :state, :note, :artifact, :session_id, :now)
        ON CONFLICT (schedule_id, due_ms) DO NOTHING RETURNING due_ms""",
        id=schedule_id,
        due=due_ms,
        state=state,
        note=note,
        artifact=artifact,
        session_id=session_id,
        now=tx.now_ms,
    )
    return row is not None


def set_firing(
    tx: Tx,
    schedule_id: str,
    due_ms: int,
    state: FiringState,
    *,
    run_id: str = "",
    session_id: str = "",
    note: str = "",
) -> None:
    """Say what became of a firing. One that has ended, because its run was so quick, does not start
    any more.
    """
    tx.run(
        """UPDATE firings SET state = :state, updated_ms = :now, note = CASE WHEN :note = '' THEN
        note ELSE :note END,
            run_id = CASE WHEN :run_id = '' THEN run_id ELSE :run_id END,
            session_id = CASE WHEN :session_id = '' THEN session_id ELSE :session_id END
        WHERE schedule_id = :id AND due_ms = :due AND (:state <> 'started' OR state IN ('due',
        'queued'))""",
        id=schedule_id,
        due=due_ms,
        state=state,
        run_id=run_id,
        session_id=session_id,
        note=note,
        now=tx.now_ms,
    )


def has_firing(tx: Tx, schedule_id: str, due_ms: int) -> bool:
    return (
        tx.one(
            "SELECT 1 FROM firings WHERE schedule_id = :id AND due_ms = :due",
            id=schedule_id,
            due=due_ms,
        )
        is not None
    )


def firing_of_run(tx: Tx, run_id: str) -> Firing | None:
    row = tx.one(
        f"SELECT {_FIRING} FROM firings WHERE run_id = :run_id AND run_id <> ''", run_id=run_id
    )
    return _firing(row) if row else None


def open_firings(tx: Tx, schedule_id: str = "") -> list[Firing]:
    """Return firings that have not ended, oldest first; of every schedule if none is named."""
    rows = tx.all(
        f"""SELECT {_FIRING} FROM firings WHERE state IN {_OPEN} AND (:id = '' OR schedule_id = :id)
        ORDER BY schedule_id, due_ms""",
        id=schedule_id,
    )
    return [_firing(row) for row in rows]


def firings(tx: Tx, schedule_id: str, limit: int = 20) -> list[Firing]:
    """Return firings of a schedule, newest first."""
    rows = tx.all(
        f"SELECT {_FIRING} FROM firings WHERE schedule_id = :id ORDER BY due_ms DESC LIMIT :limit",
        id=schedule_id,
        limit=limit,
    )
    return [_firing(row) for row in rows]


def newest_firings(tx: Tx, owner: str) -> dict[str, Firing]:
    """The newest of each of an owner's schedules, by the schedule: one question, however many there
    are.
    """
    rows = tx.all(
        f"""SELECT {_FIRING} FROM firings f WHERE schedule_id IN (SELECT schedule_id FROM schedules
        WHERE owner = :owner)
            AND due_ms = (SELECT max(due_ms) FROM firings WHERE schedule_id = f.schedule_id)""",
        owner=owner,
    )
    return {firing.schedule_id: firing for firing in map(_firing, rows)}


def forget_firings(tx: Tx, schedule_id: str, keep: int) -> None:
    """Keep the newest so many that are over."""
    tx.run(
        f"""DELETE FROM firings WHERE schedule_id = :id AND state NOT IN {_OPEN} AND due_ms <
        (SELECT min(due_ms) FROM
            (SELECT due_ms FROM firings WHERE schedule_id = :id ORDER BY due_ms DESC LIMIT
            :keep))""",
        id=schedule_id,
        keep=keep,
    )


def was_called(tx: Tx, schedule_id: str, signature: bytes) -> bool:
    asked = "SELECT 1 FROM hook_calls WHERE schedule_id = :id AND signature = :signature"
    return tx.one(asked, id=schedule_id, signature=signature) is not None


def note_call(tx: Tx, schedule_id: str, signature: bytes, keep_ms: int) -> bool:
    """Return whether this call is new. Signatures are kept as long as their time stamp would be
    taken.
    """
    tx.run("DELETE FROM hook_calls WHERE called_ms < :before", before=tx.now_ms - keep_ms)
    row = tx.one(
        """INSERT INTO hook_calls (schedule_id, signature, called_ms) VALUES (:id, :signature, :now)
        ON CONFLICT (schedule_id, signature) DO NOTHING RETURNING called_ms""",
        id=schedule_id,
        signature=signature,
        now=tx.now_ms,
    )
    return row is not None
