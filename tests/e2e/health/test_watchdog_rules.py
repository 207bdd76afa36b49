"""What the watchdog does with what it finds: tries, gives up, survives a crash, and concludes
nothing from what it cannot see.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from palyra.core.errors import Unavailable
from palyra.features.health.watchdog import HealthFinding, LookTime, Remedy
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring.daemon import Daemon
from tests.clocks import HeldClock
from tests.faults import eventually, held_writer, reached
from tests.inprocess import daemon
from tests.journals import run as run_loop
from tests.watching_over import JumpingClock, incidents, kinds, set_mode, told, watched


class Thing:
    """Something that can be broken, with a remedy of the test's own."""

    def __init__(self, remedy: Callable[[], Awaitable[str]] | None = None) -> None:
        self.broken = True
        self.certain = True
        self.seen = True
        self.tries = 0
        self._remedy = remedy or self.mend

    async def mend(self) -> str:
        self.tries += 1
        self.broken = False
        return "mended"

    async def look(self, moment: LookTime) -> list[HealthFinding]:
        if not self.seen:
            raise Unavailable("it cannot be seen")
        remedy = Remedy("mend it", self._remedy)
        found = HealthFinding(
            "thing:1", "connector", "the thing is broken", remedies=(remedy,), certain=self.certain
        )
        return [found] if self.broken else []


def test_a_remedy_that_fails_three_times_is_given_up_and_told(tmp_path: Path) -> None:
    tries = 0

    async def fails() -> str:
        nonlocal tries
        tries += 1
        raise (Unavailable("it does not want to") if tries < 3 else RuntimeError("and now this"))

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        d.watchdog.sources["thing"] = Thing(fails).look
        set_mode(d, "auto")
        for _ in range(8):
            await d.watchdog.look()
        (incident,) = await incidents(d)
        assert [(each.remedy, each.result) for each in incident.tried] == [
            ("mend it", "failed")
        ] * 3 + [("escalate", "done")]
        assert [each.detail for each in incident.tried[:3]] == ["it does not want to"] * 2 + [
            "RuntimeError: and now this"
        ]
        assert (incident.severity, incident.closed_ms, tries) == ("error", 0, 3)
        assert len(await told(d)) == 2

    watched(tmp_path, [], scenario)


def test_a_remedy_that_runs_and_does_not_help_is_given_up_too(tmp_path: Path) -> None:
    async def useless() -> str:
        return "did something"

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        thing = Thing(useless)
        d.watchdog.sources["thing"] = thing.look
        set_mode(d, "auto")
        for _ in range(6):
            await d.watchdog.look()
        (incident,) = await incidents(d)
        assert [each.result for each in incident.tried] == ["done"] * 4
        assert incident.tried[-1].remedy == "escalate"
        thing.broken = False
        await d.watchdog.look()
        (over,) = await incidents(d)
        assert over.closed_ms

    watched(tmp_path, [], scenario)


@pytest.mark.parametrize("effect", [False, True], ids=["before its effect", "after its effect"])
def test_a_crash_in_the_middle_of_a_remedy_is_a_try_that_failed(
    tmp_path: Path, effect: bool
) -> None:
    """The files are copied at that moment: that is what the next daemon finds after a power cut."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()

    async def scenario() -> None:
        begun, never = asyncio.Event(), asyncio.Event()

        async def hangs() -> str:
            begun.set()
            await never.wait()
            return "never"

        async with daemon(first, [], "[healing]\nmode = 'auto'\n") as d:
            d.watchdog.sources["thing"] = Thing(hangs).look
            looking = asyncio.create_task(d.watchdog.look())
            await reached(begun)
            # A power cut takes all files in one moment: nobody writes while they are copied.
            with held_writer(d):
                shutil.copytree(first / "home", second / "home")
            never.set()
            await looking
        async with daemon(second, [], "[healing]\nmode = 'auto'\n") as d:
            thing = Thing()
            thing.broken = not effect
            d.watchdog.sources["thing"] = thing.look
            await d.watchdog.look()
            (incident,) = await incidents(d)
            assert incident.closed_ms
            assert len(await told(d)) == 1
            if effect:
                assert thing.tries == 0
                assert "the daemon stopped while it tried to mend it" in incident.outcome
            else:
                assert thing.tries == 1
                assert [(each.result, each.detail) for each in incident.tried] == [
                    ("failed", "the daemon stopped while this was tried"),
                    ("done", "mended"),
                ]

    run_loop(scenario())


def test_nothing_is_closed_because_nobody_could_look(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        thing = Thing()
        d.watchdog.sources["thing"] = thing.look
        set_mode(d, "observe_only")
        await d.watchdog.look()
        thing.seen = False
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened"]
        thing.seen, thing.broken = True, False
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened", "incident.closed"]

    watched(tmp_path, [], scenario)


def test_what_is_not_certain_opens_nothing_and_closes_nothing(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        thing = Thing()
        thing.certain = False
        d.watchdog.sources["thing"] = thing.look
        set_mode(d, "auto")
        await d.watchdog.look()
        assert await incidents(d) == []
        set_mode(d, "observe_only")
        thing.certain = True
        await d.watchdog.look()
        thing.certain = False
        set_mode(d, "auto")
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened"]
        assert thing.tries == 0

    watched(tmp_path, [], scenario)


def test_an_incident_that_somebody_else_opened_is_theirs_to_close(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        await d.incidents.open("worker", "elsewhere:7", "something else is gone")
        set_mode(d, "auto")
        await d.watchdog.look()
        assert [each.closed_ms for each in await incidents(d)] == [0]

    watched(tmp_path, [], scenario)


def test_the_timer_looks_as_often_as_the_settings_say_and_a_reload_changes_that(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with daemon(tmp_path, [], "[healing]\nmode = 'disabled'\n", clock=clock) as d:
            looks = 0

            async def look(_: LookTime) -> list[HealthFinding]:
                nonlocal looks
                looks += 1
                return []

            d.watchdog.sources.clear()
            d.watchdog.sources["thing"] = look

            async def sleeps(ms: int) -> None:
                await eventually(lambda: clock.next_ms == ms, f"the timer sleeps for {ms} ms")

            clock.advance(60_000)
            settings = tmp_path / "home" / "config.toml"
            text = settings.read_text()
            settings.write_text(text.replace("mode = 'disabled'", "mode = 'auto'\nevery_ms = 5000"))
            reloaded = await wiring_daemon.reload_config(d, {})
            assert set(reloaded.live) == {"healing.mode", "healing.every_ms"}
            await sleeps(5_000)
            assert looks == 0
            clock.advance(4_999)
            await sleeps(1)
            assert looks == 0
            for expected in (1, 2):
                clock.advance(5_000 if expected > 1 else 1)
                await sleeps(5_000)
                assert looks == expected
            settings.write_text(text)
            await wiring_daemon.reload_config(d, {})
            clock.advance(60_000)
            await d.watchdog.look()
            assert looks == 2

    run_loop(scenario())
