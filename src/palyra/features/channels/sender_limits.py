"""How much text each sender may send in a while before anybody looks at it. Counted in memory,
before any work is done.
"""

from palyra.system.clock import Clock

_BURST = 64 << 10  # characters
_PER_SECOND = 1 << 10
_MOST_SENDERS = 4_096


class Shares:
    """A bucket for each sender that fills with time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[str, tuple[int, int]] = {}  # what is left, and when that was

    def allow(self, sender: str, size: int) -> bool:
        """Take `size` characters from the sender's share. Return False if that is more than is
        left.
        """
        now_ms = self._clock.now_ms()
        left, since_ms = self._left.pop(sender, (_BURST, now_ms))
        left = min(_BURST, left + max(0, now_ms - since_ms) * _PER_SECOND // 1_000)
        # The sender who was quiet longest goes first: by then their bucket is full again, or they
        # are one of very many.
        if len(self._left) >= _MOST_SENDERS:
            del self._left[next(iter(self._left))]
        self._left[sender] = (max(0, left - size), now_ms)
        return size <= left
