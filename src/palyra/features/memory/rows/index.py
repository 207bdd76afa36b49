"""The index of what is remembered: postings by word and vectors by slot, kept partition by
partition in packed pieces.

The rule: a partition knows nothing of any other. Counts, lengths and ranks come from what the asker
may see and from nothing else; a full-text index over everything would rank by other people's words.
Plain SQL over blobs, so a second database needs no extension.
"""

import struct
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from palyra.features.memory.model import ScopeKind, Where
from palyra.store.database import Tx

# What was said in a principal's sessions is indexed the same way, and apart.
Shelf = ScopeKind | Literal["turns"]
# Slot, how often the word stands there, how many words the item has.
POSTING = struct.Struct("<IBB")
_PER_CHUNK = 1024
DIMENSIONS = 384
CODE_BYTES = DIMENSIONS // 8
SLOTS_PER_BLOCK = 256
_SCALE = struct.Struct("<f")
VECTOR_BYTES = _SCALE.size + DIMENSIONS
_SHIFT = 32
_NO_CODE = bytes(CODE_BYTES)
_COLUMNS = "partition, scope, scope_value, items, words, next_slot"


class Partition(Struct, frozen=True):
    partition: int
    scope: Shelf
    scope_value: str
    items: int
    words: int
    next_slot: int


class IndexEntry(Struct, frozen=True):
    """Entry of one item in the index."""

    slot: int
    counts: Counter[str]

    @property
    def length(self) -> int:
        return min(255, self.counts.total())


def spot(partition: int, slot: int) -> int:
    return partition << _SHIFT | slot


def at(place: int) -> tuple[int, int]:
    """The partition and the slot of a spot."""
    return place >> _SHIFT, place & (1 << _SHIFT) - 1


def visible(tx: Tx, where: Where) -> list[Partition]:
    """Return what may be seen from somewhere: the principal's own, and what is for exactly this
    channel, session and workspace.
    """
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM memory_partitions WHERE owner = :owner AND items > 0 AND (scope =
        'principal'
            OR (scope = 'channel' AND scope_value = :channel AND :channel <> '')
            OR (scope = 'session' AND scope_value = :session AND :session <> '')
            OR (scope = 'workspace' AND scope_value = :workspace AND :workspace <> ''))""",
        owner=where.principal,
        channel=where.channel,
        session=where.session,
        workspace=where.workspace,
    )
    return [Partition(*row) for row in rows]


def everything_of(tx: Tx, owner: str) -> list[Partition]:
    """All that a principal had remembered, for the person who looks after it."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM memory_partitions WHERE owner = :owner AND scope <> 'turns' AND"
        " items > 0",
        owner=owner,
    )
    return [Partition(*row) for row in rows]


def anything(tx: Tx) -> bool:
    """Return whether anybody has something remembered."""
    row = tx.one("SELECT 1 FROM memory_partitions WHERE scope <> 'turns' AND items > 0 LIMIT 1")
    return row is not None


def turns_of(tx: Tx, owner: str) -> list[Partition]:
    """All that was said in a principal's sessions."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM memory_partitions WHERE owner = :owner AND scope = 'turns' AND"
        " items > 0",
        owner=owner,
    )
    return [Partition(*row) for row in rows]


def slots_for(tx: Tx, owner: str, scope: Shelf, scope_value: str, count: int) -> tuple[int, int]:
    """A partition, made if need be, and the first of so many fresh slots in it. Slots only grow:
    postings stay sorted.
    """
    tx.run(
        """INSERT INTO memory_partitions (owner, scope, scope_value) VALUES (:owner, :scope, :value)
        ON CONFLICT (owner, scope, scope_value) DO NOTHING""",
        owner=owner,
        scope=scope,
        value=scope_value,
    )
    row = tx.one(
        """UPDATE memory_partitions SET next_slot = next_slot + :count
        WHERE owner = :owner AND scope = :scope AND scope_value = :value RETURNING partition,
        next_slot""",
        owner=owner,
        scope=scope,
        value=scope_value,
        count=count,
    )
    assert row is not None
    return int(row[0]), int(row[1]) - count


def drop_empty(tx: Tx, owner: str) -> None:
    """A partition in which nothing is left says that there was a channel, a session, a workspace:
    away with it.
    """
    empty = tx.all(
        "SELECT partition FROM memory_partitions WHERE owner = :owner AND items = 0", owner=owner
    )
    for (partition,) in empty:
        if (
            tx.one(
                "SELECT 1 FROM memory_items WHERE spot >= :low AND spot < :high", **_span(partition)
            )
            is None
        ):
            tx.run("DELETE FROM memory_codes WHERE partition = :partition", partition=partition)
            tx.run(
                "DELETE FROM memory_partitions WHERE partition = :partition", partition=partition
            )


def _span(partition: int) -> dict[str, int]:
    return {"low": spot(partition, 0), "high": spot(partition + 1, 0)}


def add_words(tx: Tx, partition: int, entries: Sequence[IndexEntry]) -> None:
    """Make items findable by their words; entries in the order of their slots, all behind those
    that are there.
    """
    fresh: dict[str, list[bytes]] = {}
    firsts: dict[str, int] = {}
    for entry in entries:
        for term, count in entry.counts.items():
            fresh.setdefault(term, []).append(
                POSTING.pack(entry.slot, min(255, count), entry.length)
            )
            firsts.setdefault(term, entry.slot)
    for term, packed in fresh.items():
        _append(tx, partition, term, firsts[term], packed)
    _count(tx, partition, len(entries), sum(entry.length for entry in entries))


def _append(tx: Tx, partition: int, term: str, first: int, packed: list[bytes]) -> None:
    row = tx.one(
        """SELECT first, count, postings FROM memory_postings WHERE partition = :partition AND term
        = :term
        ORDER BY first DESC LIMIT 1""",
        partition=partition,
        term=term,
    )
    if row is not None and row[1] < _PER_CHUNK:
        room = _PER_CHUNK - row[1]
        _put_chunk(tx, partition, term, row[0], bytes(row[2]) + b"".join(packed[:room]))
        packed = packed[room:]
        first = POSTING.unpack(packed[0])[0] if packed else first
    while packed:
        tx.run(
            """INSERT INTO memory_postings (partition, term, first, count, postings)
            VALUES (:partition, :term, :first, :count, :postings)""",
            partition=partition,
            term=term,
            first=POSTING.unpack(packed[0])[0],
            count=len(packed[:_PER_CHUNK]),
            postings=b"".join(packed[:_PER_CHUNK]),
        )
        packed = packed[_PER_CHUNK:]


def _put_chunk(tx: Tx, partition: int, term: str, first: int, postings: bytes) -> None:
    if postings:
        tx.run(
            """UPDATE memory_postings SET count = :count, postings = :postings
            WHERE partition = :partition AND term = :term AND first = :first""",
            partition=partition,
            term=term,
            first=first,
            count=len(postings) // POSTING.size,
            postings=postings,
        )
    else:
        tx.run(
            "DELETE FROM memory_postings WHERE partition = :partition AND term = :term AND first ="
            " :first",
            partition=partition,
            term=term,
            first=first,
        )


def _count(tx: Tx, partition: int, items: int, words: int) -> None:
    tx.run(
        "UPDATE memory_partitions SET items = items + :items, words = words + :words WHERE"
        " partition = :partition",
        partition=partition,
        items=items,
        words=words,
    )


def remove(tx: Tx, partition: int, entry: IndexEntry) -> None:
    """Take an item out: its words, its vector, its signs."""
    for term in entry.counts:
        row = tx.one(
            """SELECT first, postings FROM memory_postings WHERE partition = :partition AND term =
            :term AND first <= :slot
            ORDER BY first DESC LIMIT 1""",
            partition=partition,
            term=term,
            slot=entry.slot,
        )
        if row is not None:
            kept = bytes(row[1])
            for offset in range(0, len(kept), POSTING.size):
                if POSTING.unpack_from(kept, offset)[0] == entry.slot:
                    _put_chunk(
                        tx, partition, term, row[0], kept[:offset] + kept[offset + POSTING.size :]
                    )
                    break
    _count(tx, partition, -1, -entry.length)
    remove_vector(tx, partition, entry.slot)


def pack(vector: bytes) -> tuple[bytes, bytes]:
    """A vector of float32 as it is stored, one byte an element with one scale for all, and the
    signs of its elements.

    In plain Python: what only writes has no need of the libraries that searching loads.
    """
    elements = array("f", vector)
    scale = max(max(elements), -min(elements)) / 127 or 1.0
    packed = bytes([round(each / scale) & 0xFF for each in elements])
    signs = int("".join(["1" if each > 0 else "0" for each in elements]), 2)
    return _SCALE.pack(scale) + packed, signs.to_bytes(CODE_BYTES)


def add_vectors(tx: Tx, packed: dict[int, tuple[bytes, bytes]]) -> None:
    """Make items findable by their meaning: stored vector and signs by spot."""
    blocks: dict[int, dict[int, bytes]] = {}
    for place, (vector, code) in packed.items():
        tx.run(
            """INSERT INTO memory_vectors (spot, vector) VALUES (:spot, :vector)
            ON CONFLICT (spot) DO UPDATE SET vector = excluded.vector""",
            spot=place,
            vector=vector,
        )
        partition, slot = at(place)
        blocks.setdefault(partition, {})[slot] = code
    for partition, codes in blocks.items():
        _put_codes(tx, partition, codes)


def remove_vector(tx: Tx, partition: int, slot: int) -> None:
    tx.run("DELETE FROM memory_vectors WHERE spot = :spot", spot=spot(partition, slot))
    _put_codes(tx, partition, {slot: _NO_CODE})


def _put_codes(tx: Tx, partition: int, codes: dict[int, bytes]) -> None:
    """Store codes; signs of nothing mean that there is no vector at a slot."""
    by_block: dict[int, dict[int, bytes]] = {}
    for slot, code in codes.items():
        by_block.setdefault(slot // SLOTS_PER_BLOCK, {})[slot % SLOTS_PER_BLOCK] = code
    newest = tx.one(
        "SELECT coalesce(max(changed), 0) FROM memory_codes WHERE partition = :partition",
        partition=partition,
    )
    changed = int(newest[0]) + 1 if newest else 1
    for block, given in by_block.items():
        row = tx.one(
            "SELECT codes FROM memory_codes WHERE partition = :partition AND block = :block",
            partition=partition,
            block=block,
        )
        if row is None and not any(code != _NO_CODE for code in given.values()):
            continue
        whole = bytearray(row[0] if row else bytes(SLOTS_PER_BLOCK * CODE_BYTES))
        for at_slot, code in given.items():
            whole[at_slot * CODE_BYTES : (at_slot + 1) * CODE_BYTES] = code
        tx.run(
            """INSERT INTO memory_codes (partition, block, changed, codes) VALUES (:partition,
            :block, :changed, :codes)
            ON CONFLICT (partition, block) DO UPDATE SET changed = excluded.changed, codes =
            excluded.codes""",
            partition=partition,
            block=block,
            changed=changed,
            codes=bytes(whole),
        )
