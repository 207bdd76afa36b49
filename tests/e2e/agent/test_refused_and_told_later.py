"""What was only to be noted when the store refused is noted when it takes it again; what broke says
so.
"""

import asyncio
from pathlib import Path

import pytest

from palyra.agent import durable_write, runs
from palyra.core.errors import Unavailable
from palyra.core.ids import OWNER
from palyra.features.schedules.service import NewSchedule
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Appended
from tests.faults import WRITING, FullDisk, at_commit, eventually, in_daemon, on_full_disk
from tests.inprocess import body, finished, say, session, until
from tests.scheduling import firings

HELLO = [Turn(text=("hello",)), Turn(text=("again",))]


def test_a_schedule_that_asks_nobody_denies_what_was_asked_while_the_disk_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_write, "RETRY_S", 0.02)

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        made = await d.timekeeping.schedules.add(
            OWNER, NewSchedule(text="write", when="daily at 9", ask="deny")
        )
        at_commit(d, "approval.requested", disk.fill)
        await d.timekeeping.schedules.run(OWNER, made.schedule.schedule_id)
        await eventually(lambda: disk.failed, "the disk refused")
        disk.full = False
        (firing,) = await firings(d, made.schedule.schedule_id)
        resolved = await until(d, firing.session_id, "approval.resolved")
        assert body(resolved)["decision"] == "deny"

    on_full_disk(tmp_path, WRITING, scenario)


def test_a_budget_that_was_used_up_while_the_disk_was_full_is_told_of_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RETRY_S", 0.02)

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        once = [disk.fill]

        def fills(appended: list[Appended]) -> None:
            if once and any(entry.kind == "model.replied" for entry in appended):
                once.pop()()

        where = await session(d)
        # Before the budgets hear of it: what they have to tell is on its way to the disk at once.
        d.gateway.on_commit.connect(fills, first=True)
        run = await say(d, where, "hi")
        await eventually(lambda: disk.full, "the disk is full")
        # The writer works in order: once these are refused, what the budgets had to tell is, too.
        # They read something before they tell it.
        for _ in range(10):
            await d.db.read(lambda tx: None)
            with pytest.raises(Unavailable):
                await d.notices.tell("budget", "last in line", "refused")
        disk.full = False
        await finished(d, run)
        # Of the disk the owner hears by itself, of the budget not yet.
        assert "budget" not in [each.about for each in (await d.notices.listing(OWNER)).notices]
        await finished(d, await say(d, where, "hi"))
        await d.db.write(lambda tx: None)
        while len(told := {each.about for each in (await d.notices.listing(OWNER)).notices}) < 2:
            await d.db.write(lambda tx: None)
        assert told == {"budget", "incident"}

    on_full_disk(
        tmp_path,
        HELLO,
        scenario,
        '[budgets.limits.mine]\nper = "principal"\ntokens = 100_000\nwarn_at = 0.01\n',
    )


def test_a_run_is_replayed_once_however_many_ask_at_once(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        await finished(d, run)
        # None of them comes to its end before all have asked.
        async with d.replays._slot:
            await asyncio.gather(*(d.replays.start(OWNER, run.run_id) for _ in range(3)))
            at_it = [
                task
                for task in asyncio.all_tasks()
                if getattr(task.get_coro(), "__name__", "") == "_replay"
            ]
            assert len(at_it) == 1
        assert (await d.replays.get(OWNER, run.run_id, 20_000)).state == "done"

    in_daemon(tmp_path, HELLO, scenario)
