"""Waiting for a lull: what nobody waits for keeps out of the way of what somebody waits for.

The rule: it is put off, never given up. However busy it is, whoever waits here goes on after a
while.
"""

import asyncio
import math

_CALM_S = 0.25
_PATIENCE_S = 5.0


class IdleGate:
    """`calm_s`: for how long no run must have been worked on. `patience_s`: who waits for that
    waits no longer than this.
    """

    def __init__(self, *, calm_s: float = _CALM_S, patience_s: float = _PATIENCE_S) -> None:
        self._calm_s = calm_s
        self._patience_s = patience_s
        self._at_work = 0
        self._over_s = -math.inf
        self._over = asyncio.Event()
        self._over.set()

    def begun(self) -> None:
        """A run is being worked on from now on."""
        self._at_work += 1
        self._over.clear()

    def ended(self) -> None:
        self._at_work -= 1
        if not self._at_work:
            self._over_s = asyncio.get_running_loop().time()
            self._over.set()

    async def wait(self) -> None:
        """Wait until a lull has come, or patience is at its end."""
        try:
            async with asyncio.timeout(self._patience_s):
                while not self._calm():
                    await self._over.wait()
                    await asyncio.sleep(max(0.0, self._left_s()))
        except TimeoutError:
            return

    def _calm(self) -> bool:
        return not self._at_work and self._left_s() <= 0

    def _left_s(self) -> float:
        return self._over_s + self._calm_s - asyncio.get_running_loop().time()
