"""What one failure, one cancel or one clock that was set must not leave behind for everybody
else.
"""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palyra.agent.runs import end
from palyra.agent.submit import Submission
from palyra.core.budgets import Key, Spender
from palyra.core.errors import Unavailable
from palyra.core.events import RunCancelled
from palyra.core.ids import OWNER
from palyra.features.budgets import ledger
from palyra.features.channels import loopback
from palyra.features.channels.model import Inbound, Sender
from palyra.features.schedules import rows as schedules_rows
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import usage
from palyra.store.usage import UsageFilter
from tests.chatting import chat
from tests.clocks import HeldClock
from tests.crash.scenarios import call
from tests.faults import (
    WRITING,
    FullDisk,
    HeldWriter,
    at_commit,
    ends,
    eventually,
    held_writer,
    in_daemon,
    long_and_next,
    on_full_disk,
    permit_all,
    reached,
    row,
)
from tests.inprocess import body, entries, session, until
from tests.journals import run as run_loop
from tests.scheduling import add, firings, moment, pass_time, timed

HELLO = [Turn(text=("hello",))]


def spawn(task: str, **more: Any) -> Any:
    return call("agent.spawn", task=task, **more)


def test_a_run_whose_next_subagent_is_refused_is_woken_by_those_that_still_work(
    tmp_path: Path,
) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await d.gateway.submit(OWNER, where.session_id, Submission(text="begin"))
        # A place is free then, and the fifth is refused while three others work.
        first = await until(d, where.session_id, "tool.finished")
        refused = await until(d, where.session_id, "tool.finished", after=first.seq)
        assert (body(refused)["outcome"], (await row(d, run.run_id)).state) == (
            "error",
            "in_progress",
        )
        hold.released.set()
        assert body(await ends(d, where.session_id, run.run_id))["text"] == "all"

    slow = (Turn(text=("done",), hold="h"),)
    calls = (
        spawn("quick"),
        *(spawn(f"slow {number}") for number in range(3)),
        spawn("odd", tools=["no.such"]),
    )
    script = {"begin": (Turn(calls=calls), Turn(text=("all",))), "quick": (Turn(text=("done",)),)}
    script |= {f"slow {number}": slow for number in range(3)}
    permit_all(tmp_path)
    in_daemon(tmp_path, ScriptedModel(Script(script), holds={"h": hold}), scenario)


def test_a_run_that_ends_while_others_are_taken_up_again_does_not_stop_the_start(
    tmp_path: Path,
) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        one, two = await session(d), await session(d)
        first = await d.gateway.submit(OWNER, one.session_id, Submission(text="long"))
        second = await d.gateway.submit(OWNER, two.session_id, Submission(text="long"))
        await reached(hold.reached)
        # As a parent does that gives up as soon as it goes on, and takes its subagents with it.
        ending = partial(
            end, run_id=second.run_id, late=[], ending=RunCancelled(reason="not needed")
        )
        at_commit(d, "run.resumed", lambda: d.db.write(ending))
        await d.runs.recover()
        assert (await row(d, second.run_id)).state == "cancelled"
        hold.released.set()
        assert (await ends(d, one.session_id, first.run_id)).kind == "run.completed"

    in_daemon(tmp_path, long_and_next(hold), scenario)


def test_a_call_that_is_cancelled_over_a_slow_store_has_a_result_all_the_same(
    tmp_path: Path,
) -> None:
    os.makedirs(tmp_path / "work")
    os.mkfifo(tmp_path / "work/gate")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await d.gateway.submit(OWNER, where.session_id, Submission(text="begin"))
        started = await until(d, where.session_id, "tool.started")
        with held_writer(d) as writer:
            cancelling = asyncio.create_task(d.gateway.cancel(OWNER, run.run_id))
            # What the run's own task has to say waits too, and whoever cancels does not wait for it
            # any longer.
            await writer.handed_over(2)
        assert (await cancelling).state == "cancelled"
        (result,) = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "tool.finished"
        ]
        assert (result["call_id"], result["outcome"]) == (body(started)["call_id"], "cancelled")

    permit_all(tmp_path)
    in_daemon(
        tmp_path, [Turn(calls=(call("test.once", path="a.txt", line="x", hold="gate"),))], scenario
    )


def test_what_a_cancelled_run_spent_is_counted_for_its_schedule(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where, schedule_id = await session(d), d.clock.new_id()
        run = await d.gateway.submit(
            OWNER, where.session_id, Submission(text="long"), schedule_id=schedule_id
        )
        await reached(hold.reached)
        with held_writer(d) as writer:
            hold.released.set()
            # The answer is on its way to the tape when the run is cancelled.
            await writer.handed_over(1)
            cancelling = asyncio.create_task(d.gateway.cancel(OWNER, run.run_id))
            await writer.handed_over(2)
        await cancelling
        stored = await d.db.read(partial(usage.spent, asked=UsageFilter(schedule_id=schedule_id)))
        (state,) = await d.budgets.states(Spender(principal=OWNER, schedule_id=schedule_id))
        assert stored.tokens > 0
        assert state.spent == stored.tokens

    limit = '[budgets.limits.each]\nper = "schedule"\nevery = "ever"\ntokens = 1_000_000\n'
    in_daemon(tmp_path, long_and_next(hold), scenario, limit)


def test_two_changes_of_rules_at_once_both_hold(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path, HELLO) as c:
            channels = c.daemon.channels
            changes: list[dict[str, Any]] = [{"per_minute": 7}, {"waiting": 9}]
            await asyncio.gather(*(channels.change_rules(OWNER, "chat", each) for each in changes))
            rules = (await channels.status("chat")).rules
            assert (rules.per_minute, rules.waiting) == (7, 9)

    run_loop(scenario())


def test_a_name_that_is_no_text_does_not_stop_a_channel(tmp_path: Path) -> None:
    """JSON can carry half of a character; whoever calls themselves so must not keep others from
    being heard.
    """

    async def scenario() -> None:
        async with chat(tmp_path, HELLO) as c:
            await c.pair("anna")
            eve = Sender("eve", "bad \ud800 name", verified=True)
            c.platform.say(
                Inbound(
                    native_id="odd", conversation="dm-eve", sender=eve, text="hi", is_direct=True
                )
            )
            c.direct("anna", "hi")
            assert await c.answers("dm-anna") == ["hello"]
            assert c.platform.connections == 1

    run_loop(scenario())


def test_what_is_held_for_a_moment_is_not_held_longer_when_the_clock_is_set_back(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with chat(tmp_path, HELLO, quiet_ms=1_500) as c:
            await c.pair("anna")
            held, real = HeldClock(c.daemon.clock.now_ms()), c.daemon.clock
            real.now_ms, real.ticks_ms, real.sleep = held.now_ms, held.ticks_ms, held.sleep  # type: ignore[method-assign]
            await c.seen(c.direct("anna", "hi"))
            held.jump(-3_600_000)
            held.advance(1_500)
            assert await c.answers("dm-anna") == ["hello"]

    run_loop(scenario())


def test_a_subagent_that_never_came_about_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run_id = d.clock.new_id()

        def end_it() -> None:
            # It ends in the commit that would have begun its subagent.
            writer.hold()
            d.db.write(
                partial(end, run_id=run_id, late=[], ending=RunCancelled(reason="not needed"))
            )

        writer = HeldWriter(d)
        at_commit(d, "tool.decided", end_it)
        await d.gateway.submit(OWNER, where.session_id, Submission(text="begin", run_id=run_id))
        await writer.handed_over(2)
        writer.release()
        assert (await ends(d, where.session_id, run_id)).kind == "run.cancelled"
        await eventually(lambda: not d.runs.working, "nobody works on it")
        assert d.children._awaited == {}

    permit_all(tmp_path)
    in_daemon(tmp_path, [Turn(calls=(spawn("never"),))], scenario)


def test_what_is_reserved_is_held_also_when_accounts_are_being_forgotten(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await d.budgets.states(Spender(principal=OWNER))
        for number in range(ledger._MOST_ACCOUNTS - 1):
            d.budgets.ledger.begin(Key(per="session", who=f"{number}", every="ever", since_ms=0))
        run = await d.gateway.submit(OWNER, where.session_id, Submission(text="long"))
        await reached(hold.reached)
        (mine,) = await d.budgets.states(Spender(principal=OWNER))
        assert mine.reserved > 0
        hold.released.set()
        await ends(d, where.session_id, run.run_id)

    limits = '[budgets]\ntokens = 1_000_000\n[budgets.limits.mine]\nper = "principal"\ntokens = 1_000_000\n'
    in_daemon(tmp_path, long_and_next(hold), scenario, limits)


def test_a_schedule_that_cannot_begin_leaves_nothing_to_be_denied(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(tmp_path, clock) as d:
            made = await add(d, "daily at 9", ask="deny")
            gone = replace(made.schedule, model="gone/one")
            await d.db.write(partial(schedules_rows.save, schedule=gone))
            await pass_time(d, clock, 3_600_000)
            (firing,) = await firings(d, gone.schedule_id)
            assert firing.state == "failed"
            assert d.timekeeping.scheduler._denying == set()

    run_loop(inside())


def test_an_approval_times_out_by_the_clock_on_the_wall_also_when_that_is_set(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        clock = HeldClock()
        async with timed(tmp_path, clock, WRITING) as d:
            where = await session(d)
            await d.gateway.submit(OWNER, where.session_id, Submission(text="write"))
            await until(d, where.session_id, "approval.requested")
            # Then the queue sleeps: while it looks, it would sleep only after the time that is let
            # pass here.
            await asyncio.wait_for(d.tasks.settled(), 20)
            clock.jump(3_600_000)
            # Within minutes somebody notices, or at once when a task comes.
            clock.advance(300_000)
            resolved = await until(d, where.session_id, "approval.resolved")
            assert body(resolved)["decision"] == "expired"

    run_loop(inside())


def test_a_listener_that_fails_keeps_nobody_else_from_hearing(tmp_path: Path) -> None:
    def fails(appended: object) -> None:
        raise KeyError("a defect")

    async def scenario(d: Daemon) -> None:
        d.gateway.on_commit.connect(fails, first=True)
        where = await session(d)
        run = await d.gateway.submit(OWNER, where.session_id, Submission(text="hi"))
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"

    in_daemon(tmp_path, HELLO, scenario)


def test_that_the_clock_was_set_is_told_again_to_who_could_not_hear_it(tmp_path: Path) -> None:
    async def inside() -> None:
        clock, heard = HeldClock(), list[int]()

        async def told(by_ms: int) -> None:
            heard.append(by_ms)
            if len(heard) == 1:
                raise Unavailable("the disk is full")

        async with timed(tmp_path, clock) as d:
            d.tasks.on_jump.connect(told, first=True)
            clock.jump(-3_600_000)
            d.tasks.look(d.tasks.kinds)
            await eventually(lambda: len(heard) == 1, "it was told")
            await d.db.write(lambda tx: None)
            clock.advance(1_000)
            await eventually(lambda: len(heard) == 2, "it was told again")
            assert heard == [-3_600_000] * 2

    run_loop(inside())


def test_notices_are_carried_once_the_store_takes_where_to(tmp_path: Path) -> None:
    room = f"{tmp_path}/chat"
    loopback.forget(room)

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        disk.fill()
        with pytest.raises(Unavailable):
            await d.channels._telling.use("chat/room")
        disk.full = False
        await d.channels._telling.use("chat/room")
        await d.notices.tell("budget", "new", "there is news")
        await loopback.platform(room).until(lambda platform: bool(platform.posted), 20)

    on_full_disk(
        tmp_path,
        HELLO,
        scenario,
        f'[channels.chat]\nkind = "loopback"\nsettings = ["platform={room}"]\n',
    )
