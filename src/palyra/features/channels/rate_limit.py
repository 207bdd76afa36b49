"""How fast a channel may send: so many a second in all, and so far apart in one conversation.
Waiting is by the given clock.

Measured by ticks: a clock on the wall that is set back must not keep everybody waiting until it is
as late again.
"""

import math

from palyra.features.channels.contract import ConnectorLimits
from palyra.system.clock import Clock

_MOST_REMEMBERED = 10_000


class SendRate:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # From when on the next message may go, in all and in each conversation, in milliseconds.
        self._next_ms = -math.inf
        self._next_in: dict[str, float] = {}

    async def wait(self, limits: ConnectorLimits, conversation: str) -> None:
        """Until it is this message's turn. Whoever waits has its turn already, so that nobody
        overtakes.
        """
        now = float(self._clock.ticks_ms())
        # A second's worth may go at once, after a pause.
        earliest = max(self._next_ms, now - 1_000)
        turn = max(now, earliest, self._next_in.get(conversation, 0.0))
        self._next_ms = earliest + 1_000 / max(limits.per_second, 0.001)
        if limits.apart_ms:
            if len(self._next_in) > _MOST_REMEMBERED:
                self._next_in = {name: at for name, at in self._next_in.items() if at > now}
            self._next_in[conversation] = turn + limits.apart_ms
        if turn > now:
            await self._clock.sleep(int(turn - now) + 1)
