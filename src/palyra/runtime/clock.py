"""Time and identifiers for everything above the journal; a test passes its own."""

import asyncio
import os
import random
import time

from palyra.domain import ids


class Clock:
    """The wall clock and a source of ULIDs. Ids are unique, not secret: the generator is seeded well and then is fast."""

    def __init__(self) -> None:
        self._bits = random.Random(os.urandom(32)).getrandbits

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks_ms(self) -> int:
        """Of a clock that nobody sets: only differences mean anything."""
        return time.monotonic_ns() // 1_000_000

    def new_id(self) -> str:
        return ids.make(self.now_ms(), self._bits(80).to_bytes(10, "big"))

    def chance(self) -> float:
        """At random in [0, 1)."""
        return self._bits(53) / (1 << 53)

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
