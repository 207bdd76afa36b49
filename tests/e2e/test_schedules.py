"""Schedules fire when they should, once, whatever the clock and the daemon go through."""

from pathlib import Path

from palyra.domain.ids import OWNER
from tests.clocks import HeldClock
from tests.journals import run
from tests.scheduling import add, firings, moment, pass_time, shown, timed

HOUR = 3_600_000
DAY = 24 * HOUR


def test_each_firing_is_one_run_of_the_schedule_in_its_session(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:00"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "daily at 9", name="morning")
            assert [each[:22] for each in made.upcoming_shown[:2]] == ["Mon 2026-11-16 09:00 CET"[:22], "Tue 2026-11-17 09:00 CET"[:22]]
            await pass_time(d, clock, 2 * DAY + 2 * HOUR)
            found = await firings(d, made.schedule.schedule_id)
            assert [each.state for each in found] == ["done"] * 3
            assert shown([each.due_ms for each in found]) == [f"2026-11-{day} 09:00 CET" for day in (16, 17, 18)]
            assert len({each.session_id for each in found}) == 1
            rows = [await d.gateway.run(OWNER, each.run_id) for each in found]
            assert {row.origin for row in rows} == {"scheduled"}

    run(inside(), 120)
