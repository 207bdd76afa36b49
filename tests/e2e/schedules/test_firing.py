"""Schedules fire when they should, once, whatever the clock and the daemon go through."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.core.messages import Usage
from palyra.core.tools import Subject
from palyra.features.schedules.model import Quiet
from palyra.features.schedules.service import NewSchedule, ScheduleForecast
from palyra.models.scripted import Script, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, runs, tape, usage
from palyra.store.usage import UsageFilter
from tests.clocks import HeldClock
from tests.crash.scenarios import call
from tests.faults import FullDisk, asked, at_commit, eventually, on_full_disk, pending
from tests.inprocess import body, entries, kinds, say, session
from tests.journals import run
from tests.scheduling import add, firings, moment, pass_time, set_clock, settle, shown, timed

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WRITES = ScriptedModel(
    Script(
        {
            "look around": (
                Turn(calls=(call("fs.write", path="a.txt", content="x"),)),
                Turn(text=("ok",)),
            )
        }
    )
)


async def fired(d: Daemon, schedule_id: str) -> list[str]:
    return shown([each.due_ms for each in await firings(d, schedule_id) if each.state == "done"])


def test_each_firing_is_one_run_of_the_schedule_in_its_session(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:00"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "daily at 9", name="morning")
            assert made.upcoming_shown[0] == "Mon 2026-11-16 09:00 CET"
            assert len(made.upcoming) == 5
            await pass_time(d, clock, 2 * DAY + 2 * HOUR)
            found = await firings(d, made.schedule.schedule_id)
            assert [each.state for each in found] == ["done"] * 3
            assert shown([each.due_ms for each in found]) == [
                f"2026-11-{day} 09:00 CET" for day in (16, 17, 18)
            ]
            assert len({each.session_id for each in found}) == 1
            rows = [await d.gateway.run(OWNER, each.run_id) for each in found]
            assert {row.origin for row in rows} == {"scheduled"}
            accepted = await d.db.read(lambda tx: runs.accepted(tx, found[0].run_id))
            assert accepted.schedule_id == made.schedule.schedule_id

    run(inside())


def test_over_both_changes_of_the_clock_each_local_time_fires_once(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-03-28T12:00"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "30 2 * * *")
            await pass_time(d, clock, 2 * DAY)
            await set_clock(d, clock, moment("2026-10-24T12:00") - clock.ms)
            await pass_time(d, clock, 2 * DAY)
            # The clock's jump over the summer was no time in which it should have fired two hundred
            # times.
            found = await fired(d, made.schedule.schedule_id)
            assert found == [
                "2026-03-29 03:00 CEST",
                "2026-03-30 02:30 CEST",
                "2026-10-25 02:30 CEST",
                "2026-10-26 02:30 CET",
            ]

    run(inside())


def test_a_leap_day_is_waited_for(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2028-02-27T12:00"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "0 9 29 2 *")
            await pass_time(d, clock, 3 * DAY)
            assert await fired(d, made.schedule.schedule_id) == ["2028-02-29 09:00 CET"]
            (shown_now,) = await d.timekeeping.schedules.listing(OWNER)
            assert shown_now.upcoming_shown[0] == "Sun 2032-02-29 09:00 CET"

    run(inside())


def test_a_clock_that_is_set_back_fires_nothing_twice_and_one_that_is_set_forward_has_missed(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "0 * * * *")
            await pass_time(d, clock, HOUR)  # 9:00 has fired.
            await set_clock(d, clock, -2 * HOUR)  # It is 7:30: eight has never been, nine has.
            await pass_time(d, clock, 3 * HOUR)
            assert await fired(d, made.schedule.schedule_id) == [
                f"2026-11-16 {hour}:00 CET" for hour in ("08", "09", "10")
            ]
            await set_clock(d, clock, 5 * HOUR + 10 * MINUTE)  # It is 15:40, from 10:30.
            await pass_time(d, clock, 30 * MINUTE)
            found = await firings(d, made.schedule.schedule_id)
            assert [(each.state, each.note) for each in found[3:]] == [
                ("missed", "5 were missed"),
                ("done", ""),
            ]
            assert shown([found[-1].due_ms]) == ["2026-11-16 16:00 CET"]
            # A clock that was a year ahead for a moment has not eaten the year.
            await set_clock(d, clock, 365 * DAY)
            await pass_time(d, clock, 2 * MINUTE)
            await set_clock(d, clock, -365 * DAY)
            await pass_time(d, clock, HOUR)
            assert (await fired(d, made.schedule.schedule_id))[-1] == "2026-11-16 17:00 CET"

    run(inside())


@pytest.mark.parametrize(
    ("missed", "states"),
    [("skip", ["missed", "done"]), ("catch_up", ["done", "done", "done", "done"])],
)
def test_after_a_day_without_a_daemon_missed_times_are_left_out_or_the_last_three_made_up_for(
    tmp_path: Path, missed: str, states: list[str]
) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "0 * * * *", missed=missed)
        clock.advance(DAY)
        async with timed(tmp_path, clock) as d:
            await pass_time(d, clock, 45 * MINUTE)
            found = await firings(d, made.schedule.schedule_id)
            assert [each.state for each in found] == states
            assert shown([found[-1].due_ms]) == ["2026-11-17 09:00 CET"]
            if missed == "catch_up":
                assert shown([each.due_ms for each in found[:3]]) == [
                    f"2026-11-17 {hour}:00 CET" for hour in ("06", "07", "08")
                ]
                assert found[0].note == "caught up; 21 before it were missed"

    run(inside())


def test_a_short_absence_is_no_reason_not_to_fire(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:58"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "0 9 * * *")
        clock.advance(5 * MINUTE)
        async with timed(tmp_path, clock) as d:
            await settle(d)
            assert await fired(d, made.schedule.schedule_id) == ["2026-11-16 09:00 CET"]

    run(inside())


def test_what_is_to_happen_once_happens_once_and_is_over(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:00"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "in 20m")
        clock.advance(DAY)  # It is made up for, unless somebody said otherwise.
        async with timed(tmp_path, clock) as d:
            await pass_time(d, clock, DAY)
            assert [each.state for each in await firings(d, made.schedule.schedule_id)] == ["done"]
            assert (
                await d.timekeeping.schedules.show(OWNER, made.schedule.schedule_id)
            ).schedule.state == "done"
            with pytest.raises(InvalidInput):
                await add(d, "at 2020-01-01 09:00")

    run(inside())


@pytest.mark.parametrize(
    ("overlap", "states"),
    [
        ("skip", ["started", "skipped", "skipped"]),
        ("queue", ["started", "queued", "skipped"]),
        ("replace", ["cancelled", "cancelled", "started"]),
    ],
)
def test_a_firing_while_the_run_before_waits_is_skipped_queued_or_takes_its_place(
    tmp_path: Path, overlap: str, states: list[str]
) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock, WRITES) as d:
            made = await add(d, "0 * * * *", overlap=overlap)
            await pass_time(d, clock, 3 * HOUR)
            found = await firings(d, made.schedule.schedule_id)
            assert [each.state for each in found] == states
            if overlap == "queue":
                # It begins when the one before it has ended.
                await d.gateway.cancel(OWNER, found[0].run_id)
                await settle(d)
                assert [each.state for each in await firings(d, made.schedule.schedule_id)] == [
                    "cancelled",
                    "started",
                    "skipped",
                ]

    run(inside())


def test_in_quiet_hours_nothing_fires_and_afterwards_once(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T20:30"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "0 * * * *", quiet=Quiet("22:00", "07:00"))
            await pass_time(d, clock, 12 * HOUR)
            assert await fired(d, made.schedule.schedule_id) == [
                "2026-11-16 21:00 CET", "2026-11-17 07:00 CET", "2026-11-17 08:00 CET"]  # fmt: skip

    run(inside())


def test_what_was_not_approved_beforehand_waits_or_is_denied(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock, WRITES) as d:
            waits = await add(d, "daily at 9")
            await pass_time(d, clock, HOUR)
            (firing,) = await firings(d, waits.schedule.schedule_id)
            question = await asked(d, firing.session_id)
            assert (question.origin, question.expires_ms) == ("scheduled", 0)
            denies = await add(d, "daily at 11", ask="deny")
            await pass_time(d, clock, 2 * HOUR)
            (firing,) = await firings(d, denies.schedule.schedule_id)
            assert firing.state == "done"
            assert (await kinds(d, firing.session_id)).count("approval.resolved") == 1
            assert len(await pending(d)) == 1
            assert not (tmp_path / "work/a.txt").exists()

    run(inside())


def test_what_was_approved_beforehand_needs_no_question_and_only_there(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock, WRITES) as d:
            scope = Subject("fs.write", "path_prefix", str((tmp_path / "work").resolve()))
            made = await add(d, "daily at 9", scopes=(scope,), ask="deny")
            await pass_time(d, clock, HOUR)
            (firing,) = await firings(d, made.schedule.schedule_id)
            assert (firing.state, (tmp_path / "work/a.txt").read_text()) == ("done", "x")
            decided = [
                body(each)
                for each in await entries(d, firing.session_id)
                if each.kind == "tool.decided"
            ]
            assert [each["by"] for each in decided] == ["grant"]
            # Elsewhere it is asked about as ever, if it changes something.
            (tmp_path / "work/a.txt").unlink()
            elsewhere = await session(d)
            await say(d, elsewhere, "look around")
            assert (await asked(d, elsewhere.session_id)).request.tool == "fs.write"
            # What was taken back is not given again by the next firing.
            (grant,) = await d.db.read(lambda tx: approvals.grants_of(tx, OWNER))
            await d.db.write(lambda tx: approvals.remove_grant(tx, OWNER, grant.approval_id))
            await pass_time(d, clock, DAY)
            assert await d.db.read(lambda tx: approvals.grants_of(tx, OWNER)) == []

    run(inside())


def test_removing_a_schedule_ends_it_and_what_was_approved_for_it(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs = d.timekeeping.schedules
            scope = Subject("fs.write", "path_prefix", str(tmp_path / "work"))
            made = await add(d, "daily at 9", scopes=(scope,))
            await pass_time(d, clock, HOUR)
            assert len(await d.db.read(lambda tx: approvals.grants_of(tx, OWNER))) == 1
            await verbs.remove(OWNER, made.schedule.schedule_id)
            await pass_time(d, clock, 2 * DAY)
            assert await d.db.read(lambda tx: approvals.grants_of(tx, OWNER)) == []
            assert await d.task_verbs.listing(kind="schedule.fire") == []
            with pytest.raises(NotFound):
                await verbs.show(OWNER, made.schedule.schedule_id)

    run(inside())


def test_a_paused_schedule_does_not_fire_and_a_person_can_fire_one_by_hand(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            verbs = d.timekeeping.schedules
            made = await add(d, "0 * * * *")
            schedule_id = made.schedule.schedule_id
            await verbs.pause(OWNER, schedule_id)
            await pass_time(d, clock, 3 * HOUR)
            assert await firings(d, schedule_id) == []
            with pytest.raises(Conflict):
                await verbs.run(OWNER, schedule_id)
            with pytest.raises(Forbidden):
                await verbs.resume("user:other", schedule_id)
            await verbs.resume(OWNER, schedule_id)
            await verbs.run(OWNER, schedule_id)
            await settle(d)
            (by_hand,) = await firings(d, schedule_id)
            assert (by_hand.state, by_hand.note) == ("done", "by hand")
            told = await d.db.read(lambda tx: tape.events_between(tx, SYSTEM_TAPE, 1, 1 << 40))
            changes = [
                event.action
                for *_, event in told
                if isinstance(event, AdminChanged) and event.what == "schedule"
            ]
            assert changes == ["added", "paused", "resumed", "run"]

    run(inside())


def test_a_schedule_that_cannot_begin_or_whose_run_fails_is_told_once(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(
            tmp_path, clock, ScriptedModel(Script({"other": (Turn(text=("x",)),)}))
        ) as d:
            made = await add(d, "daily at 9", name="morning", text="nothing is set off by this")
            await pass_time(d, clock, HOUR)
            (firing,) = await firings(d, made.schedule.schedule_id)
            assert firing.state == "failed"
            told = (await d.notices.listing(OWNER)).notices
            assert [(each.about, each.text.partition(":")[0]) for each in told] == [
                ("schedule", "morning failed")
            ]
            # In words, as the run says it, and not by the code of its reason.
            why = told[0].text.partition(": ")[2]
            assert "model_" not in why
            assert len(why.split()) > 3

    run(inside())


def test_a_forecast_comes_from_the_schedules_own_runs(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            assert (await preview(d, "daily at 9")) == ScheduleForecast(firings_a_month=30), (
                "nothing is known yet"
            )
            made = await add(d, "daily at 9")
            assert made.forecast is not None
            assert (made.forecast.firings_a_month, made.forecast.runs) == (30, 0)
            await pass_time(d, clock, 2 * DAY)
            after = (await d.timekeeping.schedules.show(OWNER, made.schedule.schedule_id)).forecast
            assert after is not None
            assert after.runs == 2
            assert after.tokens_a_run > 0
            # Before it is saved: as if it were like the owner's other runs, which it says.
            often = await preview(d, "every 1m")
            assert (often.firings_a_month, often.runs, often.like) == (30 * 24 * 60, 0, 2)
            assert often.tokens_a_run == after.tokens_a_run

    run(inside())


async def preview(d: Daemon, when: str) -> ScheduleForecast:
    forecast = (
        await d.timekeeping.schedules.preview(OWNER, NewSchedule(text="x", when=when))
    ).forecast
    assert forecast is not None
    return forecast


def test_whatever_tells_a_schedules_cost_tells_the_same_with_its_subagents(tmp_path: Path) -> None:
    """Shown, listed and forecast; and what subagents use is the schedule's, also where it has a
    limit.
    """
    script = Script(
        {
            "look around": (
                Turn(calls=(call("agent.spawn", task="the errand"),)),
                Turn(text=("done",)),
            ),
            "the errand": (
                Turn(text=("looked",), usage=Usage(input_tokens=1_000, output_tokens=100)),
            ),
        }
    )

    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock, ScriptedModel(script)) as d:
            made, other = await add(d, "daily at 9"), await add(d, "daily at 23")
            schedule_id = made.schedule.schedule_id
            await pass_time(d, clock, 31 * MINUTE)
            # A run that waits for its subagent looks quiet for a moment: no more time passes until
            # both are done.
            async with asyncio.timeout(20):
                while [each.state for each in await firings(d, schedule_id)] != ["done"]:
                    await settle(d)
            one = await d.timekeeping.schedules.show(OWNER, schedule_id)
            listed = {
                each.schedule.schedule_id: each
                for each in await d.timekeeping.schedules.listing(OWNER)
            }
            told = await d.forecasts.schedule(schedule_id, principal=OWNER, times=30)
            assert one.forecast is not None
            assert one.forecast == listed[schedule_id].forecast
            assert (
                (told.runs, told.tokens)
                == (one.forecast.runs, one.forecast.tokens_a_run)
                == (1, told.tokens)
            )
            assert told.tokens > 1_100, "what the subagent used is missing"
            used = await d.db.read(lambda tx: usage.spent(tx, UsageFilter(schedule_id=schedule_id)))
            assert used.tokens == told.tokens
            before = await preview(d, "daily at 9")
            assert (before.like, before.tokens_a_run) == (1, told.tokens)
            assert [each.state for each in listed[schedule_id].firings] == ["done"]
            assert (listed[other.schedule.schedule_id].firings, told.basis) == (
                (),
                "its last 1 runs",
            )
            with pytest.raises(Forbidden):
                await d.forecasts.schedule(schedule_id, principal="user:guest", times=1)

    run(inside())


def test_a_thousand_schedules_fire_each_once_at_their_time(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock, settings="[memory]\nembeddings = false\n") as d:
            verbs = d.timekeeping.schedules
            names = [await verbs.add(OWNER, _numbered(number)) for number in range(1_000)]
            await pass_time(d, clock, HOUR + 10 * MINUTE)
            states: Counter[str] = Counter()
            for number, made in enumerate(names):
                found = await firings(d, made.schedule.schedule_id)
                states.update(each.state for each in found)
                wanted = f"2026-11-16 09:{number % 60:02} CET"
                assert shown([each.due_ms for each in found]) == (
                    [wanted] if number % 20 == 0 else []
                )
            assert states == {"done": 50}

    run(inside(), 120)


def _numbered(number: int) -> NewSchedule:
    hour = 9 if number % 20 == 0 else 18
    return NewSchedule(
        text="look around",
        when=f"{number % 60} {hour} * * *",
        zone="Europe/Vienna",
        name=f"n{number}",
        fresh=True,
    )


def test_a_changed_file_fires_once(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        folder = tmp_path / "inbox"
        folder.mkdir()
        async with timed(tmp_path, clock) as d:
            made = await add(d, f"file {folder}")
            with pytest.raises(InvalidInput):
                await add(d, f"file {tmp_path / 'home'}")
            await eventually(d.timekeeping.files.watching.is_set, "the folder is watched")
            for n in range(20):
                (folder / f"{n}.txt").write_text("x")
            await eventually(
                lambda: d.tasks.counts.ended["schedule.fire", "done"], "the schedule fires"
            )
            await settle(d)
            found = await firings(d, made.schedule.schedule_id)
            assert [(each.state, each.note) for each in found] == [("done", "a file changed")]

    run(inside())


def test_a_schedule_whose_session_was_archived_goes_on_in_another(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "daily at 9")
            await pass_time(d, clock, HOUR)
            (first,) = await firings(d, made.schedule.schedule_id)
            await d.sessions.change(OWNER, first.session_id, title=None, archived=True)
            await pass_time(d, clock, DAY)
            after = await firings(d, made.schedule.schedule_id)
            assert [each.state for each in after] == ["done", "done"]
            assert after[0].session_id != after[1].session_id

    run(inside())


def test_a_run_whose_end_could_not_be_noted_on_a_full_disk_is_noted_at_the_next_firing(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon, disk: FullDisk) -> None:
        made = await add(d, "webhook")
        schedule_id = made.schedule.schedule_id
        at_commit(d, "run.completed", disk.fill)
        await d.timekeeping.schedules.run(OWNER, schedule_id)
        await eventually(lambda: disk.failed, "something could not be written")
        await eventually(lambda: not d.runs.working, "the run is over")
        disk.full = False
        await d.db.write(lambda tx: None)
        await settle(d)
        await d.timekeeping.schedules.run(OWNER, schedule_id)
        await settle(d)
        assert [each.state for each in await firings(d, schedule_id)] == ["done", "done"]

    on_full_disk(
        tmp_path,
        {"look around": [Turn(text=("done",))]},
        scenario,
        "[memory]\nembeddings = false\n",
    )
