"""Wrong credentials, for the tape: by address, at most one entry a minute for each, and never the
credential.

Anybody can send wrong ones, so what they leave behind is bounded: many addresses in one minute are
one entry.
"""

import asyncio
from collections.abc import Callable

from palyra.core.events import AccessRefused

_MOST_ADDRESSES = 32


class AuthFailureLog:
    def __init__(
        self, record: Callable[[list[AccessRefused]], object], *, every_s: float = 60.0
    ) -> None:
        self._record = record
        self._every_s = every_s
        # Attempts by address since its last entry. Who is here had one less than a minute ago.
        self._since: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def note(self, address: str) -> None:
        if address in self._since:
            self._since[address] += 1
        elif len(self._since) < _MOST_ADDRESSES:
            self._since[address] = 0
            self._record([AccessRefused(address=address, attempts=1)])
        else:
            self._since[""] = self._since.get("", 0) + 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def close(self) -> None:
        """Tell what was counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell()

    def _look(self) -> None:
        self._timer = None
        # Who came again is counted for another minute; who did not is forgotten.
        self._since = dict.fromkeys(self._tell(), 0)
        if self._since:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def _tell(self) -> list[str]:
        again = [(address, attempts) for address, attempts in self._since.items() if attempts]
        if again:
            self._record(
                [AccessRefused(address=address, attempts=attempts) for address, attempts in again]
            )
        self._since = {}
        return [address for address, _ in again]
