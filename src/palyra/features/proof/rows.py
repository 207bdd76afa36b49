"""Reading entries for bundles, each with the hash before it on its tape."""

from typing import Any

from msgspec import Struct

from palyra.core import chain
from palyra.store.database import Tx


class BundleRow(Struct, frozen=True):
    position: int
    tape: str
    seq: int
    time_ms: int
    run_id: str
    principal: str
    kind: str
    body: bytes
    hash: bytes
    link: int
    prev: bytes


def of_tape(tx: Tx, tape: str) -> list[BundleRow]:
    """Return the entries of a tape that a checkpoint covers."""
    return _rows(
        tx,
        "e.tape = :tape AND e.position <= (SELECT coalesce(max(size), 0) FROM checkpoints)",
        tape=tape,
    )


def of_run(tx: Tx, tape: str, run_id: str) -> list[BundleRow]:
    """Return all entries of a tape from the first to the last one of a run."""
    return _rows(
        tx,
        """e.tape = :tape AND e.seq BETWEEN
            (SELECT min(seq) FROM entries WHERE run_id = :run_id AND run_id <> '')
            AND (SELECT max(seq) FROM entries WHERE run_id = :run_id AND run_id <> '')""",
        tape=tape,
        run_id=run_id,
    )


def between(tx: Tx, first: int, last: int) -> list[BundleRow]:
    return _rows(tx, "e.position BETWEEN :first AND :last", first=first, last=last)


def _rows(tx: Tx, which: str, **params: Any) -> list[BundleRow]:
    found = tx.all(
        f"""SELECT e.position, e.tape, e.seq, e.time_ms, e.run_id, e.principal, e.kind, e.body,
            e.hash, e.link, coalesce(p.hash, :genesis)
        FROM entries e LEFT JOIN entries p ON p.tape = e.tape AND p.seq = e.seq - 1
        WHERE {which} ORDER BY e.position""",
        genesis=chain.GENESIS,
        **params,
    )
    return [BundleRow(*row) for row in found]
