"""Which parts of a tape a session still stands on, after it was taken back to earlier entries of
it.

The rule: nothing is ever cut out of a tape. Going back is an entry like any other; what lies
between the entry that it names and itself is passed over by whoever reads, and going "back" to
before that entry passes over the going back.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Return(NamedTuple):
    """An entry that took the session back: its own place, and the entry that it led back to."""

    seq: int
    to_seq: int


def surviving(returns: Sequence[Return], upto: int) -> list[tuple[int, int]]:
    """The stretches (first and last entry) that count at an entry of the tape, oldest first.
    `returns` are in their order.
    """
    pieces: list[tuple[int, int]] = []
    for back in reversed(returns):
        if back.seq <= upto:
            pieces.append((back.seq, upto))
            upto = back.to_seq
    pieces.append((1, upto))
    return pieces[::-1]
