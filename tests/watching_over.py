"""A daemon whose clock a test can set forward, and the three modes that a fault is taken
through.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.health.rows import Incident
from palyra.features.health.watchdog import Mode
from palyra.serve.wiring.daemon import Daemon
from palyra.system.clock import Clock
from tests.inprocess import daemon, entries
from tests.journals import run as run_loop

STEP_MS = 60_000
LONGEST_S = 20.0


class JumpingClock(Clock):
    """The wall clock, set forward as a test likes."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def jump(self, ms: int) -> None:
        self.ahead_ms += ms


Scenario = Callable[[Daemon, JumpingClock], Awaitable[None]]


def watched(folder: Path, model: Any, scenario: Scenario, settings: str = "") -> None:
    """Run a scenario in a daemon. Its own timer is slower than any test, so that only the test
    looks.
    """

    async def inside() -> None:
        clock = JumpingClock()
        quiet = "" if "[healing]" in settings else "\n[healing]\nmode = 'disabled'\n"
        async with daemon(folder, model, settings + quiet, clock=clock) as d:
            await scenario(d, clock)

    run_loop(inside())


def set_mode(d: Daemon, mode: Mode) -> None:
    d.watchdog.use(msgspec.structs.replace(d.watchdog.settings, mode=mode))


async def passes(d: Daemon, clock: JumpingClock, ms: int) -> None:
    """Time goes by, and the watchdog looks once a minute, at its beginning and at its end too."""
    await d.watchdog.look()
    while ms > 0:
        clock.jump(min(STEP_MS, ms))
        ms -= STEP_MS
        await d.watchdog.look()


async def incidents(d: Daemon) -> list[Incident]:
    return (await d.incidents.listing()).incidents


async def told(d: Daemon) -> list[str]:
    return [each.text for each in (await d.notices.listing(OWNER)).notices]


async def kinds(d: Daemon) -> list[str]:
    """What the system's tape says of incidents, in order."""
    return [
        entry.kind for entry in await entries(d, SYSTEM_TAPE) if entry.kind.startswith("incident.")
    ]


async def through_the_modes(
    d: Daemon,
    clock: JumpingClock,
    domain: str,
    mended: Callable[[], Awaitable[bool]],
    *,
    window_ms: int = 0,
) -> Incident:
    """A fault that is there already: left alone, then only reported, then mended; one incident and
    one notice in all.
    """
    set_mode(d, "disabled")
    await passes(d, clock, window_ms)
    assert await incidents(d) == []
    set_mode(d, "observe_only")
    await passes(d, clock, window_ms)
    (seen,) = await incidents(d)
    assert (seen.domain, seen.closed_ms, seen.tried) == (domain, 0, ()), seen
    await passes(d, clock, 0)
    assert not await mended(), "it was mended, though only to be reported"
    set_mode(d, "auto")
    await d.watchdog.look()
    async with asyncio.timeout(LONGEST_S):
        while not await mended():  # noqa: ASYNC110  processes end when they end
            await asyncio.sleep(0.01)
    await d.watchdog.look()
    (over,) = await incidents(d)
    assert over.incident_id == seen.incident_id
    assert over.closed_ms, f"it is still open: {over}"
    assert [each.result for each in over.tried] == ["done"] * len(over.tried) != []
    assert len(await told(d)) == 1
    assert await kinds(d) == [
        "incident.opened",
        *["incident.tried"] * 2 * len(over.tried),
        "incident.closed",
    ]
    return over
