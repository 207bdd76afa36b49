"""Somebody sets the clock back by an hour: what only measures how long something lasts does not wait for that hour."""

import asyncio

from palyra.channels.contract import Limits
from palyra.runtime.channels.pace import Pace
from tests.clocks import HeldClock

HOUR_MS = 3_600_000


def test_a_channel_goes_on_sending_at_its_pace() -> None:
    async def scenario() -> None:
        clock = HeldClock()
        pace, limits = Pace(clock), Limits(per_second=1.0, apart_ms=500)
        await pace.wait(limits, "a")
        clock.advance(2_000)
        clock.jump(-HOUR_MS)
        await asyncio.wait_for(pace.wait(limits, "a"), 5)
        assert clock.naps == 0

    asyncio.run(scenario())
