"""Histories that were answered, by their digest, and the sessions of programs that name none."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from palyra.core.ids import SYSTEM
from palyra.store.database import Tx

_MOST_FOUND = 1_000


class AnsweredHistory(Struct, frozen=True):
    """A history that a run answered: `seq` is where its tape stood before the answer."""

    digest: str
    run_id: str
    seq: int
    session_id: str
    instructions: str


def remember(tx: Tx, answered: AnsweredHistory) -> None:
    tx.run(
        """INSERT INTO caller_histories (digest, run_id, seq, session_id, instructions)
        VALUES (:digest, :run_id, :seq, :session_id, :instructions) ON CONFLICT DO NOTHING""",
        digest=answered.digest,
        run_id=answered.run_id,
        seq=answered.seq,
        session_id=answered.session_id,
        instructions=answered.instructions,
    )


def find(tx: Tx, digests: Sequence[str]) -> list[AnsweredHistory]:
    """Return the answered histories with these digests in their order, of each the newest first."""
    rows = tx.all(
        """SELECT h.digest, h.run_id, h.seq, h.session_id, h.instructions
        FROM json_each(:digests) f JOIN caller_histories h ON h.digest = f.value
        ORDER BY f.key, h.run_id DESC, h.seq DESC LIMIT :limit""",
        digests=msgspec.json.encode(digests).decode(),
        limit=_MOST_FOUND,
    )
    return [AnsweredHistory(*row) for row in rows]


def final_text(tx: Tx, run_id: str) -> str | None:
    """Return the last words of a run that was completed."""
    row = tx.one(
        """SELECT json_extract(CAST(body AS TEXT), '$.text') FROM entries
        WHERE run_id = :run_id AND run_id <> '' AND kind = 'run.completed'""",
        run_id=run_id,
    )
    return str(row[0]) if row else None


def went_on(tx: Tx, session_id: str, run_id: str, end: int, *, but: str = "") -> bool:
    """Return whether something was said in a session after a run, or it was taken back since."""
    later = tx.one(
        """SELECT 1 FROM runs r JOIN runs later ON later.session_id = r.session_id
            AND later.accepted_position > r.accepted_position
        WHERE r.run_id = :run_id AND later.run_id <> :but LIMIT 1""",
        run_id=run_id,
        but=but,
    )
    back = tx.one(
        """SELECT 1 FROM entries WHERE tape = :tape AND seq > :end
            AND kind IN ('session.reset', 'session.restored') LIMIT 1""",
        tape=session_id,
        end=end,
    )
    return later is not None or back is not None


def end_of(tx: Tx, run_id: str) -> int:
    """Return where the last entry of a run stands."""
    row = tx.one(
        "SELECT max(seq) FROM entries WHERE run_id = :run_id AND run_id <> ''", run_id=run_id
    )
    return int(row[0]) if row and row[0] is not None else 0


def rests(tx: Tx, session_id: str) -> bool:
    """Return whether a session is archived, and the daemon did that because nobody used it."""
    if (
        tx.one("SELECT 1 FROM sessions WHERE session_id = :id AND archived = 1", id=session_id)
        is None
    ):
        return False
    row = tx.one(
        """SELECT principal FROM entries WHERE tape = :tape AND kind = 'session.changed'
            AND json_extract(CAST(body AS TEXT), '$.archived') IS NOT NULL
        ORDER BY seq DESC LIMIT 1""",
        tape=session_id,
    )
    return row is not None and row[0] == SYSTEM


def idle(tx: Tx, before_ms: int, limit: int) -> list[tuple[str, str]]:
    """Return sessions that programs never named, with their owners, which nobody uses. One that a
    person spoke in is theirs.
    """
    rows = tx.all(
        """SELECT DISTINCT s.session_id, s.owner FROM caller_histories h
            JOIN sessions s ON s.session_id = h.session_id
        WHERE s.archived = 0 AND s.kept = 0 AND s.key IS NULL AND s.segment_id = ''
            AND s.updated_ms < :before
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session_id = s.session_id
                AND (r.origin <> 'api' OR r.state IN ('accepted', 'in_progress', 'waiting')))
        LIMIT :limit""",
        before=before_ms,
        limit=limit,
    )
    return [(str(session_id), str(owner)) for session_id, owner in rows]


def forget_sealed(tx: Tx) -> None:
    """Forget the histories of sessions whose tape has left the journal."""
    tx.run(
        """DELETE FROM caller_histories WHERE session_id IN
            (SELECT session_id FROM sessions WHERE segment_id <> '')"""
    )
