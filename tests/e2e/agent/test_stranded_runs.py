"""A run that is in progress on the tape is being worked on, and a mailbox moves on, whatever
happens in between.
"""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from palyra.agent import durable_write, runs
from palyra.agent.approval_steps import Answer
from palyra.agent.sessions import Resolve
from palyra.agent.submit import Submission
from palyra.core import run_state
from palyra.core.errors import NotFound
from palyra.core.events import Budgets
from palyra.core.ids import OWNER
from palyra.models.scripted import StreamPause, Turn
from palyra.serve.wiring import tools as parts_tools
from palyra.serve.wiring.daemon import Daemon
from tests import daemon as process
from tests.crash.scenarios import call
from tests.daemon import DaemonProcess
from tests.faults import (
    LONGEST_S,
    WRITING,
    FullDisk,
    SlowLoading,
    asked,
    at_commit,
    crowd_out,
    ends,
    eventually,
    held_writer,
    in_daemon,
    long_and_next,
    on_full_disk,
    reached,
    row,
)
from tests.inprocess import body, daemon, entries, say, session
from tests.journals import new_id
from tests.journals import run as run_loop

HELLO = [Turn(text=("hello",))]


@pytest.fixture
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store refused is tried again at once, and not after seconds."""
    monkeypatch.setattr(runs, "RETRY_S", 0.02)
    monkeypatch.setattr(durable_write, "RETRY_S", 0.02)


def test_two_cancels_at_once_do_not_stop_the_mailbox(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "long")
        await reached(hold.reached)
        queued = await say(d, where, "next")
        assert queued.outcome == "queued"
        with held_writer(d) as writer:
            first = asyncio.ensure_future(d.gateway.cancel(OWNER, run.run_id))
            await writer.handed_over(1)
            second = asyncio.ensure_future(d.gateway.cancel(OWNER, run.run_id))
            await writer.handed_over(2)
        assert {each.run_id for each in await asyncio.gather(first, second)} == {run.run_id}
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"
        assert (await ends(d, where.session_id, queued.run_id)).kind == "run.completed"

    in_daemon(tmp_path, long_and_next(hold), scenario)


def test_two_stops_over_http_do_not_stop_the_mailbox(tmp_path: Path) -> None:
    script = {
        "long": [{"text": ["a", "b"], "hold": str(tmp_path / "never"), "hold_after": 1}],
        "next": [{"text": "fine"}],
    }
    with process.start(
        tmp_path, script=script, config="[limits]\nrequests_per_second = 100000\n"
    ) as served:
        for _ in range(10):
            session_id = served.post("/v1/sessions")["session_id"]
            run = served.post(f"/v1/sessions/{session_id}/messages", {"text": "long"})
            queued = served.post(f"/v1/sessions/{session_id}/messages", {"text": "next"})
            stream = f"/v1/sessions/{session_id}/events?after=0"
            next(
                data
                for _, _, data in served.events(stream)
                if data.get("kind") == "input.assembled"
            )
            both = [
                threading.Thread(target=served.post, args=(f"/v1/runs/{run['run_id']}/cancel",))
                for _ in range(2)
            ]
            for each in both:
                each.start()
            for each in both:
                each.join()
            assert _end_of(served, queued["run_id"]) == "done"


def _end_of(served: DaemonProcess, run_id: str) -> str:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        state = str(served.get(f"/v1/runs/{run_id}")["state"])
        if state in run_state.TERMINAL:
            return state
        time.sleep(
            0.005
        )  # A run that nobody works on tells nobody: there is nothing to wait on but the clock.
    return f"still {state}"


def test_a_submission_whose_caller_goes_away_is_worked_on(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where, run_id = await session(d), new_id()
        with held_writer(d) as writer:
            submitting = asyncio.create_task(say(d, where, "hi", run_id=run_id))
            await writer.handed_over(1)
            submitting.cancel()
            await asyncio.wait([submitting])
        assert (await ends(d, where.session_id, run_id)).kind == "run.completed"

    in_daemon(tmp_path, HELLO, scenario)


def test_an_answer_whose_caller_goes_away_is_acted_on(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        with held_writer(d) as writer:
            answer = Answer(decision="allow")
            answering = asyncio.create_task(
                d.answers.answer(OWNER, approval.approval_id, answer, "test")
            )
            await writer.handed_over(1)
            answering.cancel()
            await asyncio.wait([answering])
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert (tmp_path / "work/a.txt").read_text() == "x"

    in_daemon(tmp_path, WRITING, scenario)


def test_a_session_that_is_made_and_used_in_the_same_moment_answers(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        session_id = new_id()
        with held_writer(d) as writer:
            made = asyncio.create_task(d.sessions.resolve(OWNER, Resolve(session_id=session_id)))
            await writer.handed_over(1)
            said = asyncio.create_task(d.gateway.submit(OWNER, session_id, Submission(text="hi")))
            await writer.handed_over(2)
        await made
        assert (await ends(d, session_id, (await said).run_id)).kind == "run.completed"

    in_daemon(tmp_path, HELLO, scenario)


@pytest.mark.usefixtures("soon_again")
def test_a_full_disk_while_the_next_run_begins_does_not_stop_the_mailbox(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        await say(d, where, "long")
        await reached(hold.reached)
        queued = await say(d, where, "next")
        at_commit(d, "run.completed", disk.fill)
        hold.released.set()
        await eventually(lambda: disk.failed, "the disk refused the next run's beginning")
        disk.full = False
        assert (await ends(d, where.session_id, queued.run_id)).kind == "run.completed"

    on_full_disk(tmp_path, long_and_next(hold), scenario)


@pytest.mark.usefixtures("soon_again")
def test_a_cancel_that_the_full_disk_refused_leaves_no_run_without_a_task(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        run = await say(d, where, "long")
        await reached(hold.reached)
        disk.full = True
        assert not (await d.gateway.cancel(OWNER, run.run_id)).recorded
        disk.full = False
        hold.released.set()
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"

    on_full_disk(tmp_path, long_and_next(hold), scenario)


def test_a_cancel_that_was_refused_while_the_run_waited_for_the_disk_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(durable_write, "RETRY_S", 0.02)
    hold = StreamPause()

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        run = await say(d, where, "long")
        await reached(hold.reached)
        disk.full = True
        hold.released.set()
        await eventually(
            lambda: "is held until it can be written" in caplog.text, "the run waits for room"
        )
        monkeypatch.setattr(runs, "RETRY_S", 0.02)
        assert not (await d.gateway.cancel(OWNER, run.run_id)).recorded
        disk.full = False
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"

    on_full_disk(tmp_path, long_and_next(hold), scenario)


@pytest.mark.usefixtures("soon_again")
def test_a_full_disk_when_the_time_budget_ends_only_delays_the_end(tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        # Enough for a slow machine to come as far as the model.
        d.settings.budgets = Budgets(active_ms=3_000)
        where = await session(d)
        at_commit(d, "input.assembled", disk.fill)
        run = await say(d, where, "long")
        await eventually(lambda: disk.failed, "the disk refused the run's end")
        disk.full = False
        assert body(await ends(d, where.session_id, run.run_id))["reason"] == "time_budget"

    on_full_disk(tmp_path, long_and_next(hold), scenario)


ONCE = [Turn(calls=(call("test.once", path="a.txt", line="x"),)), Turn(text=("ok",))]


def _without_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts from now on does not have the tool."""
    real = parts_tools.own

    def fewer(*given: Any, **named: Any) -> Any:
        return real(*given, **{**named, "rehearsal": False})

    monkeypatch.setattr(parts_tools, "own", fewer)


def test_a_yes_to_a_tool_that_is_gone_is_refused_and_the_run_can_still_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, ONCE) as d:
            where = await session(d)
            run = await say(d, where, "hi")
            approval = await asked(d, where.session_id)
        _without_rehearsal(monkeypatch)
        async with daemon(tmp_path, ONCE) as d:
            with pytest.raises(NotFound):
                await d.answers.answer(
                    OWNER, approval.approval_id, Answer(decision="allow"), "test"
                )
            assert (await row(d, run.run_id)).state == "waiting"
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="deny"), "test")
            assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"

    run_loop(inside())


def test_an_allowed_call_whose_tool_is_gone_after_a_restart_has_a_result_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, ONCE) as d:
            where = await session(d)
            run = await say(d, where, "hi")
            approval = await asked(d, where.session_id)
            await crowd_out(d)
            loading = SlowLoading(monkeypatch)
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
            await loading.begun()
            closing = asyncio.ensure_future(d.close())
            await asyncio.sleep(0)
            loading.release()
            await closing
        _without_rehearsal(monkeypatch)
        async with daemon(tmp_path, ONCE) as d:
            assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
            (result,) = [
                body(entry)
                for entry in await entries(d, where.session_id)
                if entry.kind == "tool.finished"
            ]
            assert result["outcome"] == "error"
            assert "test.once" in result["text"]

    run_loop(inside())


def test_a_model_that_is_gone_after_a_restart_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            {
                "*": [
                    {
                        "calls": [
                            {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}
                        ]
                    }
                ]
            }
        )
    )
    other = f'[providers.other]\nkind = "scripted"\nmodels = ["two"]\nscript = "{script}"\n'

    async def inside() -> None:
        async with daemon(tmp_path, HELLO, other) as d:
            where = await session(d)
            run = await say(d, where, "hi", model="other/two")
            approval = await asked(d, where.session_id)
        async with daemon(tmp_path, HELLO) as d:
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
            end = await ends(d, where.session_id, run.run_id)
            assert (end.kind, body(end)["reason"]) == ("run.failed", "invalid_input")
            assert "other/two" in body(end)["message"]
            (result,) = [
                body(entry)
                for entry in await entries(d, where.session_id)
                if entry.kind == "tool.finished"
            ]
            assert result["outcome"] == "ok"

    run_loop(inside())
