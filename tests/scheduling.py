"""A daemon with a clock in the test's hands, and schedules in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from palyra.core.ids import OWNER
from palyra.features.schedules import cron, rows
from palyra.features.schedules import model as schedules_model
from palyra.features.schedules.model import Firing
from palyra.features.schedules.service import NewSchedule, ShownSchedule
from palyra.models.scripted import Script, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import tasks
from tests.clocks import HeldClock
from tests.inprocess import daemon

VIENNA = ZoneInfo("Europe/Vienna")


def moment(text: str, zone: ZoneInfo = VIENNA) -> int:
    """A wall clock's time, as `2026-03-29T09:00`."""
    return cron.moment_of(datetime.fromisoformat(text), zone)


def shown(moments: list[int]) -> list[str]:
    return [schedules_model.shown(each, "Europe/Vienna")[4:] for each in moments]


@asynccontextmanager
async def timed(
    folder: Path, clock: HeldClock, model: Any = None, settings: str = ""
) -> AsyncIterator[Daemon]:
    answering = (
        ScriptedModel(Script({"look around": (Turn(text=("done",)),)})) if model is None else model
    )
    async with daemon(folder, answering, settings, clock=clock) as opened:
        yield opened


async def add(d: Daemon, when: str, **more: Any) -> ShownSchedule:
    new = NewSchedule(**{"text": "look around", "zone": "Europe/Vienna", **more, "when": when})
    return await d.timekeeping.schedules.add(OWNER, new)


async def firings(d: Daemon, schedule_id: str) -> list[Firing]:
    """Oldest first."""
    return list(reversed(await d.db.read(lambda tx: rows.firings(tx, schedule_id, 10_000))))


async def settle(d: Daemon) -> None:
    """Until the queue has nothing ready and no run is being worked on."""
    async with asyncio.timeout(100):
        while True:
            await d.tasks.settled()
            quiet = not d.runs.working
            # What the end of a run causes was handed over before it; after this it is known to the
            # queue.
            await d.db.write(lambda tx: None)
            if quiet and d.tasks.idle and not d.runs.working:
                return
            await asyncio.sleep(0.002)


async def set_clock(d: Daemon, clock: HeldClock, by_ms: int) -> None:
    """Somebody sets the clock on the wall; within a minute or so the daemon notices."""
    clock.jump(by_ms)
    await pass_time(d, clock, 61_000)


async def pass_time(d: Daemon, clock: HeldClock, ms: int) -> None:
    """Let time pass, from one task that becomes ready to the next, and everything happen that
    happens meanwhile.
    """
    end = clock.ticks_ms() + ms
    await settle(d)
    while clock.ticks_ms() < end:
        due_ms = (
            await d.db.read(lambda tx: tasks.next_moment(tx, d.tasks.kinds, ())) - clock.now_ms()
        )
        # A clock that was set wakes nobody: what is due since is seen when somebody wakes anyway.
        clock.advance(min(end - clock.ticks_ms(), due_ms if due_ms > 0 else max(1, clock.next_ms)))
        await asyncio.sleep(0)
        await settle(d)
