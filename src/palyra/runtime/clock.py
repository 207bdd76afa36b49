"""Time and identifiers for everything above the journal; a test passes its own."""

import os
import time

from palyra.domain import ids


class Clock:
    """The wall clock and a source of ULIDs."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        return ids.make(self.now_ms(), os.urandom(10))
