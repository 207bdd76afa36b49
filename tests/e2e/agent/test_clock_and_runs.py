"""A machine that sleeps and a clock that is set: a run's time budget counts how long it worked, and
nothing else.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from palyra.agent.session_cache import SessionCache
from palyra.core.events import Budgets, Entry, RunClockChanged, ToolFinished
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.system.clock import Clock
from tests import replaying
from tests.crash.scenarios import call
from tests.e2e.subagents.test_spawn import spawn
from tests.e2e.time_travel.test_replay import ours
from tests.faults import at_commit, reached
from tests.inprocess import daemon, entries, finished, kinds, say, session
from tests.journals import run as run_loop

HOUR_MS = 3_600_000
QUIET = "[healing]\nmode = 'disabled'\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"


class SleepyClock(Clock):
    """The real clocks, on a machine that a test puts to sleep and whose wall clock it sets."""

    def __init__(self) -> None:
        super().__init__()
        self._set_ms = 0
        self._asleep_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._set_ms + self._asleep_ms

    def slept_ms(self) -> int:
        return super().slept_ms() + self._asleep_ms

    def forward(self) -> None:
        self._set_ms += 6 * HOUR_MS

    def back(self) -> None:
        self._set_ms -= 6 * HOUR_MS

    def lie_down(self) -> None:
        """The wall clock goes on; what measures work stands still."""
        self._asleep_ms += 6 * HOUR_MS


MOVES = {
    "forward": (6 * HOUR_MS, 0),
    "back": (-6 * HOUR_MS, 0),
    "lie_down": (6 * HOUR_MS, 6 * HOUR_MS),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    "moment", ["run.started", "input.assembled", "tool.started", "tool.finished"]
)
def test_a_clock_that_moves_while_a_run_works_does_not_use_up_its_time(
    tmp_path: Path, move: str, moment: str
) -> None:
    hold, clock = StreamPause(), SleepyClock()
    script = {"go": (Turn(calls=(call("test.pure", text="a"),)), Turn(text=("done",), hold="h"))}

    async def inside() -> Recording:
        model = ScriptedModel(Script(script), holds={"h": hold})
        async with daemon(tmp_path, model, QUIET, clock=clock) as d:
            d.settings.budgets = Budgets(active_ms=30 * 60_000)
            where = await session(d)
            at_commit(d, moment, getattr(clock, move))
            run = await say(d, where, "go")
            await reached(hold.reached)
            # As it stands on the tape: whoever folds it again, after a restart too, comes to the
            # same.
            folded = await SessionCache(d.db).hold(where.session_id)
            assert folded.conversation.runs[run.run_id].active_ms < HOUR_MS
            hold.released.set()
            assert (await finished(d, run)).kind == "run.completed"
            told = [
                msgspec.json.decode(bytes(each.event), type=RunClockChanged)
                for each in await _changes(d, where.session_id)
            ]
            assert len(told) == 1
            moved, slept = MOVES[move]
            assert abs(told[0].moved_ms - moved) < 60_000
            assert (told[0].slept_ms >= slept) is True
            assert 0 <= told[0].active_ms < HOUR_MS
            return await replaying.recording(d, where.session_id)

    again = replay(run_loop(inside(), 120), ours())
    assert again.identical, again


async def _changes(d: Daemon, session_id: str) -> list[Entry]:
    return [each for each in await entries(d, session_id) if each.kind == "run.clock_changed"]


def test_a_clock_that_does_not_move_is_not_told_of(tmp_path: Path) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, [Turn(text=("done",))], QUIET, clock=SleepyClock()) as d:
            where = await session(d)
            await finished(d, await say(d, where, "go"))
            assert "run.clock_changed" not in await kinds(d, where.session_id)

    run_loop(inside())


def test_a_subagent_works_no_longer_because_the_machine_slept(tmp_path: Path) -> None:
    clock = SleepyClock()
    script = {
        "go": (Turn(calls=(spawn("below"),)), Turn(text=("done",))),
        "below": (Turn(text=("there",)),),
    }

    async def inside() -> None:
        async with daemon(tmp_path, ScriptedModel(Script(script)), QUIET, clock=clock) as d:
            where = await session(d)
            lay: Callable[[], None] = clock.lie_down
            at_commit(d, "agent.spawned", lay)
            await finished(d, await say(d, where, "go"))
            (told,) = [
                each for each in await entries(d, where.session_id) if each.kind == "tool.finished"
            ]
            agent = msgspec.json.decode(bytes(told.event), type=ToolFinished).agent
            assert agent is not None
            assert agent.active_ms < HOUR_MS

    run_loop(inside())
