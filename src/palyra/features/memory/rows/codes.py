"""The signs of all vectors of the partitions in use, held in memory for as long as they are asked
for.

48 bytes an item. The rule: they only propose. Which items there are, and how near they are, is read
from the store each time, so an outdated sign costs at most a candidate, and nothing is held back
when memory is short: without room they are read anew.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palyra.features.memory.rows.index import CODE_BYTES, SLOTS_PER_BLOCK, Partition
from palyra.store.database import Tx
from palyra.store.dialect import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Signs = NDArray[np.uint64]

_WORDS = CODE_BYTES // 8
_MOST_BYTES = 128 << 20
_AT_ONCE = 65_536
_BLOCKS_AT_ONCE = 128
# Farther than any vector can be: there is none at this slot.
NOTHING = 9_999


@dataclass(slots=True)
class _Held:
    signs: "Signs"  # word by word, all slots of a word together: that is how they are compared
    present: "NDArray[np.bool_]"
    changed: int = 0
    used_ms: int = 0


class Codes:
    """Cache of codes for the searches of one process, on any thread."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: dict[int, _Held] = {}
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        return sum(each.signs.nbytes + each.present.nbytes for each in self._held.values())

    def release(self, before_ms: int) -> None:
        """Let go of what was not asked for since."""
        with self._lock:
            self._held = {
                partition: each
                for partition, each in self._held.items()
                if each.used_ms >= before_ms
            }

    def distances(
        self, tx: Tx, partition: Partition, signs: "Signs", heavy: "Sequence[Signs]"
    ) -> "NDArray[np.uint16]":
        """Return for each slot of a partition in how many signs its vector differs; each of the
        sets of `heavy` ones counts once more.
        """
        import numpy as np

        held = self._of(tx, partition)
        count = partition.next_slot
        found = np.empty(count, np.uint16)
        for first in range(0, count, _AT_ONCE):
            behind = min(first + _AT_ONCE, count)
            total = np.zeros(behind - first, np.uint16)
            for word in range(_WORDS):
                differ = held.signs[word, first:behind] ^ signs[word]
                total += np.bitwise_count(differ)
                for each in heavy:
                    if each[word]:
                        total += np.bitwise_count(differ & each[word])
            found[first:behind] = total
        found[~held.present[:count]] = NOTHING
        return found

    def _of(self, tx: Tx, partition: Partition) -> _Held:
        import numpy as np

        with self._lock:
            held = self._held.get(partition.partition)
            if held is None or held.signs.shape[1] < partition.next_slot:
                # A quarter more than is needed, in whole blocks: growing is copying.
                capacity = (
                    -(-(partition.next_slot * 5 // 4 + 1) // SLOTS_PER_BLOCK) * SLOTS_PER_BLOCK
                )
                held = _Held(np.zeros((_WORDS, capacity), np.uint64), np.zeros(capacity, np.bool_))
                self._held[partition.partition] = held
            self._catch_up(tx, partition, held)
            held.used_ms = tx.now_ms
            self._make_room(partition.partition)
            return held

    def _catch_up(self, tx: Tx, partition: Partition, held: _Held) -> None:
        if held.changed:
            rows = tx.all(
                "SELECT block, changed, codes FROM memory_codes WHERE partition = :partition AND"
                " changed > :seen",
                partition=partition.partition,
                seen=held.changed,
            )
            self._put(held, rows)
            return
        # All of them, piece by piece: at once they would be in memory twice.
        for first in range(0, partition.next_slot // SLOTS_PER_BLOCK + 1, _BLOCKS_AT_ONCE):
            rows = tx.all(
                """SELECT block, changed, codes FROM memory_codes WHERE partition = :partition
                    AND block >= :first AND block < :behind""",
                partition=partition.partition,
                first=first,
                behind=first + _BLOCKS_AT_ONCE,
            )
            self._put(held, rows)

    @staticmethod
    def _put(held: _Held, rows: Sequence[Row]) -> None:
        import numpy as np

        for block, changed, codes in rows:
            first = block * SLOTS_PER_BLOCK
            if first >= held.signs.shape[1]:
                continue  # Written after this reader began; the next one has room for it.
            fresh = np.frombuffer(codes, np.uint64).reshape(SLOTS_PER_BLOCK, _WORDS)
            held.signs[:, first : first + SLOTS_PER_BLOCK] = fresh.T
            held.present[first : first + SLOTS_PER_BLOCK] = fresh.any(axis=1)
            held.changed = max(held.changed, changed)

    def _make_room(self, but: int) -> None:
        """Evict the least recently used. The one being asked for stays until it was answered
        from.
        """
        for partition in sorted(self._held, key=lambda each: self._held[each].used_ms):
            if self.held_bytes <= self._most_bytes:
                return
            if partition != but or len(self._held) == 1:
                del self._held[partition]
