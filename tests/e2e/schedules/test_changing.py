"""A schedule that is changed stays the same schedule: other times and words, one history."""

from pathlib import Path

import pytest

from palyra.core.errors import Forbidden
from palyra.core.ids import OWNER
from palyra.core.tools import Subject
from palyra.features.schedules.service import NewSchedule, hook_secret
from palyra.features.vault.service import Vault
from palyra.store import approvals, verify_rows
from tests.clocks import HeldClock
from tests.journals import run
from tests.scheduling import add, firings, moment, pass_time, shown, timed

HOUR = 3_600_000
DAY = 24 * HOUR


def wanted(when: str, **more: object) -> NewSchedule:
    return NewSchedule(
        **{"text": "look around", "zone": "Europe/Vienna", **more, "when": when}  # type: ignore[arg-type]
    )


def test_it_fires_at_the_new_times_and_keeps_its_history_and_session(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs = d.timekeeping.schedules
            made = await add(d, "daily at 9")
            await pass_time(d, clock, HOUR)
            name = made.schedule.schedule_id
            changed = await verbs.change(OWNER, name, wanted("daily at 18", name="evening"))
            assert (changed.schedule.name, changed.schedule.created_ms) == (
                "evening",
                made.schedule.created_ms,
            )
            await pass_time(d, clock, DAY)
            found = await firings(d, name)
            assert shown([each.due_ms for each in found]) == [
                "2026-11-16 09:00 CET",
                "2026-11-16 18:00 CET",
            ]
            assert len({each.session_id for each in found}) == 1
            assert await d.db.read(lambda tx: list(verify_rows.wrong_rows(tx))) == []
            with pytest.raises(Forbidden):
                await verbs.change("guest", name, wanted("daily at 7"))

    run(inside())


def test_a_paused_one_stays_paused_and_a_rhythm_is_not_set_back(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs = d.timekeeping.schedules
            name = (await add(d, "every 2h")).schedule.schedule_id
            await pass_time(d, clock, HOUR)
            again = await verbs.change(OWNER, name, wanted("every 2h", name="rounds"))
            assert shown([again.schedule.next_ms]) == ["2026-11-16 10:30 CET"]
            await verbs.pause(OWNER, name)
            paused = await verbs.change(OWNER, name, wanted("every 3h"))
            assert (paused.schedule.state, paused.schedule.next_ms) == ("paused", 0)
            await pass_time(d, clock, DAY)
            assert await firings(d, name) == []
            assert await d.db.read(lambda tx: list(verify_rows.wrong_rows(tx))) == []

    run(inside())


def test_what_it_may_do_follows_also_in_the_session_that_it_goes_on_in(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs = d.timekeeping.schedules
            scope = Subject("fs.write", "path_prefix", str(tmp_path / "work"))
            other = Subject("fs.patch", "path_prefix", str(tmp_path / "work"))
            name = (await add(d, "daily at 9", scopes=(scope,))).schedule.schedule_id
            await pass_time(d, clock, HOUR)
            await verbs.change(OWNER, name, wanted("daily at 9", scopes=(other,)))
            held = await d.db.read(lambda tx: approvals.grants_of(tx, OWNER))
            assert [each.subject for each in held] == [other]
            assert await d.db.read(lambda tx: list(verify_rows.wrong_rows(tx))) == []
            await verbs.change(OWNER, name, wanted("daily at 9"))
            assert await d.db.read(lambda tx: approvals.grants_of(tx, OWNER)) == []

    run(inside())


def test_a_webhook_keeps_its_secret_until_it_is_none(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs, vault = d.timekeeping.schedules, d.get(Vault)

            async def secrets() -> list[str]:
                return [each.name for each in (await vault.look(OWNER)).secrets]

            name = (await add(d, "daily at 9")).schedule.schedule_id
            hooked = await verbs.change(OWNER, name, wanted("webhook"))
            assert len(hooked.secret) > 30
            assert await secrets() == [hook_secret(name)]
            again = await verbs.change(OWNER, name, wanted("webhook", name="orders"))
            assert (again.secret, await secrets()) == ("", [hook_secret(name)])
            await verbs.change(OWNER, name, wanted("daily at 9"))
            assert await secrets() == []

    run(inside())
