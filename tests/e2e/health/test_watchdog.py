"""The watchdog: each fault is one incident of the right domain, left alone, reported or mended as
the mode says.
"""

import asyncio
from pathlib import Path

from palyra.core.events import InputReceived, RunAccepted
from palyra.core.ids import OWNER
from palyra.core.messages import ModelRequest
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult
from palyra.models.scripted import ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, tape, tasks
from palyra.store.database import Tx
from palyra.tools.catalogue import Arguments, declare
from tests.crash.scenarios import call
from tests.faults import asked, eventually, permit_all, reached, row
from tests.inprocess import finished, say, session, until
from tests.watching_over import (
    JumpingClock,
    incidents,
    passes,
    set_mode,
    through_the_modes,
    told,
    watched,
)

RUN_MS = 120_000


def _hangs_once(hold: StreamPause) -> ScriptedModel:
    """A model that never answers the first time."""
    asked_before: list[ModelRequest] = []

    def turn(request: ModelRequest) -> Turn:
        asked_before.append(request)
        return Turn(hold="h") if len(asked_before) == 1 else Turn(text=("here I am",))

    return ScriptedModel(turn, holds={"h": hold})


def test_a_hung_provider_is_asked_again(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)
        run = await say(d, where, "hello")
        await reached(hold.reached)
        await until(d, where.session_id, "input.assembled")

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS)
        assert [each.remedy for each in incident.tried] == ["ask again"]
        failed = await until(d, where.session_id, "model.failed")
        assert b'"failure":"timeout"' in bytes(failed.event)

    watched(tmp_path, _hangs_once(hold), scenario)


def test_a_provider_that_hangs_every_time_is_one_incident_until_the_run_is_given_up(
    tmp_path: Path,
) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        await reached(hold.reached)
        # What is written down behind the first question is a sign of life.
        await until(d, where.session_id, "input.assembled")
        for _ in range(12):
            if (await row(d, run.run_id)).state != "in_progress":
                break
            hold.reached.clear()
            await passes(d, clock, RUN_MS)
            # The next try waits a moment before it asks.
            await eventually(
                lambda: hold.reached.is_set() or not d.runs.works_on(run.run_id),
                "it is asked again, or given up",
            )
        assert (await row(d, run.run_id)).state in ("failed", "cancelled")
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert incident.closed_ms
        assert len(await told(d)) == 1

    watched(tmp_path, ScriptedModel([Turn(hold="h")], holds={"h": hold}), scenario)


class _NoArguments(Arguments, frozen=True, kw_only=True):
    pass


class _Stuck:
    """A tool that does not come back when its time is over, whatever it is told."""

    argument_type = _NoArguments
    spec = declare(
        "test.stuck", "Does not come back.", _NoArguments, effect="pure", limits=Limits(time_ms=100)
    )

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.overdue = asyncio.Event()

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope(workspace=workspace)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return ()

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", "stuck")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.overdue.set()
        return ToolResult(outcome="ok", text="at last")


def test_a_hung_tool_ends_its_run(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        stuck = _Stuck()
        d.catalogue.renew("stuck", (stuck,))
        where = await session(d)
        run = await say(d, where, "hello")
        await reached(stuck.overdue)
        # A call that only looks goes on the tape a moment after it began.
        await until(d, where.session_id, "tool.started")

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "cancelled"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["cancel the run"]
        assert "test.stuck" in incident.summary
        stuck.released.set()

    watched(tmp_path, [Turn(calls=(call("test.stuck"),)), Turn(text=("done",))], scenario)


def test_a_run_that_nobody_works_on_goes_on(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        run = await say(d, await session(d), "hello")
        await reached(hold.reached)
        # The task is lost without a word, as a defect would lose it.
        task = d.runs._jobs[run.run_id].task
        assert task is not None
        task.cancel()
        await eventually(lambda: not d.runs.works_on(run.run_id), "nobody works on it")

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["resume the run"]

    watched(tmp_path, _hangs_once(hold), scenario)


def test_a_message_that_nobody_begins_is_begun(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)

        def forgotten(tx: Tx) -> str:
            # Accepted, and whoever was to begin it is lost.
            run_id = d.clock.new_id()
            received = InputReceived(submission_id=run_id, text="hello")
            tape.append(tx, where.session_id, OWNER, [RunAccepted(), received], run_id)
            return run_id

        run_id = await d.db.write(forgotten)

        async def mended() -> bool:
            return (await row(d, run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["begin the run"]

    watched(tmp_path, [Turn(text=("hi",))], scenario)


def test_a_long_run_that_gets_on_is_never_flagged(tmp_path: Path) -> None:
    """Ten turns, each silent for a little less than the window: eighteen minutes in all."""
    holds = {str(number): StreamPause() for number in range(10)}
    turns = [
        Turn(text=(f"{number}",), hold=f"{number}", calls=(call("test.pure", text=f"{number}"),))
        for number in range(10)
    ]

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        run = await say(d, await session(d), "hello")
        for hold in holds.values():
            await reached(hold.reached)
            await passes(d, clock, RUN_MS - 10_000)
            hold.released.set()
        await finished(d, run)
        await passes(d, clock, RUN_MS)
        assert await incidents(d) == []

    watched(tmp_path, ScriptedModel([*turns, Turn(text=("done",))], holds=holds), scenario)


def test_a_tool_that_is_silent_within_its_time_is_never_flagged(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        await until(d, where.session_id, "tool.started")
        # The shell may take ten minutes; the clock goes nine further while it takes one second.
        await passes(d, clock, 9 * 60_000)
        await finished(d, run)
        await d.watchdog.look()
        assert await incidents(d) == []

    watched(
        tmp_path,
        [Turn(calls=(call("shell.run", command="sleep 1"),)), Turn(text=("done",))],
        scenario,
    )


def test_a_run_that_waits_for_a_person_is_never_flagged_itself(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        await asked(d, where.session_id)
        await passes(d, clock, 60 * 60_000)
        assert [each.domain for each in await incidents(d)] == ["approval"]
        assert (await row(d, run.run_id)).state == "waiting"

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n"
    watched(tmp_path, [Turn(calls=(call("fs.write", path="a", content="b"),))], scenario, settings)


def test_a_machine_that_slept_does_not_make_a_run_look_stuck(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        run = await say(d, await session(d), "hello")
        await reached(hold.reached)
        await d.watchdog.look()
        clock.jump(8 * 3_600_000)
        await d.watchdog.look()
        assert await incidents(d) == []
        hold.released.set()
        await finished(d, run)

    watched(tmp_path, ScriptedModel([Turn(text=("a",), hold="h")], holds={"h": hold}), scenario)


def test_a_forgotten_approval_expires_with_a_notice_where_the_settings_say_so(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)
        run = await say(d, where, "hello")
        approval = await asked(d, where.session_id)
        set_mode(d, "observe_only")
        await passes(d, clock, 601_000)
        (seen,) = await incidents(d)
        assert (seen.domain, seen.closed_ms) == ("approval", 0)
        (notice,) = (await d.notices.listing("user:owner")).notices
        assert (notice.about, notice.link) == ("approval", "#/approvals")
        assert "fs.write" in notice.text
        set_mode(d, "auto")
        await d.watchdog.look()
        found = await d.db.read(lambda tx: approvals.find(tx, approval.approval_id))
        assert found is not None
        assert found.decision == "expired"
        assert len(await told(d)) == 2
        await finished(d, run)
        (over,) = await incidents(d)
        assert over.closed_ms

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n[healing]\nmode = 'disabled'\nforgotten = 'expire'\n"
    turns = [Turn(calls=(call("fs.write", path="a", content="b"),)), Turn(text=("well then",))]
    watched(tmp_path, turns, scenario, settings)


def test_a_reminder_is_given_once_and_the_incident_closes_with_the_answer(tmp_path: Path) -> None:
    from palyra.agent.approval_steps import Answer

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        approval = await asked(d, where.session_id)
        await passes(d, clock, 60 * 60_000)
        assert len(await told(d)) == 1
        await d.answers.answer("user:owner", approval.approval_id, Answer(decision="deny"), "test")
        await finished(d, run)
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert incident.closed_ms
        assert incident.severity == "warning"

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n"
    turns = [Turn(calls=(call("fs.write", path="a", content="b"),)), Turn(text=("well then",))]
    watched(tmp_path, turns, scenario, settings)


def test_a_silent_task_is_put_back(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        def taken(tx: Tx) -> str:
            task_id = tasks.enqueue(tx, "somebody_elses")
            assert tasks.claim(tx, "somebody_elses", "a dead worker", 60_000, 1, 1)
            return task_id

        task_id = await d.db.write(taken)

        async def mended() -> bool:
            return (await d.db.read(lambda tx: tasks.get(tx, task_id))).state == "queued"

        await through_the_modes(d, clock, "task", mended, window_ms=121_000)

    watched(tmp_path, [], scenario)


def test_a_task_that_slept_along_with_the_machine_is_left_alone(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(task: tasks.Task) -> None:
            begun.set()
            await go.wait()

        d.tasks.register("slow", slow, promise="at_most_once")
        task_id = await d.tasks.enqueue("slow")
        await asyncio.wait_for(begun.wait(), 20)
        set_mode(d, "auto")
        await d.watchdog.look()
        clock.jump(3_600_000)
        await d.watchdog.look()
        assert await incidents(d) == []
        # Its lease has run out while it slept: that is seen once, and not again and again.
        rounds = d.tasks.counts.rounds
        d.tasks.look(["slow"])
        for _ in range(100):
            await d.db.read(lambda tx: None)
        # Two more are for what had become due in that hour.
        assert d.tasks.counts.rounds - rounds <= 5
        go.set()
        await asyncio.wait_for(d.tasks.settled(), 20)
        assert (await d.db.read(lambda tx: tasks.get(tx, task_id))).state == "done"

    watched(tmp_path, [], scenario)


def test_a_dead_worker_of_the_queue_is_started_anew(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        loop = d.tasks._loop
        assert loop is not None
        loop.cancel()
        await asyncio.wait([loop])

        async def mended() -> bool:
            return d.tasks.alive

        await through_the_modes(d, clock, "worker", mended)

    watched(tmp_path, [], scenario)
