"""Runs that wait for a provider, as rows: who waits for which model, in which order, until when.

A row is written and removed by `tape.append` with the event that says so, so it can be had again
from the tape. When the model is asked next is one row for all who wait for it.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.events import RunWaiting
from palyra.core.messages import FailureClass
from palyra.store.database import Tx

_COLUMNS = (
    "w.cause, w.message, w.provider, w.model, coalesce(p.next_try_ms, w.next_try_ms),"
    " w.deadline_ms, coalesce(p.attempt, w.attempt), w.since_ms"
)
_FROM = "FROM run_waits w LEFT JOIN provider_waits p ON p.target = w.target"


class RunWait(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Wait of a run: why, when the model is called next, and when the run gives up."""

    cause: FailureClass
    message: str
    provider: str
    model: str
    next_try_ms: int
    deadline_ms: int
    attempt: int = 1
    since_ms: int = 0


class WaitingRun(Struct, frozen=True):
    """A run in the queue of a model."""

    run_id: str
    session_id: str
    principal: str


class ProviderWait(Struct, frozen=True):
    """A model that cannot answer, and when it is asked again."""

    target: str
    cause: FailureClass
    message: str
    since_ms: int
    next_try_ms: int
    attempt: int


def put(tx: Tx, run_id: str, waiting: RunWaiting) -> None:
    """Add a run to its model's queue, in the order in which runs were accepted."""
    tx.run(
        """INSERT INTO run_waits (run_id, target, accepted_position, provider, model, cause,
            message, since_ms, next_try_ms, deadline_ms, attempt)
        VALUES (:run_id, :target, (SELECT accepted_position FROM runs WHERE run_id = :run_id),
            :provider, :model, :cause, :message, :since_ms, :next_try_ms, :deadline_ms, :attempt)
        ON CONFLICT (run_id) DO UPDATE SET next_try_ms = excluded.next_try_ms,
            deadline_ms = excluded.deadline_ms, since_ms = excluded.since_ms""",
        run_id=run_id,
        target=f"{waiting.provider}/{waiting.model}",
        provider=waiting.provider,
        model=waiting.model,
        cause=waiting.cause,
        message=waiting.message,
        since_ms=waiting.since_ms or tx.now_ms,
        next_try_ms=waiting.next_try_ms,
        deadline_ms=waiting.deadline_ms,
        attempt=waiting.attempt,
    )


def remove(tx: Tx, run_id: str) -> None:
    tx.run("DELETE FROM run_waits WHERE run_id = :run_id", run_id=run_id)


def of_runs(tx: Tx, run_ids: list[str]) -> dict[str, RunWait]:
    """Return the wait of each of these runs that waits for a provider."""
    rows = tx.all(
        f"""SELECT w.run_id, {_COLUMNS} {_FROM} WHERE w.run_id IN
        (SELECT value FROM json_each(:ids))""",
        ids=msgspec.json.encode(run_ids).decode(),
    )
    return {str(run_id): _wait(rest) for run_id, *rest in rows}


def _wait(row: list[Any]) -> RunWait:
    return RunWait(**dict(zip(RunWait.__struct_fields__, row, strict=True)))


def first(tx: Tx, target: str, limit: int) -> list[WaitingRun]:
    """Return the longest waiters for a model, by when they were accepted."""
    rows = tx.all(
        """SELECT w.run_id, r.session_id, r.principal FROM run_waits w JOIN runs r ON
        r.run_id = w.run_id WHERE w.target = :target ORDER BY w.accepted_position LIMIT :limit""",
        target=target,
        limit=limit,
    )
    return [WaitingRun(*row) for row in rows]


def overdue(tx: Tx, target: str, now_ms: int, limit: int) -> list[tuple[WaitingRun, RunWait]]:
    """Return who has waited for a model until their deadline."""
    rows = tx.all(
        f"""SELECT w.run_id, r.session_id, r.principal, {_COLUMNS} {_FROM} JOIN runs r ON
        r.run_id = w.run_id WHERE w.target = :target AND w.deadline_ms <= :now
        ORDER BY w.deadline_ms LIMIT :limit""",
        target=target,
        now=now_ms,
        limit=limit,
    )
    return [(WaitingRun(*row[:3]), _wait(list(row[3:]))) for row in rows]


def everybody(tx: Tx) -> list[tuple[WaitingRun, RunWait]]:
    rows = tx.all(
        f"SELECT w.run_id, r.session_id, r.principal, {_COLUMNS} {_FROM} JOIN runs r ON"
        " r.run_id = w.run_id ORDER BY w.accepted_position"
    )
    return [(WaitingRun(*row[:3]), _wait(list(row[3:]))) for row in rows]


def first_deadline(tx: Tx, target: str) -> int | None:
    """Return when the first run that waits for a model gives up; None: no run waits for it."""
    row = tx.one("SELECT min(deadline_ms) FROM run_waits WHERE target = :target", target=target)
    return int(row[0]) if row and row[0] is not None else None


def plan(tx: Tx, wait: ProviderWait) -> None:
    """Say when a model is asked again."""
    tx.run(
        """INSERT INTO provider_waits (target, cause, message, since_ms, next_try_ms, attempt)
        VALUES (:target, :cause, :message, :since_ms, :next_try_ms, :attempt)
        ON CONFLICT (target) DO UPDATE SET cause = excluded.cause, message = excluded.message,
            since_ms = excluded.since_ms, next_try_ms = excluded.next_try_ms,
            attempt = excluded.attempt""",
        target=wait.target,
        cause=wait.cause,
        message=wait.message,
        since_ms=wait.since_ms,
        next_try_ms=wait.next_try_ms,
        attempt=wait.attempt,
    )


def forget(tx: Tx, target: str) -> None:
    """A model answers again."""
    tx.run("DELETE FROM provider_waits WHERE target = :target", target=target)


def plans(tx: Tx) -> list[ProviderWait]:
    """The models that runs wait for, with when each is asked again."""
    rows = tx.all(
        """SELECT w.target, coalesce(max(p.cause), min(w.cause)),
            coalesce(max(p.message), min(w.message)),
            coalesce(max(p.since_ms), min(w.since_ms)),
            coalesce(max(p.next_try_ms), min(w.next_try_ms)),
            coalesce(max(p.attempt), min(w.attempt))
        FROM run_waits w LEFT JOIN provider_waits p ON p.target = w.target GROUP BY w.target"""
    )
    return [ProviderWait(*row) for row in rows]
