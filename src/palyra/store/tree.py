"""The journal's Merkle tree in the store: its tiles, and the signed checkpoints over it.

The tree follows the commits and is never part of an append: whoever makes a checkpoint reads what
was appended since the last one. Tiles hold nothing that does not follow from the entries; they
make proofs cheap, and keep the leaves of entries that lie in segments.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from msgspec import Struct

from palyra.core.errors import ChainBroken
from palyra.core.merkle import HASH, TILE_WIDTH, TileKey, TileTree
from palyra.store import segment_walk, segments
from palyra.store.database import Tx

_CHUNK = 10_000
# What stands before the hash of an entry in its leaf, by the version of its link.
_LEAF = [bytes((0, link)) for link in range(256)]


class StoredCheckpoint(Struct, frozen=True):
    """A signed note about the first `size` entries, with the cosignatures that it has by now."""

    size: int
    time_ms: int
    note: str


class StoredTiles:
    """The tiles of a journal, each read once. `changed` are those that are not stored yet."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[TileKey, bytes] = {}
        self.changed: dict[TileKey, bytes] = {}

    def __getitem__(self, key: TileKey) -> bytes:
        found = self._known.get(key)
        if found is None:
            row = self._tx.one(
                "SELECT hashes FROM tree_tiles WHERE level = :level AND idx = :idx",
                level=key[0],
                idx=key[1],
            )
            if row is None:
                raise ChainBroken(f"the Merkle tree has lost its tile {key[0]}/{key[1]}")
            found = self._known[key] = bytes(row[0])
        return found

    def __setitem__(self, key: TileKey, tile: bytes) -> None:
        self._known[key] = self.changed[key] = tile


def leaf(link: int, digest: bytes) -> bytes:
    """Return the leaf hash of an entry: RFC 6962 over its link's version and its hash."""
    return sha256(_LEAF[link] + digest).digest()


def known(tx: Tx) -> bool:
    """Say if the journal has a tree; a backup from before there was one has none."""
    return tx.connection.has_table("tree_tiles")


def stored_size(tx: Tx) -> int:
    """Return how many entries the stored tiles cover."""
    row = tx.one(
        "SELECT idx, length(hashes) FROM tree_tiles WHERE level = 0 ORDER BY idx DESC LIMIT 1"
    )
    return int(row[0]) * TILE_WIDTH + int(row[1]) // HASH if row else 0


def stored(tx: Tx) -> TileTree:
    """Return the tree as far as its tiles are stored."""
    return TileTree(StoredTiles(tx), stored_size(tx))


def grow(tx: Tx, folder: Path | None) -> tuple[TileTree, dict[TileKey, bytes]]:
    """Return the tree over all entries, and the tiles that have to be stored for it. `folder` is
    where the segments lie.
    """
    tiles = StoredTiles(tx)
    tree = TileTree(tiles, stored_size(tx))
    for leaves in _leaves_behind(tx, folder, tree.size):
        tree.extend(leaves)
    return tree, tiles.changed


def _leaves_behind(tx: Tx, folder: Path | None, size: int) -> Iterator[list[bytes]]:
    while True:
        rows = tx.all(
            "SELECT position, link, hash FROM entries WHERE position > :size ORDER BY position"
            " LIMIT :limit",
            size=size,
            limit=_CHUNK,
        )
        if rows and rows[-1][0] != size + len(rows):
            # Some of them lie in segments already.
            yield from _leaves_of_everything(tx, folder, size)
            return
        if rows:
            # As `leaf` does, without the call: this is done for every entry.
            yield [sha256(_LEAF[link] + digest).digest() for _, link, digest in rows]
        if len(rows) < _CHUNK:
            return
        size += len(rows)


def _leaves_of_everything(tx: Tx, folder: Path | None, size: int) -> Iterator[list[bytes]]:
    leaves: list[bytes] = []
    try:
        for row in segment_walk.rows(tx, folder, segments.listing(tx)):
            if row[0] > size:
                leaves.append(leaf(row[9], row[8]))
            if len(leaves) == _CHUNK:
                yield leaves
                leaves = []
    except segment_walk.Broken as broken:
        raise ChainBroken(broken.problem, position=broken.position) from broken
    yield leaves


def other_than_stored(tx: Tx, entries: Iterable[tuple[int, int, bytes]]) -> int:
    """Return the position of the first of some entries, as (position, link, hash), that is not the
    one in its tile; 0 if there is none.
    """
    tiles = StoredTiles(tx)
    size = stored_size(tx)
    for position, link, digest in entries:
        if position > size:
            break
        at = ((position - 1) % TILE_WIDTH) * HASH
        try:
            tile = tiles[0, (position - 1) // TILE_WIDTH]
        except (ChainBroken, TypeError):
            return position
        if tile[at : at + HASH] != leaf(link, digest):
            return position
    return 0


def rebuilt(tx: Tx, folder: Path | None) -> TileTree:
    """Return the tree over all entries, made from them alone: also of a journal of a version that
    had none.
    """
    grown = TileTree({})
    rows = segment_walk.rows(tx, folder, segments.listing(tx))
    while leaves := [leaf(row[9], row[8]) for row in islice(rows, _CHUNK)]:
        grown.extend(leaves)
    return grown


def put_tiles(tx: Tx, tiles: dict[TileKey, bytes]) -> None:
    if tiles:
        tx.many(
            """INSERT INTO tree_tiles (level, idx, hashes) VALUES (:level, :idx, :hashes)
            ON CONFLICT (level, idx) DO UPDATE SET hashes = excluded.hashes""",
            [
                {"level": level, "idx": index, "hashes": tile}
                for (level, index), tile in tiles.items()
            ],
        )


def put_checkpoint(tx: Tx, size: int, note: str) -> None:
    """Store a checkpoint, or the same one with more cosignatures."""
    tx.run(
        """INSERT INTO checkpoints (size, time_ms, note) VALUES (:size, :now, :note)
        ON CONFLICT (size) DO UPDATE SET note = excluded.note""",
        size=size,
        now=tx.now_ms,
        note=note,
    )


def checkpoints(tx: Tx) -> list[StoredCheckpoint]:
    """Return all of them, oldest first."""
    rows = tx.all("SELECT size, time_ms, note FROM checkpoints ORDER BY size")
    return [StoredCheckpoint(*row) for row in rows]


def is_stored(tx: Tx, size: int) -> bool:
    return bool(tx.one("SELECT 1 FROM checkpoints WHERE size = :size", size=size))


def newest_checkpoint(tx: Tx) -> StoredCheckpoint | None:
    row = tx.one("SELECT size, time_ms, note FROM checkpoints ORDER BY size DESC LIMIT 1")
    return StoredCheckpoint(*row) if row else None


def first_checkpoint_over(tx: Tx, position: int) -> StoredCheckpoint | None:
    """Return the oldest checkpoint that covers an entry."""
    row = tx.one(
        "SELECT size, time_ms, note FROM checkpoints WHERE size >= :position ORDER BY size LIMIT 1",
        position=position,
    )
    return StoredCheckpoint(*row) if row else None
