"""Checking the journal a little at a time, in the background: each entry against its predecessor,
holding nothing in memory.

It only ever raises suspicion. Whoever finds something asks `verify`, which walks everything and
knows what may be missing.
"""

from msgspec import Struct

from palyra.core import chain
from palyra.store.database import Tx


class Passed(Struct, frozen=True):
    """How far it came. `suspect` is the position of the first entry that does not follow from its
    predecessor, or 0.
    """

    position: int
    entries: int
    suspect: int = 0


def pass_over(tx: Tx, after: int, limit: int) -> Passed:
    """Look at some entries behind a position."""
    rows = tx.all(
        """SELECT e.position, e.tape, e.seq, e.time_ms, e.run_id, e.principal, e.kind, e.body,
        e.hash, p.hash
        FROM (SELECT * FROM entries WHERE position > :after ORDER BY position LIMIT :limit) e
        LEFT JOIN entries p ON p.tape = e.tape AND p.seq = e.seq - 1 ORDER BY e.position""",
        after=after,
        limit=limit,
    )
    for position, tape, seq, time_ms, run_id, principal, kind, body, digest, prev in rows:
        if prev is None and seq != 1:
            return Passed(position, len(rows), position)
        try:
            expected = chain.link(
                chain.GENESIS if seq == 1 else prev,
                tape=tape,
                seq=seq,
                position=position,
                time_ms=time_ms,
                run_id=run_id,
                principal=principal,
                kind=kind,
                body=body,
            )
        except (TypeError, AttributeError, ValueError):
            # A column holds a value that none of ours ever wrote.
            return Passed(position, len(rows), position)
        if expected != digest:
            return Passed(position, len(rows), position)
    return Passed(rows[-1][0] if rows else after, len(rows))


def wrong_heads(tx: Tx, after: str, limit: int) -> tuple[str, bool]:
    """Whether some tapes end where their heads say; the last tape looked at, empty at the end."""
    rows = tx.all(
        """SELECT t.tape, t.head_hash, e.hash, EXISTS (SELECT 1 FROM entries o WHERE o.tape =
        t.tape)
        FROM (SELECT * FROM tapes WHERE tape > :after ORDER BY tape LIMIT :limit) t
        LEFT JOIN entries e ON e.tape = t.tape AND e.seq = t.head_seq ORDER BY t.tape""",
        after=after,
        limit=limit,
    )
    # A tape without any entry lies in a segment.
    wrong = any(there and head != found for _, head, found, there in rows)
    return (str(rows[-1][0]) if len(rows) == limit else ""), wrong
