"""STOP and cancel do not wait for the disk: what works is broken off and answered at once, and
recorded when the disk takes it.
"""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from palyra.agent import durable_write, runs
from palyra.core.ids import OWNER
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.crash.scenarios import call
from tests.faults import (
    LONGEST_S,
    FullDisk,
    ends,
    eventually,
    held_writer,
    in_daemon,
    on_full_disk,
    permit_all,
    reached,
    row,
)
from tests.inprocess import kinds, say, session, until

QUIET = "[healing]\nmode = 'disabled'\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"
ASKS = {
    "ask": [Turn(calls=(call("test.once", path="a.txt", line="x"),))],
    "again": [Turn(text=("fine",))],
}


def a_command() -> str:
    """One that nobody else runs, so that it is found by its name."""
    return f"sleep 86317.{secrets.randbelow(10**9)}"


def running(command: str) -> list[str]:
    """The processes of the command, whoever started them."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (
                (process / "cmdline").read_bytes().split(b"\0") if process.name.isdigit() else []
            )
        except OSError:
            continue
        if words[:2] == command.encode().split():
            found.append(process.name)
    return found


async def answered(what: Awaitable[object]) -> object:
    return await asyncio.wait_for(what, LONGEST_S / 2)


async def stop(d: Daemon, run_id: str) -> None:
    stopped = await d.gateway.stop(OWNER)
    assert (stopped.cancelled, stopped.recorded) == ((run_id,), False)


async def cancel(d: Daemon, run_id: str) -> None:
    run = await d.gateway.cancel(OWNER, run_id)
    assert (run.run_id, run.state, run.recorded) == (run_id, "in_progress", False)


@pytest.mark.parametrize("verb", [stop, cancel])
def test_a_command_ends_though_the_disk_does_not_answer(
    tmp_path: Path, verb: Callable[[Daemon, str], Awaitable[None]]
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "run")
        await until(d, where.session_id, "tool.started")
        await eventually(lambda: running(command), "the command runs")
        with held_writer(d):
            await answered(verb(d, run.run_id))
            await eventually(
                lambda: not running(command), "the command is dead though nothing can be written"
            )
            assert (await row(d, run.run_id)).state == "in_progress"
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"
        assert (await kinds(d, where.session_id))[-2:] == ["tool.finished", "run.cancelled"]

    command = a_command()
    permit_all(tmp_path)
    in_daemon(
        tmp_path,
        [Turn(calls=(call("shell.run", command=command, timeout_s=600),))],
        scenario,
        QUIET,
    )


@pytest.mark.parametrize("verb", [stop, cancel])
def test_nothing_is_read_before_a_command_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Callable[[Daemon, str], Awaitable[None]]
) -> None:
    """On a frozen file system readers wait as the writer does."""

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "run")
        await until(d, where.session_id, "tool.started")
        await eventually(lambda: running(command), "the command runs")
        thawed = threading.Event()
        with held_writer(d), monkeypatch.context() as frozen:
            real = d.db._read
            frozen.setattr(d.db, "_read", lambda query: thawed.wait(LONGEST_S) and real(query))
            await answered(verb(d, run.run_id))
            await eventually(
                lambda: not running(command), "the command is dead though nothing can be read"
            )
            thawed.set()
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"

    command = a_command()
    permit_all(tmp_path)
    in_daemon(
        tmp_path,
        [Turn(calls=(call("shell.run", command=command, timeout_s=600),))],
        scenario,
        QUIET,
    )


def test_a_waiting_run_is_stopped_when_the_disk_answers_again(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "ask")
        await until(d, where.session_id, "approval.requested")
        with held_writer(d):
            await answered(stop(d, run.run_id))
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.cancelled"
        assert (await kinds(d, where.session_id))[-2:] == ["approval.resolved", "run.cancelled"]

    in_daemon(tmp_path, ASKS, scenario, QUIET)


def test_on_a_full_disk_stop_ends_what_works_and_later_what_waited_but_not_what_came_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = StreamPause()
    script = {
        "long": (Turn(text=("a",), hold="h"),),
        **{name: tuple(turns) for name, turns in ASKS.items()},
    }

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where, other = await session(d), await session(d, key="other")
        waiting = await say(d, where, "ask")
        await until(d, where.session_id, "approval.requested")
        working = await say(d, other, "long")
        await reached(hold.reached)
        disk.fill()
        stopped = await d.gateway.stop(OWNER)
        assert (set(stopped.cancelled), stopped.recorded) == (
            {waiting.run_id, working.run_id},
            False,
        )
        disk.full = False
        later = await session(d, key="later")
        fine = await say(d, later, "again")
        for place, run, kind in (
            (where, waiting, "run.cancelled"),
            (other, working, "run.cancelled"),
            (later, fine, "run.completed"),
        ):
            assert (await ends(d, place.session_id, run.run_id)).kind == kind

    monkeypatch.setattr(durable_write, "RETRY_S", 0.05)
    monkeypatch.setattr(runs, "RETRY_S", 0.05)
    on_full_disk(tmp_path, ScriptedModel(Script(script), holds={"h": hold}), scenario, QUIET)


def test_stop_ends_many_waiting_and_queued_runs_in_one_step(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        places = [await session(d, key=str(at)) for at in range(30)]
        for where in places:
            await say(d, where, "ask")
            await say(d, where, "again")
        for where in places:
            await until(d, where.session_id, "approval.requested")
        before = d.db.steps
        stopped = await d.gateway.stop(OWNER)
        assert (len(stopped.cancelled), stopped.recorded) == (60, True)
        assert d.db.steps - before <= 3
        for where in places:
            assert (await kinds(d, where.session_id))[-3:] == [
                "approval.resolved",
                "run.cancelled",
                "run.cancelled",
            ]

    in_daemon(tmp_path, ASKS, scenario, QUIET)
