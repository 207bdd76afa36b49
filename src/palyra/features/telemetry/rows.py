"""What telemetry reads of the journal: runs that have ended, their entries, and how long things
took.
"""

from typing import NamedTuple

from palyra.core import events
from palyra.core.events import RunAccepted
from palyra.features.telemetry.spans import RunEntry, TracedRun
from palyra.store.database import Tx

_ENDS = "'run.completed', 'run.failed', 'run.cancelled'"
# A run has a bound on its turns and calls; what goes beyond this many entries is left out.
_MOST_ENTRIES = 5_000


class Ended(NamedTuple):
    position: int
    tape: str
    run_id: str


class Durations(NamedTuple):
    """Seconds of what has ended between two positions."""

    queued: tuple[float, ...]
    approvals: tuple[float, ...]
    runs: tuple[tuple[str, float], ...]


def ended_after(tx: Tx, position: int, last: int, limit: int) -> list[Ended]:
    """Return the runs that ended between two positions, the first ones first."""
    found = tx.all(
        f"""SELECT position, tape, run_id FROM entries
        WHERE position > :position AND position <= :last AND kind IN ({_ENDS})
        ORDER BY position LIMIT :limit""",
        position=position,
        last=last,
        limit=limit,
    )
    return [Ended(int(at), str(tape), str(run_id)) for at, tape, run_id in found]


def traced(tx: Tx, tape: str, run_id: str) -> TracedRun:
    """Return a run's entries for its trace."""
    found = tx.all(
        """SELECT seq, time_ms, principal, body FROM entries
        WHERE run_id = :run_id AND run_id <> '' AND tape = :tape ORDER BY seq LIMIT :limit""",
        run_id=run_id,
        tape=tape,
        limit=_MOST_ENTRIES,
    )
    entries = [RunEntry(int(seq), int(at), events.decode(body)) for seq, at, _, body in found]
    principal = str(found[0][2]) if found else ""
    return TracedRun(run_id, tape, principal, entries, _given_to_parent(tx, entries))


def _given_to_parent(tx: Tx, entries: list[RunEntry]) -> str:
    accepted = entries[0].event if entries else None
    if not isinstance(accepted, RunAccepted) or accepted.commission is None:
        return ""
    above = accepted.commission
    row = tx.one(
        """SELECT body FROM entries WHERE run_id = :run_id AND run_id <> '' AND tape = :tape
        AND kind = 'run.accepted' ORDER BY seq LIMIT 1""",
        run_id=above.run_id,
        tape=above.session_id,
    )
    event = events.decode(row[0]) if row else None
    return event.trace if isinstance(event, RunAccepted) else ""


def durations(tx: Tx, after: int, last: int) -> Durations:
    """Return how long runs were queued, worked on, and waited for people."""
    queued = tx.all(
        """SELECT r.started_ms - r.created_ms FROM entries e JOIN runs r ON r.run_id = e.run_id
        WHERE e.position > :after AND e.position <= :last AND e.kind = 'run.started'""",
        after=after,
        last=last,
    )
    answered = tx.all(
        """SELECT a.resolved_ms - a.requested_ms FROM entries e
        JOIN approvals a ON a.run_id = e.run_id AND a.resolved_position = e.position
        WHERE e.position > :after AND e.position <= :last AND e.kind = 'approval.resolved'""",
        after=after,
        last=last,
    )
    took = tx.all(
        f"""SELECT e.kind, r.ended_ms - r.created_ms FROM entries e
        JOIN runs r ON r.run_id = e.run_id
        WHERE e.position > :after AND e.position <= :last AND e.kind IN ({_ENDS})""",
        after=after,
        last=last,
    )
    return Durations(
        tuple(max(0, ms) / 1000 for (ms,) in queued),
        tuple(max(0, ms) / 1000 for (ms,) in answered),
        tuple((str(kind).partition(".")[2], max(0, ms) / 1000) for kind, ms in took),
    )


def replies_and_results(tx: Tx, after: int, last: int) -> list[tuple[str, bytes]]:
    """Return the bodies of model replies and results of tools between two positions."""
    found = tx.all(
        """SELECT kind, body FROM entries WHERE position > :after AND position <= :last
        AND kind IN ('model.replied', 'tool.finished') ORDER BY position""",
        after=after,
        last=last,
    )
    return [(str(kind), body) for kind, body in found]
