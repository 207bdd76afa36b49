"""The lease of the node that leads: whose turn it is to write, and until when by this machine's own
clock.

The rule: a leader never trusts a clock but its own for how long it may go on, and never its own
clock for whether it still leads. The journal's server checks the epoch with every commit.
"""

import threading
import time
from collections.abc import Callable

from palyra.core.errors import Unavailable

# Of a lease, this part is used: clocks do not run equally fast.
_TRUSTED = 0.95


class Fenced(Unavailable):
    """Another node leads, or may: this one writes nothing more and starts no effect."""


def now_s() -> float:
    """Return seconds of a clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderLease:
    """One epoch of leading. `on_lost` is told once that it is over, on whichever thread finds out;
    a daemon in a process of its own does not come back from it.
    """

    def __init__(
        self,
        epoch: int,
        on_lost: Callable[[str], None],
        on_extended: Callable[[float], None] = lambda until_s: None,
    ) -> None:
        """`on_extended` is told until when it lasts, and 0 when it has ended."""
        self.epoch = epoch
        self._on_lost = on_lost
        self._on_extended = on_extended
        self._until = 0.0
        self._lost = ""
        self._ended = False
        self._once = threading.Lock()

    @property
    def left_s(self) -> float:
        """Seconds until it runs out by this machine's clock."""
        return self._until - now_s()

    def extend(self, sent_s: float, granted_ms: int) -> None:
        """The server has granted so much more. It counts from before it was asked."""
        with self._once:
            if self._ended:
                return
            self._until = max(self._until, sent_s + _TRUSTED * granted_ms / 1000)
            self._on_extended(self._until)

    def check(self) -> None:
        """Raise Fenced if this node may not lead any more. Asked before every effect."""
        if self._ended:
            return
        if self._lost:
            raise Fenced(self._lost)
        if self.left_s <= 0:
            self.lose("the lease of this node ran out before it could be renewed")

    def lose(self, why: str) -> None:
        """Stop leading at once, and raise Fenced."""
        with self._once:
            first, self._lost = not self._lost and not self._ended, self._lost or why
        if first:
            self._on_lost(why)
        raise Fenced(self._lost)

    def end(self) -> None:
        """The node has stopped by itself: from here on nothing can be lost."""
        with self._once:
            self._ended = True
            self._on_extended(0.0)
