"""Checking a journal against its Merkle tree and its signed checkpoints.

The tree is built anew from the entries as they are walked; of what is stored, nothing is believed
that this tree does not bear out. A chain alone can be written anew by whoever writes the file; a
signed root cannot.
"""

from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Struct

from palyra.core import signed_notes
from palyra.core.errors import InvalidInput
from palyra.core.events import JournalCheckpointed
from palyra.core.merkle import EMPTY_ROOT, HASH, TILE_WIDTH, TileKey, TileTree
from palyra.core.signed_notes import LogCheckpoint
from palyra.store import tree
from palyra.store.database import Tx
from palyra.store.log_keys import LogTrust
from palyra.store.tree import StoredCheckpoint

_PORTION = 4_096
_OWN_KEY = "own key"


class Voucher(Struct, frozen=True):
    """Voucher for a number of entries: 0 if for none. `time_ms` is 0 if the checkpoint is not
    stored here.
    """

    name: str
    size: int = 0
    time_ms: int = 0


class Vouched(Struct, frozen=True, kw_only=True):
    """Proof of the journal: how far, and by whom. `newer` entries are held by the chain alone.
    `vouchers` are the own key, each witness and each anchor that can be read.
    """

    size: int
    time_ms: int
    by: tuple[str, ...]
    newer: int
    origin: str = ""
    checkpoints: int = 0
    vouchers: tuple[Voucher, ...] = ()


class TreeFault(Struct, frozen=True):
    position: int
    problem: str


class _ComparedTiles:
    """The tiles of the tree that is being built, compared with those that are stored. Only the
    last of each level are kept, which is all that growing and roots need.
    """

    def __init__(self, tx: Tx, *, stored: bool) -> None:
        self._tx = tx
        self._stored = stored
        self._last: dict[int, tuple[int, bytes]] = {}
        self.fault: TreeFault | None = None

    def __getitem__(self, key: TileKey) -> bytes:
        index, tile = self._last[key[0]]
        assert index == key[1], "only the last tile of a level is read"
        return tile

    def __setitem__(self, key: TileKey, tile: bytes) -> None:
        self._last[key[0]] = (key[1], tile)
        if len(tile) == TILE_WIDTH * HASH:
            self._compare(key, tile)

    def finish(self) -> None:
        """Compare the tiles that are not full, and look for some that nothing belongs to."""
        for level, (index, tile) in self._last.items():
            if len(tile) < TILE_WIDTH * HASH:
                self._compare((level, index), tile)
        if not self._stored or self.fault is not None:
            return
        for level, index in self._tx.all("SELECT level, max(idx) FROM tree_tiles GROUP BY level"):
            if index > self._last.get(level, (-1, b""))[0]:
                at = int(index) * TILE_WIDTH ** (int(level) + 1) + 1
                self.fault = TreeFault(
                    at, f"the Merkle tree has a tile {level}/{index} for entries that are gone"
                )

    def _compare(self, key: TileKey, tile: bytes) -> None:
        if not self._stored or self.fault is not None:
            return
        row = self._tx.one(
            "SELECT hashes FROM tree_tiles WHERE level = :level AND idx = :idx",
            level=key[0],
            idx=key[1],
        )
        # What was appended since the last checkpoint has no tile yet.
        there = row[0] if row else b""
        if tile.startswith(there) and isinstance(there, bytes):
            return
        each = TILE_WIDTH ** key[0]
        first = next(
            at for at in range(0, len(tile), HASH) if there[at : at + HASH] != tile[at : at + HASH]
        )
        position = (key[1] * TILE_WIDTH + first // HASH) * each + 1
        self.fault = TreeFault(
            position,
            f"it is not the entry that tile {key[0]}/{key[1]} of the Merkle tree holds: the entry"
            " or the tile was changed after it was written",
        )


class TreeCheck:
    """The tree over the entries of a walk. Entries are added in commit order."""

    def __init__(self, tx: Tx, trust: LogTrust | None) -> None:
        there = tree.known(tx)
        self._trust = trust or LogTrust()
        self._checkpoints = tree.checkpoints(tx) if there else []
        self._tiles = _ComparedTiles(tx, stored=there)
        self._tree = TileTree(self._tiles)
        self._leaves: list[bytes] = []
        self._told: list[tuple[int, JournalCheckpointed]] = []
        # What was signed for before there was anything is known without looking.
        self._roots: dict[int, bytes] = {0: EMPTY_ROOT}
        wanted = {each.size for each in self._checkpoints if isinstance(each.size, int)}
        mark = _read(self._trust.mark) if self._trust.mark else None
        if mark is not None:
            wanted.add(mark.size)
        self._kept = dict(self._of_this_log())
        wanted.update(each.size for each in self._kept.values())
        self._due = sorted(wanted - {0}, reverse=True)
        self._room = self._next_portion()

    def add(self, link: int, digest: bytes) -> None:
        self._leaves.append(sha256(b"\x00" + bytes((link,)) + digest).digest())
        if len(self._leaves) >= self._room:
            self._flush()

    def told(self, position: int, event: JournalCheckpointed) -> None:
        """Note a checkpoint that the system's tape tells of."""
        self._told.append((position, event))

    def _flush(self) -> None:
        self._tree.extend(self._leaves)
        self._leaves = []
        size = self._tree.size
        if self._due and self._due[-1] == size:
            self._due.pop()
            self._roots[size] = self._tree.root()
        self._room = self._next_portion()

    def _next_portion(self) -> int:
        while self._due and self._due[-1] <= self._tree.size:
            self._due.pop()
        return min(self._due[-1] - self._tree.size, _PORTION) if self._due else _PORTION

    def finish(self) -> tuple[TreeFault | None, Vouched | None]:
        """Return what is wrong first, or how far the journal is proven."""
        self._flush()
        self._tiles.finish()
        size = self._tree.size
        if fault := self._shorter_than_mark(size) or self._shorter_than_anchors(size):
            return fault, None
        proven: Vouched | None = None
        vouchers = dict.fromkeys(self._vouchers(), Voucher(""))
        good = 0
        for each in self._checkpoints:
            fault, by = self._against(each, good, size)
            if fault:
                return fault, None
            good = each.size
            vouchers |= {name: Voucher(name, each.size, each.time_ms) for name in by}
            if by:
                proven = Vouched(
                    size=each.size,
                    time_ms=each.time_ms,
                    by=by,
                    newer=size - each.size,
                    origin=_read(each.note).origin,
                    checkpoints=len(self._checkpoints),
                )
        fault = (
            self._other_than_mark(good)
            or self._other_than_anchors(good)
            or self._tiles.fault
            or self._against_tape()
        )
        if proven is not None:
            times = {each.size: each.time_ms for each in self._checkpoints}
            for name, kept in self._kept.items():
                vouchers[name] = Voucher(name, kept.size, times.get(kept.size, 0))
            named = [msgspec.structs.replace(each, name=name) for name, each in vouchers.items()]
            proven = msgspec.structs.replace(
                proven, vouchers=tuple(sorted(named, key=lambda each: -each.size))
            )
        return fault, proven

    def _vouchers(self) -> Iterator[str]:
        """Return who may vouch for this journal."""
        if self._keys:
            yield _OWN_KEY
        yield from (f"witness {key.name}" for key in self._trust.witnesses)
        yield from (each.name for each in self._trust.anchors)

    def _of_this_log(self) -> Iterator[tuple[str, LogCheckpoint]]:
        """Return what anchors keep of this log, signed by its keys. Other notes are ignored."""
        for each in self._trust.anchors if self._keys else ():
            try:
                note = signed_notes.parse(each.note)
                said = LogCheckpoint.parse(note.text)
            except InvalidInput:
                continue
            if said.origin == self._keys[0].name and any(map(note.signed_by, self._keys)):
                yield each.name, said

    def _shorter_than_anchors(self, size: int) -> TreeFault | None:
        for name, kept in self._kept.items():
            if kept.size > size:
                return TreeFault(
                    size + 1,
                    f"the anchor {name} has a checkpoint over {kept.size} entries, and {size} are"
                    " there: the end was cut off, or an older copy was put in the journal's place",
                )
        return None

    def _other_than_anchors(self, good: int) -> TreeFault | None:
        for name, kept in self._kept.items():
            if self._roots.get(kept.size) != kept.root:
                first = good if good < kept.size else 0
                return self._changed(first, kept.size, f"the checkpoint of the anchor {name}")
        return None

    def _shorter_than_mark(self, size: int) -> TreeFault | None:
        """The largest checkpoint that was ever signed lies outside the file."""
        if not self._trust.mark:
            return None
        mark = _read(self._trust.mark)
        if not any(signed_notes.parse(self._trust.mark).signed_by(key) for key in self._keys):
            return TreeFault(0, "the checkpoint in the keys folder is not signed by its key")
        if mark.size > size:
            return TreeFault(
                size + 1,
                f"{mark.size} entries were signed for, and {size} are there: the end was cut off,"
                " or an older copy of the journal was put in its place",
            )
        return None

    def _other_than_mark(self, good: int) -> TreeFault | None:
        mark = _read(self._trust.mark) if self._trust.mark else None
        if mark is None or self._roots.get(mark.size) == mark.root:
            return None
        first = good if good < mark.size else 0
        return self._changed(first, mark.size, "the checkpoint in the keys folder")

    def _against(
        self, stored: StoredCheckpoint, good: int, size: int
    ) -> tuple[TreeFault | None, tuple[str, ...]]:
        """Return what is wrong with a checkpoint, and who vouches for it."""
        try:
            note, said = signed_notes.parse(stored.note), _read(stored.note)
        except (InvalidInput, TypeError, AttributeError):
            return TreeFault(0, f"the checkpoint over {stored.size} entries cannot be read"), ()
        if said.size != stored.size or stored.size > size:
            return TreeFault(
                size + 1,
                f"a checkpoint over {said.size} entries was stored as one over {stored.size}, and"
                f" {size} are there",
            ), ()
        own = any(note.signed_by(key) for key in self._keys)
        if self._keys and not own:
            return TreeFault(
                0, f"the checkpoint over {said.size} entries is not signed by the daemon's key"
            ), ()
        if self._roots.get(said.size) != said.root:
            return self._changed(good, said.size, "the checkpoint over them"), ()
        by = (_OWN_KEY,) if own else ()
        witnesses = [f"witness {key.name}" for key in self._trust.witnesses if note.signed_by(key)]
        return None, (*by, *witnesses)

    def _changed(self, good: int, size: int, where: str) -> TreeFault:
        """The entries up to a size are not those that were signed for. The first tile that differs
        names the entry, unless tiles were written anew as well.
        """
        fault = self._tiles.fault
        if fault is not None and fault.position <= size:
            return fault
        return TreeFault(
            good + 1,
            f"one of the entries from {good + 1} to {size} is not the one that {where} was signed"
            " for: history was rewritten",
        )

    @property
    def _keys(self) -> tuple[signed_notes.NoteKey, ...]:
        return self._trust.keys

    def _against_tape(self) -> TreeFault | None:
        """Every checkpoint that the tape tells of is stored, and says the same."""
        stored = {each.size: each for each in self._checkpoints}
        for position, event in self._told:
            found = stored.get(event.size)
            if found is None:
                return TreeFault(
                    position, f"the checkpoint over {event.size} entries that it made was removed"
                )
            if _read(found.note).root.hex() != event.root:
                return TreeFault(
                    position,
                    f"it tells of another checkpoint over {event.size} entries than is stored",
                )
        return None


def _read(note: str) -> LogCheckpoint:
    return LogCheckpoint.parse(signed_notes.parse(note).text)
