"""Runs and submissions as rows: who works, who waits, what was already submitted. State itself is
moved by `tape.append`.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palyra.core import events
from palyra.core.errors import Forbidden, NotFound
from palyra.core.events import AnyEvent, RunAccepted, RunCancelled, RunCompleted, RunFailed
from palyra.core.ids import RunId, SessionId
from palyra.core.run_state import RunState
from palyra.core.verdicts import Origin
from palyra.store import run_waits
from palyra.store.database import Tx
from palyra.store.run_waits import RunWait

_UNFINISHED = "state IN ('accepted', 'in_progress', 'waiting')"
# The second half lets SQLite see that the index on runs' entries can be used.
_OF_RUN = "run_id = :run_id AND run_id <> ''"
_COLUMNS = (
    "run_id, session_id, principal, origin, state, reason, created_ms, started_ms, ended_ms,"
    " heartbeat_ms"
)


class RunRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reason` says what a waiting run waits for, and why a failed or cancelled one ended.

    `recorded` is False in the answer to a cancel that the journal could not take in time: the run's
    work is broken off, and its end is recorded as soon as that is possible.
    """

    run_id: RunId
    session_id: SessionId
    principal: str
    origin: Origin
    state: RunState
    reason: str = ""
    created_ms: int
    started_ms: int = 0
    ended_ms: int = 0
    heartbeat_ms: int = 0
    recorded: bool = True
    # Of a run that waits for a provider, where a run is read to be shown.
    wait: RunWait | None = None


_FIELDS = _COLUMNS.split(", ")


def _run(row: tuple[Any, ...]) -> RunRow:
    return RunRow(**dict(zip(_FIELDS, row, strict=True)))


def find(tx: Tx, run_id: str) -> RunRow | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM runs WHERE run_id = :run_id", run_id=run_id)
    return _run(row) if row else None


def get(tx: Tx, run_id: str, principal: str) -> RunRow:
    run = find(tx, run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id}", run_id=run_id)
    if run.principal != principal:
        raise Forbidden("this run belongs to someone else", run_id=run_id)
    return shown(tx, [run])[0]


def shown(tx: Tx, found: list[RunRow]) -> list[RunRow]:
    """These runs with what those of them wait for that wait for a provider."""
    waiting = [run.run_id for run in found if (run.state, run.reason) == ("waiting", "provider")]
    waits = run_waits.of_runs(tx, list(waiting)) if waiting else {}
    return [replace(run, wait=waits[run.run_id]) if run.run_id in waits else run for run in found]


def events_of(tx: Tx, run_id: str) -> list[AnyEvent]:
    """Everything that happened in a run, oldest first."""
    rows = tx.all(
        f"SELECT body FROM entries WHERE {_OF_RUN} ORDER BY position LIMIT 10000", run_id=run_id
    )
    return [events.decode(body) for (body,) in rows]


def numbered(tx: Tx, run_id: str) -> list[tuple[int, AnyEvent]]:
    """The same with their places on the tape."""
    rows = tx.all(
        f"SELECT seq, body FROM entries WHERE {_OF_RUN} ORDER BY position LIMIT 10000",
        run_id=run_id,
    )
    return [(int(seq), events.decode(body)) for seq, body in rows]


def of_session(tx: Tx, session_id: str, *, before: int = 1 << 62, limit: int = 50) -> list[RunRow]:
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM runs WHERE session_id = :session_id AND accepted_position <
        :before
        ORDER BY accepted_position DESC LIMIT :limit""",
        session_id=session_id,
        before=before,
        limit=limit,
    )
    return shown(tx, [_run(row) for row in rows])


def of_principal(tx: Tx, principal: str, *, before: str = "", limit: int = 50) -> list[RunRow]:
    """The runs of all sessions of this principal, newest first: ids begin with their time."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM runs WHERE principal = :principal AND run_id < :before
        ORDER BY run_id DESC LIMIT :limit""",
        principal=principal,
        before=before or "~",
        limit=limit,
    )
    return shown(tx, [_run(row) for row in rows])


def newest_ended(tx: Tx, limit: int) -> list[RunRow]:
    """Return the runs that ended last, the newest first, but for those put into segments."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM runs WHERE state NOT IN ('accepted', 'in_progress', 'waiting')
            AND session_id IN (SELECT session_id FROM sessions WHERE segment_id = '')
        ORDER BY ended_ms DESC, run_id DESC LIMIT :limit""",
        limit=limit,
    )
    return [_run(row) for row in rows]


def first_of_session(tx: Tx, session_id: str) -> str:
    """The id of the oldest run of a session, or nothing."""
    row = tx.one(
        "SELECT run_id FROM runs WHERE session_id = :id ORDER BY accepted_position LIMIT 1",
        id=session_id,
    )
    return str(row[0]) if row else ""


def last_of(tx: Tx, run_id: str) -> int | None:
    """Return where a run ended on its tape, if others came after it there; None if it is its
    session's last.
    """
    row = tx.one(
        f"""SELECT max(seq) FROM entries WHERE {_OF_RUN} AND EXISTS (SELECT 1 FROM runs r JOIN runs
        later
            ON later.session_id = r.session_id AND later.accepted_position > r.accepted_position
            WHERE r.run_id = :run_id)""",
        run_id=run_id,
    )
    return int(row[0]) if row and row[0] is not None else None


def accepted(tx: Tx, run_id: str) -> RunAccepted:
    """Return how a run was accepted."""
    row = tx.one(
        f"SELECT body FROM entries WHERE {_OF_RUN} AND kind = 'run.accepted' ORDER BY seq LIMIT 1",
        run_id=run_id,
    )
    event = events.decode(row[0]) if row else None
    if not isinstance(event, RunAccepted):
        raise NotFound(f"there is no run {run_id}", run_id=run_id)
    return event


def work_done(tx: Tx, run_id: str) -> tuple[int, int]:
    """Return how many model turns a run has taken, and how many tool calls it has made."""
    row = tx.one(
        f"""SELECT (SELECT count(*) FROM entries WHERE {_OF_RUN} AND kind = 'model.replied'),
            (SELECT count(*) FROM entries WHERE {_OF_RUN} AND kind = 'tool.proposed')""",
        run_id=run_id,
    )
    assert row is not None
    return int(row[0]), int(row[1])


def position_of(tx: Tx, run_id: str) -> int:
    """Return where a run stands in its session's listing, for the page after it."""
    row = tx.one("SELECT accepted_position FROM runs WHERE run_id = :run_id", run_id=run_id)
    if row is None:
        raise NotFound(f"there is no run {run_id}", run_id=run_id)
    return int(row[0])


def unfinished_by_state(tx: Tx) -> dict[str, int]:
    """Return how many runs there are in each state that is not an end."""
    rows = tx.all(
        "SELECT state, count(*) FROM runs WHERE state IN ('accepted', 'in_progress', 'waiting')"
        " GROUP BY state"
    )
    return {str(state): int(count) for state, count in rows}


def unfinished(tx: Tx) -> list[RunRow]:
    """Every run that has not ended, oldest first."""
    return [
        _run(row)
        for row in tx.all(
            f"SELECT {_COLUMNS} FROM runs WHERE {_UNFINISHED} ORDER BY accepted_position"
        )
    ]


def unbegun(tx: Tx, before_ms: int, limit: int) -> list[RunRow]:
    """Runs that were accepted before a time and have nobody before them in their mailbox who is at
    work or waits.
    """
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM runs r WHERE {_UNFINISHED} AND state = 'accepted' AND created_ms
        < :before
            AND NOT EXISTS (SELECT 1 FROM runs o
                WHERE o.session_id = r.session_id AND o.state IN ('accepted', 'in_progress',
                'waiting')
                AND (o.state <> 'accepted' OR o.accepted_position < r.accepted_position)) LIMIT
                :limit""",
        before=before_ms,
        limit=limit,
    )
    return [_run(row) for row in rows]


def silent(tx: Tx, before_ms: int, limit: int) -> list[RunRow]:
    """Runs in progress that nobody has said to be alive since then."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM runs WHERE {_UNFINISHED} AND state = 'in_progress' AND"
        " heartbeat_ms < :before LIMIT :limit",
        before=before_ms,
        limit=limit,
    )
    return [_run(row) for row in rows]


def unfinished_of_session(tx: Tx, session_id: str) -> list[RunRow]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM runs WHERE session_id = :session_id AND {_UNFINISHED} ORDER BY"
        " accepted_position",
        session_id=session_id,
    )
    return [_run(row) for row in rows]


def unfinished_of_principal(tx: Tx, principal: str) -> list[RunRow]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM runs WHERE principal = :principal AND {_UNFINISHED} ORDER BY"
        " accepted_position",
        principal=principal,
    )
    return [_run(row) for row in rows]


def beat(tx: Tx, run_ids: list[str]) -> None:
    """Say that these runs are alive."""
    tx.many(
        "UPDATE runs SET heartbeat_ms = :now WHERE run_id = :run_id",
        [{"now": tx.now_ms, "run_id": run_id} for run_id in run_ids],
    )


class SubmissionRow(Struct, frozen=True):
    submission_id: str
    session_id: str
    run_id: str
    mode: str
    digest: bytes
    seq: int


def find_submission(tx: Tx, submission_id: str) -> SubmissionRow | None:
    row = tx.one(
        "SELECT submission_id, session_id, run_id, mode, digest, seq FROM submissions WHERE"
        " submission_id = :id",
        id=submission_id,
    )
    return SubmissionRow(*row) if row else None


def add_submission(tx: Tx, row: SubmissionRow) -> None:
    tx.run(
        """INSERT INTO submissions (submission_id, session_id, run_id, mode, digest, seq)
        VALUES (:submission_id, :session_id, :run_id, :mode, :digest, :seq)""",
        submission_id=row.submission_id,
        session_id=row.session_id,
        run_id=row.run_id,
        mode=row.mode,
        digest=row.digest,
        seq=row.seq,
    )


def waiting_inputs(tx: Tx, session_id: str) -> int:
    """Return how many inputs lie in the session's mailbox: accepted, and not begun."""
    row = tx.one(
        """SELECT count(*) FROM runs r JOIN submissions s ON s.run_id = r.run_id
        WHERE r.session_id = :session_id AND r.state = 'accepted'""",
        session_id=session_id,
    )
    return int(row[0]) if row else 0


def collecting(tx: Tx, session_id: str) -> str:
    """The run that gathers `collect` inputs and has not begun, or nothing."""
    row = tx.one(
        """SELECT r.run_id FROM runs r JOIN submissions s ON s.submission_id = r.run_id
        WHERE r.session_id = :session_id AND r.state = 'accepted' AND s.mode = 'collect'
        ORDER BY r.accepted_position DESC LIMIT 1""",
        session_id=session_id,
    )
    return str(row[0]) if row else ""


def unread_inputs(tx: Tx, run_id: str) -> int:
    """Return how many inputs have joined a run since the model was last asked."""
    row = tx.one(
        f"""SELECT count(*) FROM entries WHERE {_OF_RUN} AND kind = 'input.received' AND seq >
        coalesce(
            (SELECT max(seq) FROM entries WHERE {_OF_RUN} AND kind = 'input.assembled'), 0)""",
        run_id=run_id,
    )
    return int(row[0]) if row else 0


def inputs_after(tx: Tx, run_id: str, seq: int) -> bool:
    """Return whether an input has joined a run behind a position of its tape."""
    found = tx.one(
        f"SELECT 1 FROM entries WHERE {_OF_RUN} AND seq > :seq AND kind = 'input.received' LIMIT 1",
        run_id=run_id,
        seq=seq,
    )
    return found is not None


def ending(tx: Tx, run_id: str) -> RunCompleted | RunFailed | RunCancelled:
    """Return how a run that has ended did so."""
    row = tx.one(
        """SELECT body FROM entries WHERE run_id = :run_id AND run_id <> ''
            AND kind IN ('run.completed', 'run.failed', 'run.cancelled') ORDER BY seq DESC LIMIT
            1""",
        run_id=run_id,
    )
    event = events.decode(row[0]) if row else None
    assert isinstance(event, RunCompleted | RunFailed | RunCancelled)
    return event
