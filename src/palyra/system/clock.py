"""Time and identifiers for everything above the journal; a test passes its own."""

import asyncio
import os
import random
import time

from palyra.core import ids

_STEP_BITS = 48  # of 79 drawn bits: room for two thousand million ids in one millisecond


class Clock:
    """The wall clock and a source of ULIDs. Ids are unique, not secret: the generator is seeded
    well and then is fast.
    """

    def __init__(self) -> None:
        self._bits = random.Random(os.urandom(32)).getrandbits
        self._last = 0, 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks_ms(self) -> int:
        """Of a clock that nobody sets and that stands still while the machine sleeps: only
        differences mean anything.
        """
        return time.monotonic_ns() // 1_000_000

    def slept_ms(self) -> int:
        """Return how long the machine has slept so far: only differences mean anything."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()) // 1_000_000

    def elapsed_ms(self) -> int:
        """Of a clock that nobody sets and that goes on while the machine sleeps: only differences
        mean anything.
        """
        return self.ticks_ms() + self.slept_ms()

    def new_id(self) -> str:
        """Return an id that sorts behind all before it of the same millisecond. The step is drawn,
        so that two threads at once do not make the same.
        """
        now_ms = self.now_ms()
        last_ms, last = self._last
        drawn = last + 1 + self._bits(_STEP_BITS) if now_ms == last_ms else self._bits(79)
        self._last = now_ms, drawn
        return ids.make(now_ms, drawn.to_bytes(10, "big"))

    def chance(self) -> float:
        """At random in [0, 1)."""
        return self._bits(53) / (1 << 53)

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
