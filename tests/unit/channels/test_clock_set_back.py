"""Somebody sets the clock back by an hour: what only measures how long something lasts does not
wait for that hour.
"""

import asyncio

from palyra.features.channels.contract import ConnectorLimits
from palyra.features.channels.outbox import SendRate
from palyra.models.reliability import Breaker
from tests.clocks import HeldClock

HOUR_MS = 3_600_000


def test_a_channel_goes_on_sending_at_its_pace() -> None:
    async def scenario() -> None:
        clock = HeldClock()
        pace, limits = SendRate(clock), ConnectorLimits(per_second=1.0, apart_ms=500)
        await pace.wait(limits, "a")
        clock.advance(2_000)
        clock.jump(-HOUR_MS)
        await asyncio.wait_for(pace.wait(limits, "a"), 30)
        assert clock.naps == 0

    asyncio.run(scenario())


def test_a_provider_rests_no_longer_than_it_was_given() -> None:
    breaker = Breaker(threshold=1, cooldown_ms=30_000)
    breaker.failed("overloaded", 2 * HOUR_MS)
    assert (breaker.is_open(2 * HOUR_MS), breaker.allows(2 * HOUR_MS + 29_999)) == (True, False)
    assert (breaker.is_open(HOUR_MS), breaker.allows(HOUR_MS)) == (False, True)
