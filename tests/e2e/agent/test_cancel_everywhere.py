"""Cancel at every moment: for each await of a run, cancel there; it ends cancelled and the next run
works.
"""

import asyncio
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.runs import end
from palyra.core.events import RunCancelled
from palyra.core.ids import OWNER
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.crash.scenarios import PERMIT_ALL
from tests.inprocess import TERMINAL, daemon, entries, finished, say, session, until
from tests.journals import run as run_loop


def call(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


SCRIPT = {
    "work": [
        Turn(
            text=("a", "b", "c"),
            calls=(
                call("test.pure", text="1"),
                call("test.sleep", ms=1),
                call("test.once", path="once.txt", line="x"),
                call("test.reversible", path="rev.txt", line="y"),
                call("fs.write", path="w.txt", content="z"),
                call("test.idempotent", folder="keys", text="k"),
            ),
        ),
        Turn(text=("done",)),
    ],
    "next": [Turn(text=("fine",))],
}


@types.coroutine
def counted(work: Coroutine[Any, Any, Any], reach: Callable[[], None]) -> Generator[Any, Any, Any]:
    """Run a coroutine and tell `reach` of every await at which it really waits."""
    step: Callable[[], Any] = lambda: work.send(None)  # noqa: E731
    while True:
        try:
            waited_for = step()
        except StopIteration as stop:
            return stop.value
        reach()
        try:
            value = yield waited_for
            step = lambda value=value: work.send(value)  # noqa: E731
        except BaseException as error:  # noqa: BLE001  handed on to the coroutine, whatever it is
            step = lambda error=error: work.throw(error)  # noqa: E731


class Moment:
    """Cancels a run at the n-th await of the tasks that work on it."""

    def __init__(self) -> None:
        self.at = 0
        self.count = 0
        self.cancel: Callable[[], Coroutine[Any, Any, Any]] | None = None
        self.cancelling: asyncio.Task[Any] | None = None

    def arm(self, at: int, cancel: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.at, self.count, self.cancel, self.cancelling = at, 0, cancel, None

    def reach(self) -> None:
        self.count += 1
        if self.count == self.at and self.cancel is not None:
            # Through the real loop factory, so that the cancel itself is not counted.
            loop = asyncio.get_running_loop()
            self.cancelling = asyncio.Task(self.cancel(), loop=loop)

    def factory(
        self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        return asyncio.Task(counted(work, self.reach), loop=loop, **options)


@pytest.mark.timeout(300)
def test_a_cancel_at_any_await_ends_the_run_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "home/policies").mkdir(parents=True)
    (tmp_path / "home/policies/all.cedar").write_text(PERMIT_ALL)
    outcomes: list[str] = []

    async def scenario() -> None:
        async with daemon(tmp_path, SCRIPT) as d:
            moment = Moment()
            at = 0
            while True:
                at += 1
                outcome = await cancelled_at(d, moment, at, tmp_path / "work")
                outcomes.append(outcome)
                if moment.count < at:
                    break

    run_loop(scenario(), 280)
    from tests import stores

    assert stores.upkeep(tmp_path / "home/journal.db").inspect().ok
    assert outcomes.count("run.cancelled") > 25, outcomes
    assert set(outcomes) <= {"run.cancelled", "run.completed"}


async def cancelled_at(d: Daemon, moment: Moment, at: int, work: Path) -> str:
    for name in ("once.txt", "rev.txt", "w.txt"):
        (work / name).unlink(missing_ok=True)
    where = await session(d)
    rid = d.clock.new_id()
    moment.arm(at, lambda: d.gateway.cancel(OWNER, rid))
    loop = asyncio.get_running_loop()
    loop.set_task_factory(moment.factory)
    try:
        run = await say(d, where, "work", run_id=rid)
        end = await until(d, where.session_id, *TERMINAL, run_id=rid)
        if moment.cancelling is not None:
            row = await asyncio.wait_for(moment.cancelling, 20)
            assert row.state in ("cancelled", "done")
    finally:
        loop.set_task_factory(None)
    assert d.runs.working <= 1
    seen = [entry.kind for entry in await entries(d, where.session_id)]
    assert sum(kind in TERMINAL for kind in seen) == 1
    assert seen[-1] in TERMINAL, "nothing may happen after the end"
    for name in ("once.txt", "rev.txt"):
        if (work / name).exists():
            assert len((work / name).read_text().splitlines()) == 1
    following = await say(d, where, "next")
    assert (await finished(d, following)).kind == "run.completed"
    assert run.run_id == rid
    return end.kind


def test_a_run_that_is_cancelled_in_the_commit_that_begins_it_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, SCRIPT) as d:
            where = await session(d)
            held, goes_on = threading.Event(), threading.Event()
            holding = d.db.write(lambda tx: (held.set(), goes_on.wait(10)))
            await asyncio.to_thread(held.wait, 10)
            run_id = d.clock.new_id()
            saying = asyncio.create_task(say(d, where, "next", run_id=run_id))
            await asyncio.sleep(0)
            cancelling = d.db.write(
                partial(end, run_id=run_id, late=[], ending=RunCancelled(reason="at once"))
            )
            commits = d.db.commits
            goes_on.set()
            await asyncio.gather(holding, saying, cancelling)
            assert d.db.commits - commits == 2, "they were not written together"
            assert (await cancelling).state == "cancelled"
            await asyncio.sleep(0)
            assert d.runs.working == 0
            assert not d.runs.works_on(run_id)
            await finished(d, await say(d, where, "next"))

    run_loop(inside())
