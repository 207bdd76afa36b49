"""Checking the whole journal: every entry is where it was put, says what it said, and none is
missing.

Entries are read in commit order, wherever they lie: in the database, or in a segment.
The first thing that is wrong is named: which entry, and what happened to it.

Checking the journal a little at a time, in the background: each entry against its predecessor,
holding nothing in memory.

It only ever raises suspicion. Whoever finds something asks `verify`, which walks everything and
knows what may be missing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import chain, events
from palyra.core.events import JournalArchived, JournalCheckpointed, JournalRestored
from palyra.store import segment_walk, segments, tree
from palyra.store.database import Tx
from palyra.store.log_keys import LogTrust
from palyra.store.verify_tree import TreeCheck, TreeFault, Vouched


class Passed(Struct, frozen=True):
    """Progress of the check. `suspect` is the position of the first entry that does not follow from
    its predecessor, or is not the one in the Merkle tree, or 0.
    """

    position: int
    entries: int
    suspect: int = 0


def pass_over(tx: Tx, after: int, limit: int) -> Passed:
    """Look at some entries behind a position."""
    rows = tx.all(
        """SELECT e.position, e.tape, e.seq, e.time_ms, e.run_id, e.principal, e.kind, e.body,
        e.hash, e.link, p.hash
        FROM (SELECT * FROM entries WHERE position > :after ORDER BY position LIMIT :limit) e
        LEFT JOIN entries p ON p.tape = e.tape AND p.seq = e.seq - 1 ORDER BY e.position""",
        after=after,
        limit=limit,
    )
    for position, tape, seq, time_ms, run_id, principal, kind, body, digest, link, prev in rows:
        if prev is None and seq != 1:
            return Passed(position, len(rows), position)
        try:
            expected = chain.link_of(
                link,
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
    other = tree.other_than_stored(tx, ((row[0], row[9], row[8]) for row in rows))
    return Passed(rows[-1][0] if rows else after, len(rows), other)


def wrong_heads(tx: Tx, after: str, limit: int) -> tuple[str, bool]:
    """Return whether some tapes end where their heads say; the last tape looked at, empty at the
    end.
    """
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


_CHUNK = 2_000


class Bad(Struct, frozen=True):
    """The first bad entry: where it stands, and a sentence on what is wrong with it."""

    tape: str
    seq: int
    position: int
    problem: str


class VerifyReport(Struct, frozen=True, omit_defaults=True):
    """`entries` and `tapes` are all that were looked at, those in segments too. `vouched` says how
    far signed checkpoints prove them.
    """

    entries: int
    tapes: int
    bad: Bad | None = None
    segments: int = 0
    vouched: Vouched | None = None

    @property
    def ok(self) -> bool:
        return self.bad is None


class _Walk:
    """The state of a walk over all entries in commit order."""

    def __init__(self, tree: TreeCheck) -> None:
        self._tree = tree
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.position = 0
        # The tapes that lie in segments, as the system's tape tells it.
        self.archived: dict[str, str] = {}

    def step(self, row: tuple[Any, ...]) -> Bad | None:
        position, tape, seq = row[:3]
        problem = self._problem(row)
        if problem:
            return Bad(str(tape), seq if isinstance(seq, int) else 0, position, problem)
        self.position = position
        self.heads[tape] = (seq, row[8])
        self._tree.add(row[9], row[8])
        if row[6] in ("journal.archived", "journal.restored", "journal.checkpointed"):
            self._follow(position, events.decode(row[7]))
        return None

    def _follow(self, position: int, event: events.AnyEvent) -> None:
        match event:
            case JournalCheckpointed():
                self._tree.told(position, event)
            case JournalArchived(segment=segment, tapes=tapes):
                self.archived.update(dict.fromkeys(tapes, segment))
            case JournalRestored(tape=tape):
                self.archived.pop(tape, None)
            case _:
                pass

    def _problem(self, row: tuple[Any, ...]) -> str:
        position, tape, seq, time_ms, run_id, principal, kind, body, digest, link = row
        types = (int, str, int, int, str, str, str, bytes, bytes, int)
        if not all(isinstance(value, wanted) for value, wanted in zip(row, types, strict=True)):
            return "a column holds a value of the wrong type: it was changed after it was written"
        if position != self.position + 1:
            missing = position - self.position - 1
            return (
                f"{missing} before it, from position {self.position + 1} on, are missing: they were"
                " removed"
            )
        head_seq, prev = self.heads.get(tape, (0, chain.GENESIS))
        if seq != head_seq + 1:
            what = (
                "was inserted or moved here"
                if seq <= head_seq
                else "an entry before it was removed or renumbered"
            )
            return f"it has number {seq} on its tape where {head_seq + 1} belongs: {what}"
        if not 1 <= link <= chain.NEWEST:
            return f"its link has version {link}, which is not known"
        expected = chain.link_of(
            link,
            prev,
            tape=tape,
            seq=seq,
            position=position,
            time_ms=time_ms,
            run_id=run_id,
            principal=principal,
            kind=kind,
            body=body,
        )
        if expected != digest:
            return (
                "its hash does not match its content and predecessor: it was changed, swapped or"
                " inserted after it was written"
            )
        return _unreadable(kind, body)


def _unreadable(kind: str, body: bytes) -> str:
    try:
        event = events.decode(body)
    except msgspec.DecodeError as error:
        return f"its body is not an event of this version: {error}"
    return (
        ""
        if events.kind_of(event) == kind
        else f"its kind column says {kind}, its body {events.kind_of(event)}"
    )


def verify(
    tx: Tx,
    progress: Callable[[int], None] = lambda entries: None,
    folder: Path | None = None,
    trust: LogTrust | None = None,
) -> VerifyReport:
    """Walk everything. `progress` is called with the number of entries seen so far; `folder` is
    where the segments lie; `trust` is what checkpoints are held against.

    `tx` must be one read transaction: a head that was read later than its tape's last entry belongs
    to another one.
    """
    check = TreeCheck(tx, trust)
    walk, seen = _Walk(check), 0
    lying = segments.listing(tx)
    try:
        for row in segment_walk.rows(tx, folder, lying):
            bad = walk.step(row)
            if bad is not None:
                return VerifyReport(seen, len(walk.heads), bad)
            seen += 1
            if seen % _CHUNK == 0:
                progress(seen)
    except segment_walk.Broken as broken:
        return VerifyReport(seen, len(walk.heads), Bad("", 0, broken.position, broken.problem))
    progress(seen)
    # Positions start at 1: anything at or below zero would otherwise hide from the walk.
    hidden = tx.one(
        "SELECT position, tape, seq FROM entries WHERE position < 1 ORDER BY position LIMIT 1"
    )
    if hidden:
        return VerifyReport(
            seen,
            len(walk.heads),
            Bad(
                hidden[1],
                hidden[2],
                hidden[0],
                "it stands before the first position: it was inserted",
            ),
        )
    bad, vouched = _check_heads(tx, walk) or _check_segments(tx, walk), None
    if bad is None:
        fault, vouched = check.finish()
        if fault is not None:
            bad = _located(tx, fault)
    return VerifyReport(seen, len(walk.heads), bad, len(lying), vouched)


def _located(tx: Tx, fault: TreeFault) -> Bad:
    row = tx.one(
        "SELECT tape, seq FROM entries WHERE position = :position", position=fault.position
    )
    name, seq = row or ("", 0)
    return Bad(name, seq, fault.position, fault.problem)


def _check_segments(tx: Tx, walk: _Walk) -> Bad | None:
    """Return which tapes lie in which segment stands on the system's tape; the table that says so
    too was changed if it says otherwise.
    """
    recorded = segments.tapes(tx)
    for tape in sorted({*recorded, *walk.archived}):
        if recorded.get(tape) != walk.archived.get(tape):
            told, says = walk.archived.get(tape, "none")[:16], recorded.get(tape, "none")[:16]
            return Bad(
                tape,
                0,
                0,
                f"the system's tape says that it lies in segment {told}, the table of segments says"
                f" {says}",
            )
    return None


def _check_heads(tx: Tx, walk: _Walk) -> Bad | None:
    """The heads were written in the same transactions as the entries: a shorter tape was cut, a
    longer one grew by hand.
    """
    recorded = {
        str(tape): (seq, digest)
        for tape, seq, digest in tx.all("SELECT tape, head_seq, head_hash FROM tapes")
    }
    for tape, (seq, digest) in sorted(recorded.items()):
        found_seq, found_digest = walk.heads.get(tape, (0, chain.GENESIS))
        if found_seq < seq:
            return Bad(
                tape,
                found_seq + 1,
                0,
                f"the tape ends at {found_seq} but had {seq} entries: its end was cut off",
            )
        if (found_seq, found_digest) != (seq, digest):
            return Bad(
                tape,
                found_seq,
                0,
                f"the tape's recorded head ({seq}) is not its last entry ({found_seq}): entries"
                " were added by hand",
            )
    for tape, (seq, _) in walk.heads.items():
        if tape not in recorded:
            return Bad(
                tape,
                seq,
                0,
                "the tape has entries but no recorded head: it was inserted, or its head was"
                " removed",
            )
    return None
