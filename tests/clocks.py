"""Time in a test's hands: it stands still until the test moves it, and whoever sleeps wakes when it
has passed.
"""

import asyncio

from palyra.system.clock import Clock

BEGIN_MS = 1_700_000_000_000


class HeldClock(Clock):
    """`naps` counts how often somebody lay down to sleep, `jump` sets the wall clock without
    anybody having slept.

    `suspend` puts the machine itself to sleep: the wall clock goes on, and nothing else does.
    """

    def __init__(self, ms: int = BEGIN_MS) -> None:
        super().__init__()
        self.ms = ms
        self.naps = 0
        self._slept = 0
        self._suspended = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self.ms

    def ticks_ms(self) -> int:
        return self._slept

    def slept_ms(self) -> int:
        return self._suspended

    async def sleep(self, ms: int) -> None:
        self.naps += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._slept + ms, future))
        await future

    def advance(self, ms: int) -> None:
        """Time passes: on the wall, and for who sleeps."""
        self.ms += ms
        self._slept += ms
        due = [future for at, future in self._sleepers if at <= self._slept]
        self._sleepers = [
            (at, future) for at, future in self._sleepers if at > self._slept and not future.done()
        ]
        for future in due:
            if not future.done():
                future.set_result(None)

    def suspend(self, ms: int) -> None:
        self.ms += ms
        self._suspended += ms

    def jump(self, ms: int) -> None:
        """Somebody sets the clock; nobody who sleeps has slept longer by it."""
        self.ms += ms

    @property
    def next_ms(self) -> int:
        """How long until the first of those who sleep wakes; 0: nobody sleeps."""
        waiting = [at - self._slept for at, future in self._sleepers if not future.done()]
        return min(waiting, default=0)
