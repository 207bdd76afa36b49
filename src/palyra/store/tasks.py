"""Durable background tasks as rows: enqueued inside the step that causes them, claimed and ended by
compare-and-set.

The rule: a worker owns a task only while the row says so. Whoever has lost the lease changes
nothing, so a task that was given to another worker has one end. Within a kind the oldest goes
first; a priority is a head start of `HEAD_START_MS`, not a right of way, so nothing waits for ever.
"""

import os
from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core import ids
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import TaskFinished
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Tx

State = Literal["queued", "running", "done", "failed", "expired", "cancelled", "paused"]
ENDED: frozenset[State] = frozenset({"done", "failed", "expired", "cancelled"})
LOW, NORMAL, HIGH = 0, 1, 2
PRIORITIES = (HIGH, NORMAL, LOW)
# How much older a task of the next priority may be and still come later.
HEAD_START_MS = 60_000
LARGEST_PAYLOAD = 64 << 10
NEVER = 1 << 62


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`ready_ms`: not before. `max_attempts` 0: as the kind says. `again`: it was asked for once
    more while it ran.
    """

    task_id: str
    kind: str
    state: State
    payload: dict[str, Any] = {}
    key: str = ""
    priority: int = NORMAL
    ready_ms: int = 0
    expires_ms: int = 0
    attempts: int = 0
    max_attempts: int = 0
    again: bool = False
    lease_owner: str = ""
    lease_until_ms: int = 0
    heartbeat_ms: int = 0
    created_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    error: str = ""
    principal: str = SYSTEM
    session_id: str = ""
    schedule_id: str = ""


_FIELDS = Task.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_PAYLOAD = _FIELDS.index("payload")
_AGAIN = _FIELDS.index("again")


def _task(row: tuple[Any, ...]) -> Task:
    values = dict(zip(_FIELDS, row, strict=True))
    values["payload"] = msgspec.json.decode(row[_PAYLOAD])
    values["again"] = bool(row[_AGAIN])
    return Task(**values)


def enqueue(
    tx: Tx,
    kind: str,
    payload: Mapping[str, Any] | None = None,
    *,
    key: str = "",
    again: bool = False,
    priority: int = NORMAL,
    not_before_ms: int = 0,
    expires_ms: int = 0,
    max_attempts: int = 0,
    principal: str = SYSTEM,
    session_id: str = "",
    schedule_id: str = "",
) -> str:
    """Add a task to this step, and give its id. It is begun when the step is durable, or not at
    all.

    A `key` makes this idempotent: a task of this kind with the same key is that task, and nothing
    is added. With `again` the task is asked for once more: one that has ended is queued again, one
    that runs is queued again when it ends, and one that waits takes the new payload and time.
    """
    body = msgspec.json.encode(payload or {})
    if len(body) > LARGEST_PAYLOAD:
        raise InvalidInput(
            f"a task may carry {LARGEST_PAYLOAD} bytes: store the rest and name it",
            limit=LARGEST_PAYLOAD,
        )
    if priority not in PRIORITIES:
        raise InvalidInput(
            "a task's priority is 0 (low), 1 (normal) or 2 (high)", priority=priority
        )
    ready_ms = max(not_before_ms, tx.now_ms)
    if key:
        known = tx.one(
            "SELECT task_id FROM tasks WHERE kind = :kind AND key = :key AND key <> ''",
            kind=kind,
            key=key,
        )
        if known is not None and again:
            _once_more(tx, known[0], body, ready_ms, expires_ms)
            tx.signal(kind)
        if known is not None:
            return str(known[0])
    task_id = ids.make(tx.now_ms, os.urandom(10))
    tx.run(
        """INSERT INTO tasks (task_id, kind, state, payload, key, priority, ready_ms, expires_ms,
        max_attempts, created_ms,
            principal, session_id, schedule_id)
        VALUES (:task_id, :kind, 'queued', :payload, :key, :priority, :ready, :expires, :most, :now,
            :principal, :session_id, :schedule_id)""",
        task_id=task_id,
        kind=kind,
        payload=body,
        key=key,
        priority=priority,
        ready=ready_ms,
        expires=expires_ms,
        most=max_attempts,
        now=tx.now_ms,
        principal=principal,
        session_id=session_id,
        schedule_id=schedule_id,
    )
    tx.signal(kind)
    return task_id


def _once_more(tx: Tx, task_id: str, body: bytes, ready_ms: int, expires_ms: int) -> None:
    """One that runs goes on with what it was told; what it is told now is for the next round."""
    tx.run(
        """UPDATE tasks SET payload = :body, ready_ms = :ready, expires_ms = :expires, ended_ms = 0,
            again = CASE WHEN state = 'running' THEN 1 ELSE 0 END,
            attempts = CASE WHEN state = 'running' THEN attempts ELSE 0 END, error = '',
            state = CASE WHEN state IN ('running', 'paused') THEN state ELSE 'queued' END WHERE
            task_id = :id""",
        id=task_id,
        body=body,
        ready=ready_ms,
        expires=expires_ms,
    )


def drop(tx: Tx, kind: str, key: str) -> None:
    """Drop tasks whose purpose is gone. One that runs ends as it ends."""
    tx.run(
        "DELETE FROM tasks WHERE kind = :kind AND key = :key AND key <> '' AND state <> 'running'",
        kind=kind,
        key=key,
    )
    tx.run(
        "UPDATE tasks SET again = 0 WHERE kind = :kind AND key = :key AND key <> ''",
        kind=kind,
        key=key,
    )


def claim(tx: Tx, kind: str, owner: str, lease_ms: int, most: int, limit: int) -> list[Task]:
    """Take up to `most` tasks of a kind that may begin, so that no more than `limit` run on all
    machines together.
    """
    if most <= 0 or _is_paused(tx, kind):
        return []
    running = tx.one(
        "SELECT count(*) FROM tasks WHERE kind = :kind AND state = 'running'", kind=kind
    )
    most = min(most, limit - int(running[0] if running else 0))
    heads: list[tuple[int, str]] = []
    for priority in PRIORITIES if most > 0 else ():
        rows = tx.all(
            """SELECT ready_ms, task_id FROM tasks WHERE state = 'queued' AND kind = :kind AND
            priority = :priority
                AND ready_ms <= :now ORDER BY ready_ms, task_id LIMIT :most""",
            kind=kind,
            priority=priority,
            now=tx.now_ms,
            most=most,
        )
        heads += [(ready_ms - priority * HEAD_START_MS, task_id) for ready_ms, task_id in rows]
    claimed: list[Task] = []
    for _, task_id in sorted(heads)[: max(0, most)]:
        row = tx.one(
            f"""UPDATE tasks SET state = 'running', attempts = attempts + 1, lease_owner = :owner,
            lease_until_ms = :until,
                heartbeat_ms = :now, started_ms = :now, again = 0
            WHERE task_id = :id AND state = 'queued' AND (expires_ms = 0 OR expires_ms > :now)
            RETURNING {_COLUMNS}""",
            id=task_id,
            owner=owner,
            until=tx.now_ms + lease_ms,
            now=tx.now_ms,
        )
        if row is not None:
            claimed.append(_task(row))
    return claimed


def beat(tx: Tx, owner: str, task_ids: Collection[str], lease_ms: int) -> set[str]:
    """Say that these are still worked on. Returns those that are no longer this worker's: its work
    on them is over.
    """
    lost: set[str] = set()
    for task_id in task_ids:
        row = tx.one(
            """UPDATE tasks SET heartbeat_ms = :now, lease_until_ms = :until
            WHERE task_id = :id AND state = 'running' AND lease_owner = :owner RETURNING task_id""",
            id=task_id,
            owner=owner,
            now=tx.now_ms,
            until=tx.now_ms + lease_ms,
        )
        if row is None:
            lost.add(task_id)
    return lost


def owns(tx: Tx, task: Task) -> bool:
    """Return whether the worker that claimed this attempt still has it."""
    held = (
        "SELECT 1 FROM tasks WHERE task_id = :id AND state = 'running' AND lease_owner = :owner AND"
        " attempts = :attempts"
    )
    return tx.one(held, id=task.task_id, owner=task.lease_owner, attempts=task.attempts) is not None


def put_back(tx: Tx, task: Task, ready_ms: int, error: str = "", *, counts: bool = True) -> bool:
    """Queue a claimed task again: it failed and is tried later, or it was not its time."""
    if not owns(tx, task):
        return False
    tx.run(
        """UPDATE tasks SET state = 'queued', ready_ms = :ready, error = :error, lease_owner = '',
        lease_until_ms = 0,
            attempts = attempts - :back WHERE task_id = :id""",
        id=task.task_id,
        ready=ready_ms,
        error=error,
        back=0 if counts else 1,
    )
    tx.signal(task.kind)
    return True


def end(tx: Tx, task: Task, state: State, error: str = "", *, remember: bool = True) -> bool:
    """End a claimed task, unless it is somebody else's by now. What must be remembered is told on
    the system's tape.
    """
    if not owns(tx, task):
        return False
    _end(tx, task.task_id, task.kind, state, error, remember=remember)
    return True


def _end(tx: Tx, task_id: str, kind: str, state: State, error: str, *, remember: bool) -> None:
    row = tx.one(
        """UPDATE tasks SET error = :error, lease_owner = '', lease_until_ms = 0,
            state = CASE WHEN again = 1 THEN 'queued' ELSE :state END,
            attempts = CASE WHEN again = 1 THEN 0 ELSE attempts END,
            ended_ms = CASE WHEN again = 1 THEN 0 ELSE :now END
        WHERE task_id = :id RETURNING again""",
        id=task_id,
        state=state,
        error=error,
        now=tx.now_ms,
    )
    if row is not None and row[0]:
        tx.run("UPDATE tasks SET again = 0 WHERE task_id = :id", id=task_id)
        tx.signal(kind)
    if remember:
        outcome: Any = state
        tape.append(
            tx,
            SYSTEM_TAPE,
            SYSTEM,
            [TaskFinished(task_id=task_id, task_kind=kind, outcome=outcome, message=error)],
        )


def abandoned(tx: Tx, kind: str, *, alone: bool, limit: int = 500) -> list[Task]:
    """Tasks whose worker is gone: the lease is over, or nobody else can be there and this process
    has begun none.
    """
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM tasks WHERE kind = :kind AND state = 'running' AND lease_until_ms"
        " <= :now LIMIT :limit",
        kind=kind,
        now=NEVER if alone else tx.now_ms,
        limit=limit,
    )
    return [_task(row) for row in rows]


def silent(tx: Tx, before_ms: int, limit: int) -> list[Task]:
    """Running tasks whose worker has not said since then that it is alive."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM tasks WHERE state = 'running' AND heartbeat_ms < :before LIMIT"
        " :limit",
        before=before_ms,
        limit=limit,
    )
    return [_task(row) for row in rows]


def expire(tx: Tx, limit: int = 500) -> int:
    """End what nobody began in time."""
    late = (
        "SELECT task_id, kind FROM tasks WHERE expires_ms > 0 AND expires_ms <= :now AND state IN"
        " ('queued', 'paused')"
    )
    rows = tx.all(f"{late} ORDER BY expires_ms LIMIT :limit", now=tx.now_ms, limit=limit)
    for task_id, kind in rows:
        _end(tx, task_id, kind, "expired", "nobody began it in time", remember=True)
    return len(rows)


def next_moment(tx: Tx, kinds: Collection[str], full: Collection[str]) -> int:
    """Return when there is something to do without a signal: a task becomes ready, a lease or a
    task's time runs out.
    """
    soonest = NEVER
    for kind in kinds:
        if kind not in full and not _is_paused(tx, kind):
            for priority in PRIORITIES:
                row = tx.one(
                    """SELECT ready_ms FROM tasks WHERE state = 'queued' AND kind = :kind AND
                    priority = :priority
                    ORDER BY ready_ms LIMIT 1""",
                    kind=kind,
                    priority=priority,
                )
                soonest = min(soonest, row[0] if row else NEVER)
        row = tx.one(
            "SELECT min(lease_until_ms) FROM tasks WHERE kind = :kind AND state = 'running'",
            kind=kind,
        )
        soonest = min(soonest, row[0] if row and row[0] is not None else NEVER)
    row = tx.one(
        "SELECT min(expires_ms) FROM tasks WHERE expires_ms > 0 AND state IN ('queued', 'paused')"
    )
    return min(soonest, row[0] if row and row[0] is not None else NEVER)


def forget(tx: Tx, before_ms: int, limit: int = 500) -> int:
    """Delete tasks that ended before a time, so many at once. What had to be remembered is on the
    tape.
    """
    old = (
        "SELECT task_id FROM tasks WHERE ended_ms > 0 AND ended_ms < :before ORDER BY ended_ms"
        " LIMIT :limit"
    )
    return len(
        tx.all(
            f"DELETE FROM tasks WHERE task_id IN ({old}) RETURNING task_id",
            before=before_ms,
            limit=limit,
        )
    )


class KindCount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Count of the tasks of a kind in each state, and since when the oldest that is ready waits."""

    kind: str
    states: dict[str, int]
    paused: bool = False
    oldest_ready_ms: int = 0


def find(tx: Tx, task_id: str) -> Task | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM tasks WHERE task_id = :id", id=task_id)
    return _task(row) if row else None


def get(tx: Tx, task_id: str) -> Task:
    task = find(tx, task_id)
    if task is None:
        raise NotFound(
            f"there is no task {task_id}: `palyra tasks list` shows those there are",
            task_id=task_id,
        )
    return task


def listing(
    tx: Tx, *, kind: str = "", state: str = "", before: str = "", limit: int = 100
) -> list[Task]:
    """The newest first."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM tasks WHERE (:kind = '' OR kind = :kind) AND (:state = '' OR
        state = :state)
            AND (:before = '' OR task_id < :before) ORDER BY task_id DESC LIMIT :limit""",
        kind=kind,
        state=state,
        before=before,
        limit=limit,
    )
    return [_task(row) for row in rows]


def counts(tx: Tx) -> list[KindCount]:
    by_kind: dict[str, dict[str, int]] = {}
    for kind, state, count in tx.all(
        "SELECT kind, state, count(*) FROM tasks GROUP BY kind, state"
    ):
        by_kind.setdefault(kind, {})[state] = count
    oldest: dict[str, int] = dict(
        tx.all(
            "SELECT kind, min(ready_ms) FROM tasks WHERE state = 'queued' AND ready_ms <= :now"
            " GROUP BY kind",
            now=tx.now_ms,
        )
    )
    paused = {kind for (kind,) in tx.all("SELECT kind FROM task_kinds WHERE paused = 1")}
    return [
        KindCount(
            kind=kind,
            states=by_kind.get(kind, {}),
            paused=kind in paused,
            oldest_ready_ms=oldest.get(kind, 0),
        )
        for kind in sorted({*by_kind, *paused})
    ]


def unfinished(tx: Tx) -> list[tuple[str, str, int]]:
    """Return how many of each kind wait and run; only the rows that do are looked at."""
    counted = "SELECT kind, '{0}', count(*) FROM tasks WHERE state = '{0}' GROUP BY kind"
    return [
        (kind, state, count)
        for each in ("queued", "running")
        for kind, state, count in tx.all(counted.format(each))
    ]


def pause_kind(tx: Tx, kind: str, *, paused: bool) -> None:
    """Begin no more tasks of a kind, or begin them again. Those that run go on."""
    tx.run(
        """INSERT INTO task_kinds (kind, paused) VALUES (:kind, :paused)
        ON CONFLICT (kind) DO UPDATE SET paused = excluded.paused""",
        kind=kind,
        paused=int(paused),
    )
    tx.signal(kind)


def _is_paused(tx: Tx, kind: str) -> bool:
    return (
        tx.one("SELECT 1 FROM task_kinds WHERE kind = :kind AND paused = 1", kind=kind) is not None
    )


def move(tx: Tx, task: Task, state: State) -> Task:
    """Pause, resume, retry, cancel: what a person decides about one task. A retry has all its
    attempts again.
    """
    if state == "cancelled":
        tx.run("UPDATE tasks SET again = 0 WHERE task_id = :id", id=task.task_id)
        _end(tx, task.task_id, task.kind, "cancelled", "cancelled by a person", remember=True)
    else:
        # One that has not ended keeps its count: by it the worker that had it last is told apart
        # from the next.
        fresh = task.state in ENDED
        tx.run(
            """UPDATE tasks SET state = :state, lease_owner = '', lease_until_ms = 0, ended_ms = 0,
                attempts = CASE WHEN :fresh THEN 0 ELSE attempts END, ready_ms = CASE WHEN :fresh
                THEN :now ELSE ready_ms END,
                expires_ms = CASE WHEN :fresh THEN 0 ELSE expires_ms END, error = CASE WHEN :fresh
                THEN '' ELSE error END
            WHERE task_id = :id""",
            id=task.task_id,
            state=state,
            fresh=fresh,
            now=tx.now_ms,
        )
        tx.signal(task.kind)
    return get(tx, task.task_id)
