"""The Merkle tree of RFC 6962 and RFC 9162: hashes, proofs and their verification.

`TileTree` keeps a tree in tiles of 256 hashes, laid out as C2SP tlog-tiles does. It reads and
writes tiles through a mapping and holds nothing else, so a proof over a million leaves reads a
few dozen tiles, and growing or a root reads the last tile of each level.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

HASH = 32
TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
EMPTY_ROOT = sha256(b"").digest()
# The level of a tile, and its index on that level.
TileKey = tuple[int, int]


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def complete_root(hashes: bytes) -> bytes:
    """Return the root above hashes that lie side by side; their number is a power of two."""
    while len(hashes) > HASH:
        hashes = b"".join(
            [
                sha256(b"\x01" + hashes[at : at + 2 * HASH]).digest()
                for at in range(0, len(hashes), 2 * HASH)
            ]
        )
    return hashes


# Proofs share most of their subtrees.
_known_root = lru_cache(1_024)(complete_root)


def split(size: int) -> int:
    """Return the largest power of two that is smaller than `size`."""
    return 1 << ((size - 1).bit_length() - 1)


class Tiles(Protocol):
    """Storage of tiles. Raises KeyError for a tile that is not there."""

    def __getitem__(self, key: TileKey, /) -> bytes: ...

    def __setitem__(self, key: TileKey, tile: bytes, /) -> None: ...


class TileTree:
    """A growing tree over `tiles`. A tile holds the hashes of complete subtrees of 256 ** level
    leaves, side by side.
    """

    def __init__(self, tiles: Tiles, size: int = 0) -> None:
        self._tiles = tiles
        self.size = size

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaf hashes. A tile is put back once, however many of its hashes are new."""
        self._append(0, self.size, b"".join(leaves))

    def _append(self, level: int, count: int, hashes: bytes) -> None:
        """Append to a level that has `count` hashes."""
        if level == 0:
            self.size += len(hashes) // HASH
        above: list[bytes] = []
        begin, at = count >> TILE_HEIGHT, 0
        index = begin
        while at < len(hashes):
            used = count & (TILE_WIDTH - 1)
            room = (TILE_WIDTH - used) * HASH
            tile = (self._tiles[level, index] if used else b"") + hashes[at : at + room]
            self._tiles[level, index] = tile
            count += min(room, len(hashes) - at) // HASH
            at += room
            if len(tile) == TILE_WIDTH * HASH:
                above.append(complete_root(tile))
                index += 1
        if above:
            self._append(level + 1, begin, b"".join(above))

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` leaves, by default over all."""
        size = self._sized(size)
        return self._subtree(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """Return the audit path of a leaf in the tree of `size` leaves. Raise IndexError if the
        tree has no such leaf.
        """
        size = self._sized(size)
        if not 0 <= index < size:
            raise IndexError(f"a tree of {size} leaves has no leaf {index}")
        return self._path(index, 0, size)

    def consistency(self, old: int, size: int | None = None) -> list[bytes]:
        """Return the proof that the tree of `size` leaves continues the one of `old` leaves."""
        size = self._sized(size)
        if not 0 <= old <= size:
            raise IndexError(f"a tree of {size} leaves had never {old}")
        return self._continued(old, 0, size, known=True) if 0 < old < size else []

    def leaf(self, index: int) -> bytes:
        return self._complete(0, index)

    def _sized(self, size: int | None) -> int:
        if size is None:
            return self.size
        if not 0 <= size <= self.size:
            raise IndexError(f"the tree has {self.size} leaves, not {size}")
        return size

    def _path(self, index: int, begin: int, end: int) -> list[bytes]:
        if end - begin == 1:
            return []
        middle = begin + split(end - begin)
        if index < middle:
            return [*self._path(index, begin, middle), self._subtree(middle, end)]
        return [*self._path(index, middle, end), self._subtree(begin, middle)]

    def _continued(self, old: int, begin: int, end: int, *, known: bool) -> list[bytes]:
        """SUBPROOF of RFC 6962: `known` as long as the old tree's root is this subtree's."""
        if old == end - begin:
            return [] if known else [self._subtree(begin, end)]
        k = split(end - begin)
        if old <= k:
            left = self._continued(old, begin, begin + k, known=known)
            return [*left, self._subtree(begin + k, end)]
        right = self._continued(old - k, begin + k, end, known=False)
        return [*right, self._subtree(begin, begin + k)]

    def _subtree(self, begin: int, end: int) -> bytes:
        size = end - begin
        if size & (size - 1) == 0:
            height = size.bit_length() - 1
            return self._complete(height, begin >> height)
        middle = begin + split(size)
        return node_hash(self._subtree(begin, middle), self._subtree(middle, end))

    def _complete(self, height: int, index: int) -> bytes:
        """Return the root of the complete subtree of 2 ** height leaves at `index`."""
        level, above = divmod(height, TILE_HEIGHT)
        first = index << above
        tile = self._tiles[level, first >> TILE_HEIGHT]
        at = (first & (TILE_WIDTH - 1)) * HASH
        return _known_root(tile[at : at + (HASH << above)])


def proves_inclusion(
    index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes
) -> bool:
    """Say if a leaf hash is in the tree of a root, by RFC 9162 section 2.1.3.2."""
    if not 0 <= index < size or len(leaf) != HASH:
        return False
    at, last, found = index, size - 1, leaf
    for each in proof:
        if last == 0 or len(each) != HASH:
            return False
        if at & 1 or at == last:
            found = node_hash(each, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, each)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def proves_consistency(
    old: int, size: int, proof: Sequence[bytes], old_root: bytes, root: bytes
) -> bool:
    """Say if one tree continues another, by RFC 9162 section 2.1.4.2. An empty tree proves
    nothing about what came after it.
    """
    if not 0 < old <= size:
        return False
    if old == size:
        return not proof and old_root == root
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path or any(len(each) != HASH for each in path):
        return False
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    was = now = path[0]
    for each in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            was, now = node_hash(each, was), node_hash(each, now)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            now = node_hash(now, each)
        at, last = at >> 1, last >> 1
    return last == 0 and was == old_root and now == root
