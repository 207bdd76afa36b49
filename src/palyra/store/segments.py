"""Segments: the tapes of old sessions as sealed files. The journal keeps what proves them: their
SHA-256, on the system's tape.

The rule: an entry is removed from the database only when a segment that was sealed before holds the
very same bytes. A segment is named by its hash and never changed; what is left to remove can be
removed at any later time, and verifying sees no difference.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from struct import Struct as Packer
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import ChainBroken
from palyra.core.events import JournalArchived, JournalRestored
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Tx
from palyra.store.dialect import Row

SLICE = 500
_MAGIC = b"palyra segment 1\n"
_LENGTH = Packer(">I")
_PIECE = 256 << 10
_ENTRY = "position, tape, seq, time_ms, run_id, principal, kind, body, hash, link"
# An entry of a segment from before links had versions.
_WITHOUT_VERSION = 9
_TABLES = {
    "entry": ("entries", "tape", _ENTRY, "position"),
    "artifact": (
        "artifacts",
        "session_id",
        "session_id, artifact_id, media_type, body, created_ms",
        "artifact_id",
    ),
    "effect": (
        "effects",
        "session_id",
        "call_id, session_id, run_id, tool, position, checkpoint, undone_ms",
        "position",
    ),
}
_SAID = "kind IN ('input.received', 'run.completed', 'tool.proposed', 'tool.finished')"


class Segment(Struct, frozen=True, kw_only=True):
    """One file. `tapes` of those that were put into it are in it alone; the others were restored
    since.
    """

    segment_id: str
    bytes: int
    entries: int
    first_position: int
    last_position: int
    created_ms: int
    tapes: int = 0


class Sealed(Struct, frozen=True):
    """A file that was written and read back, and what is in it: each tape with its last number and
    its hash.
    """

    segment_id: str
    size: int
    entries: int
    first_position: int
    last_position: int
    heads: dict[str, tuple[int, bytes]]


def folder_of(journal: Path) -> Path:
    """Return where the segments of a journal lie."""
    return journal.with_name(journal.name + ".segments")


def file_of(folder: Path, segment_id: str) -> Path:
    return folder / f"{segment_id}.segment"


class _Pack:
    """Records one after the other, compressed. The same records always give the same bytes."""

    def __init__(self) -> None:
        self._squeeze = zlib.compressobj(6)
        self.pieces = [_MAGIC]
        self.entries = 0

    def add(self, what: str, row: Sequence[Any]) -> None:
        record = msgspec.msgpack.encode((what, *row))
        self.pieces.append(self._squeeze.compress(_LENGTH.pack(len(record)) + record))
        self.entries += what == "entry"

    def finish(self) -> bytes:
        return b"".join([*self.pieces, self._squeeze.flush()])


def records(body: bytes) -> Iterator[tuple[str, Row]]:
    """Yield what a segment holds: entries in the order they were committed, then artifacts, then
    what undoes effects.
    """
    if not body.startswith(_MAGIC):
        raise ChainBroken("this is not a segment of a journal")
    unsqueeze, waiting = zlib.decompressobj(), b""
    view = memoryview(body)
    for at in range(len(_MAGIC), len(body), _PIECE):
        waiting += unsqueeze.decompress(view[at : at + _PIECE])
        place = 0
        while len(waiting) - place >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(waiting, place)
            if len(waiting) - place - _LENGTH.size < length:
                break
            place += _LENGTH.size
            what, *row = msgspec.msgpack.decode(waiting[place : place + length])
            if what == "entry" and len(row) == _WITHOUT_VERSION:
                row.append(1)
            yield what, tuple(row)
            place += length
        waiting = waiting[place:]
    if waiting or not unsqueeze.eof:
        raise ChainBroken("the segment ends in the middle of a record")


def pack(tx: Tx, tapes: Sequence[str]) -> bytes:
    """Everything that is to leave the database with these tapes."""
    packed, named = _Pack(), msgspec.json.encode(list(tapes)).decode()
    for what, (table, key, columns, order) in _TABLES.items():
        rows = tx.all(
            f"SELECT {columns} FROM {table} WHERE {key} IN (SELECT value FROM json_each(:tapes))"
            f" ORDER BY {order}",
            tapes=named,
        )
        for row in rows:
            packed.add(what, row)
    return packed.finish()


def seal(body: bytes, folder: Path) -> Sealed:
    """Write a segment so that it is whole or not there, then read it back from the disk and look at
    every link of it.
    """
    segment_id = sha256(body).hexdigest()
    folder.mkdir(mode=0o700, exist_ok=True)
    target = file_of(folder, segment_id)
    if not target.exists():
        partial = target.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(descriptor, "wb", closefd=False) as handle:
                handle.write(body)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(partial, target)
        _sync(folder)
    return look(target.read_bytes(), segment_id)


def look(body: bytes, segment_id: str) -> Sealed:
    """Return what a segment holds. Raises ChainBroken if it is not the one that was sealed."""
    if sha256(body).hexdigest() != segment_id:
        raise ChainBroken(
            f"segment {segment_id[:16]} is not as it was sealed: its bytes were changed",
            segment_id=segment_id,
        )
    heads: dict[str, tuple[int, bytes]] = {}
    positions: list[int] = []
    for what, row in records(body):
        if what == "entry":
            heads[row[1]] = (row[2], row[8])
            positions.append(row[0])
    return Sealed(
        segment_id,
        len(body),
        len(positions),
        min(positions, default=0),
        max(positions, default=0),
        heads,
    )


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def body_of(tx: Tx, folder: Path | None, segment_id: str) -> bytes:
    """A segment's bytes: from its file, or from the database if that is a backup, which carries
    them with it.
    """
    if folder is not None:
        try:
            return file_of(folder, segment_id).read_bytes()
        except FileNotFoundError:
            pass
    row = tx.one("SELECT body FROM segment_bodies WHERE segment_id = :id", id=segment_id)
    if row is None:
        where = file_of(folder, segment_id) if folder else segment_id
        raise ChainBroken(
            f"segment {where} is missing: put it back, or restore a backup that has it",
            segment_id=segment_id,
        )
    return bytes(row[0])


def keep_body(tx: Tx, segment_id: str, body: bytes) -> None:
    """Keep a segment in the database: nodes that share it do not have each other's files."""
    tx.run(
        "INSERT INTO segment_bodies (segment_id, body) VALUES (:id, :body)"
        " ON CONFLICT (segment_id) DO NOTHING",
        id=segment_id,
        body=body,
    )


def without_body(tx: Tx) -> list[str]:
    """Return the segments that lie in files alone."""
    rows = tx.all(
        "SELECT segment_id FROM segments WHERE segment_id NOT IN"
        " (SELECT segment_id FROM segment_bodies)"
    )
    return [str(segment_id) for (segment_id,) in rows]


def known(tx: Tx) -> bool:
    """Return whether the journal knows of segments; a backup from before there were any does
    not.
    """
    return tx.connection.has_table("segment_tapes")


def listing(tx: Tx) -> list[Segment]:
    """All of them, oldest first."""
    if not known(tx):
        return []
    rows = tx.all(
        """SELECT s.segment_id, s.bytes, s.entries, s.first_position, s.last_position, s.created_ms,
            (SELECT count(*) FROM segment_tapes t WHERE t.segment_id = s.segment_id)
        FROM segments s ORDER BY s.created_ms, s.segment_id"""
    )
    return [Segment(**dict(zip(Segment.__struct_fields__, row, strict=True))) for row in rows]


def tapes(tx: Tx) -> dict[str, str]:
    """The tapes that lie in segments, with theirs."""
    if not known(tx):
        return {}
    return {
        str(each): str(segment_id)
        for each, segment_id in tx.all("SELECT tape, segment_id FROM segment_tapes")
    }


def record(tx: Tx, sealed: Sealed, *, searchable: bool = True) -> None:
    """From now on these tapes lie in the segment. They must be as they were when it was sealed;
    whoever calls has looked. What was said in them can be searched unless `searchable` is off.
    """
    event = JournalArchived(
        segment=sealed.segment_id,
        entries=sealed.entries,
        bytes=sealed.size,
        tapes=tuple(sorted(sealed.heads)),
    )
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
    tx.run(
        """INSERT INTO segments (segment_id, bytes, entries, first_position, last_position,
        created_ms)
        VALUES (:id, :bytes, :entries, :first, :last, :now) ON CONFLICT DO NOTHING""",
        id=sealed.segment_id,
        bytes=sealed.size,
        entries=sealed.entries,
        first=sealed.first_position,
        last=sealed.last_position,
        now=tx.now_ms,
    )
    for name, (seq, digest) in sealed.heads.items():
        tx.run(
            """INSERT INTO segment_tapes (tape, segment_id, head_seq, head_hash, archived, removed)
            SELECT :tape, :id, :seq, :hash, archived, 0 FROM sessions WHERE session_id = :tape""",
            tape=name,
            id=sealed.segment_id,
            seq=seq,
            hash=digest,
        )
        tx.run(
            "UPDATE sessions SET segment_id = :id, archived = 1 WHERE session_id = :tape",
            id=sealed.segment_id,
            tape=name,
        )
        if not searchable:
            continue
        # What was said can still be searched; the segment is what counts.
        tx.run(
            f"""INSERT INTO archived_said (position, seq, kind, run_id, body)
            SELECT position, seq, kind, run_id, body FROM entries WHERE tape = :tape AND {_SAID}
            ON CONFLICT (position) DO NOTHING""",
            tape=name,
        )


def unremoved(tx: Tx) -> list[str]:
    """Tapes that lie in segments and of which something may be left in the database."""
    return [
        str(name)
        for (name,) in tx.all("SELECT tape FROM segment_tapes WHERE removed = 0 ORDER BY tape")
    ]


def remove_slice(tx: Tx, name: str) -> bool:
    """Remove a part of a tape that lies in a segment; True when nothing is left. Triggers refuse
    every other tape.
    """
    for table, key, _, order in _TABLES.values():
        rows = tx.all(
            f"SELECT {order} FROM {table} WHERE {key} = :tape ORDER BY {order} LIMIT :slice",
            tape=name,
            slice=SLICE,
        )
        if rows:
            tx.run(
                f"DELETE FROM {table} WHERE {key} = :tape AND {order} <= :last",
                tape=name,
                last=rows[-1][0],
            )
            return False
    tx.run("UPDATE segment_tapes SET removed = 1 WHERE tape = :tape", tape=name)
    return True


def put_back(tx: Tx, rows: Sequence[tuple[str, Row]]) -> None:
    """Rows of a segment into the database again, as they were; those that are there already
    stay.
    """
    for what, row in rows:
        table, _, columns, _ = _TABLES[what]
        names = columns.split(", ")
        values = ", ".join(f":{name}" for name in names)
        tx.run(
            f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING",
            **dict(zip(names, row, strict=True)),
        )


def restored(tx: Tx, name: str) -> None:
    """All of a tape is in the database again."""
    row = tx.one(
        """SELECT s.segment_id, s.archived, s.head_seq, s.head_hash, (SELECT count(*) FROM entries
        WHERE tape = :tape),
            (SELECT hash FROM entries WHERE tape = :tape AND seq = s.head_seq)
        FROM segment_tapes s WHERE s.tape = :tape""",
        tape=name,
    )
    if row is None:
        return
    segment_id, archived, seq, digest, count, found = row
    if count != seq or found != digest:
        raise ChainBroken(
            f"session {name} is not whole in segment {segment_id[:16]}", session_id=name
        )
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [JournalRestored(segment=segment_id, tape=name)])
    tx.run(
        "DELETE FROM archived_said WHERE position IN (SELECT position FROM entries WHERE tape ="
        " :tape)",
        tape=name,
    )
    tx.run("DELETE FROM segment_tapes WHERE tape = :tape", tape=name)
    # Whoever brought it back uses it: it is not old any more.
    tx.run(
        "UPDATE sessions SET segment_id = '', archived = :archived, updated_ms = :now WHERE"
        " session_id = :tape",
        archived=archived,
        now=tx.now_ms,
        tape=name,
    )
