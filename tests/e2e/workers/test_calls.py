"""Tools on other machines: a worker is killed, a line is cut or slow, a daemon stops, and nothing
is lost or doubled.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.agent.submit import Submitted
from palyra.core.ids import OWNER
from palyra.features.workers.node.home import Home
from palyra.models.scripted import ScriptedCall, Turn
from palyra.store.sessions import Session
from tests.crash.scenarios import call
from tests.faults import asked, eventually
from tests.inprocess import body, entries, finished, say, session, until
from tests.journals import run as run_loop
from tests.worker_world import World, arrived, release, world


def turns(*calls: ScriptedCall) -> Sequence[Turn]:
    return [Turn(calls=calls), Turn(text=("ok",))]


def held(tool: str, **arguments: Any) -> ScriptedCall:
    return call(f"worker:attic/{tool}", hold="hold", **arguments)


SCRIPT = {
    "pure": turns(held("test.pure", text="found")),
    "idempotent": turns(held("test.idempotent", folder="made", text="x")),
    "reversible": turns(held("test.reversible", path="lines.txt", line="effect")),
    "once": turns(held("test.once", path="lines.txt", line="effect")),
}


class Place:
    """A session, and its folder at the worker with a FIFO where its tools stand still."""

    def __init__(self, there: Session, home: Home) -> None:
        self.session = there
        self.folder = Path(home.session(there.session_id))
        self.fifo = self.folder / "hold"
        os.mkfifo(self.fifo)

    @property
    def lines(self) -> list[str]:
        path = self.folder / "lines.txt"
        return path.read_text().splitlines() if path.exists() else []


async def begun(w: World, home: Home, text: str) -> tuple[Place, Submitted, int]:
    """A call that has come to its FIFO, with its effect behind it."""
    place = Place(await session(w.daemon), home)
    run = await say(w.daemon, place.session, text)
    return place, run, await arrived(place.fifo)


async def told(w: World, place: Place, *kinds: str) -> list[dict[str, Any]]:
    return [
        body(entry)
        for entry in await entries(w.daemon, place.session.session_id)
        if entry.kind in kinds
    ]


async def outcome(w: World, place: Place, run: Submitted) -> str:
    await finished(w.daemon, run)
    (result,) = await told(w, place, "tool.finished")
    return str(result["outcome"])


def test_a_worker_killed_in_the_middle_of_each_effect_leaves_a_run_that_settles(
    tmp_path: Path,
) -> None:
    async def kill(w: World, home: Home, place: Place, descriptor: int) -> None:
        """SIGKILL, and a new process in the same folder, where the FIFO does not hold any more."""
        process, station = w.processes.pop(), w.daemon.workers.presence.station("attic")
        before = station.link
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        os.close(descriptor)
        place.fifo.unlink()
        w.launch(home)
        await eventually(lambda: station.link not in (None, before), "the new one is there")

    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            home = await w.enrol()
            w.launch(home)
            await w.connected("attic")

            runs: list[str] = []
            place, run, at = await begun(w, home, "pure")
            await kill(w, home, place, at)
            runs.append(run.run_id)
            assert await outcome(w, place, run) == "ok"
            assert [start.get("attempt", 1) for start in await told(w, place, "tool.started")] == [
                1,
                2,
            ]

            place, run, at = await begun(w, home, "idempotent")
            await kill(w, home, place, at)
            runs.append(run.run_id)
            assert await outcome(w, place, run) == "ok"
            assert len(list((place.folder / "made").iterdir())) == 1

            place, run, at = await begun(w, home, "reversible")
            assert place.lines == ["effect"]
            await kill(w, home, place, at)
            runs.append(run.run_id)
            assert await outcome(w, place, run) == "ok"
            assert place.lines == ["effect"]
            (undone,) = await told(w, place, "tool.undone")
            assert undone["changes"] == [{"path": "lines.txt", "change": "deleted"}]

            place, run, at = await begun(w, home, "once")
            await kill(w, home, place, at)
            runs.append(run.run_id)
            asking = await asked(w.daemon, place.session.session_id)
            assert asking.request.about == "in_doubt"
            await w.daemon.answers.answer(
                OWNER, asking.approval_id, Answer(decision="happened"), "test"
            )
            await finished(w.daemon, run)
            assert place.lines == ["effect"]
            lost = [left for left in await w.system("worker.left") if left["why"] == "lost"]
            assert [len(left["calls"]) for left in lost] == [1, 1, 1, 1]

            # What was settled so is replayed so, also when the worker is none any more.
            await w.daemon.workers.desk.revoke(OWNER, "attic")
            for run_id in runs:
                await w.daemon.replays.start(OWNER, run_id)
                replay = await w.daemon.replays.get(OWNER, run_id, 20_000)
                assert replay.replayed is not None, replay.problem
                assert replay.replayed.identical, replay.replayed.difference

    run_loop(scenario(), 150)


def test_a_line_that_is_cut_or_slow_or_late_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            home = await w.enrol()
            await w.start(home)

            # Cut while it runs: the worker comes back and still has it.
            place, run, at = await begun(w, home, "once")
            w.proxy.cut()
            release(at)
            assert await outcome(w, place, run) == "ok"
            assert place.lines == ["effect"]

            # Cut with the result on its way: it is told again.
            place, run, at = await begun(w, home, "once")
            w.proxy.up.clear()
            release(at)
            await settled_there(home, run_of(w), "finished")
            w.proxy.cut()
            w.proxy.up.set()
            assert await outcome(w, place, run) == "ok"
            assert place.lines == ["effect"]

            # The assignment never arrives: it is sent again, and begun once.
            place = Place(await session(w.daemon), home)
            await w.connected("attic")
            w.proxy.down.clear()
            run = await say(w.daemon, place.session, "once")
            await until(w.daemon, place.session.session_id, "tool.started")
            await holds(w, 1)
            w.proxy.cut()
            w.proxy.down.set()
            release(await arrived(place.fifo))
            assert await outcome(w, place, run) == "ok"
            assert place.lines == ["effect"]
            assert len(await told(w, place, "tool.started")) == 1

            # What the old connection still brings, after the new one is there, changes nothing.
            place, run, at = await begun(w, home, "once")
            w.proxy.up.clear()
            release(at)
            await settled_there(home, run_of(w), "finished")
            w.proxy.part()
            w.proxy.up.set()
            assert await outcome(w, place, run) == "ok"
            assert place.lines == ["effect"]
            assert await w.system("worker.left") == []
            assert await w.system("worker.refused") == []

    run_loop(scenario())


def run_of(w: World) -> str:
    """The call that the worker holds now."""
    (held_,) = w.daemon.workers.presence.station("attic").held
    return held_


async def settled_there(home: Home, call_id: str, state: str) -> None:
    """Wait until the worker has written down how far a call is."""
    path = home.state / "calls" / f"{call_id}.json"
    await eventually(
        lambda: path.exists() and f'"state":"{state}"' in path.read_text(), f"{call_id} is {state}"
    )


async def holds(w: World, count: int) -> None:
    station = w.daemon.workers.presence.station("attic")
    await eventually(lambda: len(station.held) == count, f"it holds {count}")


def test_a_worker_that_is_not_heard_stops_and_its_late_result_is_refused_and_recorded(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT, lease_ms=4_000) as w:
            home = await w.enrol()
            await w.start(home)
            place, run, at = await begun(w, home, "once")
            call_id = run_of(w)
            w.proxy.up.clear()
            w.proxy.down.clear()
            # Before anybody is asked what happened, the worker itself has stopped.
            asking = await asked(w.daemon, place.session.session_id)
            await settled_there(home, call_id, "finished")
            os.close(at)
            assert asking.request.about == "in_doubt"
            w.proxy.cut()
            w.proxy.up.set()
            w.proxy.down.set()
            await w.connected("attic")
            refused = await w.told("worker.refused")
            assert [(each["why"], each["call_id"], each["worker"]) for each in refused] == [
                ("late_result", call_id, "attic")
            ]
            await w.daemon.answers.answer(
                OWNER, asking.approval_id, Answer(decision="skip"), "test"
            )
            await finished(w.daemon, run)

    run_loop(scenario())


def test_a_cancel_ends_the_processes_at_the_worker_and_draining_lets_them_finish(
    tmp_path: Path,
) -> None:
    # Somebody else's test may sleep as well, but not for so long.
    long = str(600_000 + os.getpid())
    script = {
        "long": turns(call("worker:attic/shell.run", command=f"echo $$ > pid; exec sleep {long}")),
        "hold": SCRIPT["once"],
        "after": turns(call("worker:attic/test.pure", text="more")),
    }

    async def scenario() -> None:
        async with world(tmp_path, script) as w:
            home = await w.enrol()
            await w.start(home)
            there = await session(w.daemon)
            run = await say(w.daemon, there, "long")
            pid = home.work / there.session_id / "pid"
            await eventually(pid.exists, "the command runs")
            call_id = run_of(w)
            began = asyncio.get_running_loop().time()
            await w.daemon.gateway.cancel(OWNER, run.run_id)
            await forgotten_there(home, call_id)
            # A second is what is promised; the rest is for a machine that does other things too.
            assert asyncio.get_running_loop().time() - began < 10.0
            assert not sleeping(long), "the command still runs"
            assert (await finished(w.daemon, run)).kind == "run.cancelled"

            place, run, at = await begun(w, home, "hold")
            shown = await w.daemon.workers.desk.drain(OWNER, "attic", on=True)
            assert (shown.state, len(shown.running)) == ("draining", 1)
            refused = Place(await session(w.daemon), home)
            assert (
                await outcome(w, refused, await say(w.daemon, refused.session, "after")) == "error"
            )
            (result,) = await told(w, refused, "tool.finished")
            assert "drained" in result["text"]
            release(at)
            assert await outcome(w, place, run) == "ok"
            await w.daemon.workers.desk.drain(OWNER, "attic", on=False)
            again = Place(await session(w.daemon), home)
            assert await outcome(w, again, await say(w.daemon, again.session, "after")) == "ok"

    run_loop(scenario())


async def forgotten_there(home: Home, call_id: str) -> None:
    await eventually(
        lambda: not (home.state / "calls" / f"{call_id}.json").exists(),
        "the worker has forgotten it",
    )


def sleeping(long: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\x00{long}\x00".encode():
                return True
        except OSError:
            continue
    return False


def test_files_go_there_by_content_only_if_they_are_missing_and_named_ones_come_back(
    tmp_path: Path,
) -> None:
    def into(folder: str) -> Any:
        # Each into a folder of its own: one that a worker has written to is labelled, and asks.
        command = f"sha256sum data.bin; tr a-z A-Z < notes.txt > {folder}/notes.txt"
        return turns(
            call(
                "worker:attic/shell.run",
                command=f"mkdir -p {folder}; {command}",
                files=["data.bin", "notes.txt"],
                results=[folder, "none.txt"],
            )
        )

    script = {
        "out": into("out"),
        "again": into("again"),
        "steal": turns(call("worker:attic/shell.run", command="true", files=[".env"])),
    }

    async def scenario() -> None:
        async with world(tmp_path, script) as w:
            work = tmp_path / "work"
            (work / "data.bin").write_bytes(os.urandom(700_000))
            (work / "notes.txt").write_text("hello\n")
            (work / ".env").write_text("KEY=1\n")
            home = await w.enrol()
            await w.start(home)
            for text, most in (("out", 900_000), ("again", 50_000)):
                place = Place(await session(w.daemon), home)
                before = w.proxy.sent_down
                assert await outcome(w, place, await say(w.daemon, place.session, text)) == "ok"
                assert w.proxy.sent_down - before < most
                assert (work / text / "notes.txt").read_text() == "HELLO\n"
            (result,) = await told(w, place, "tool.finished")
            assert "not there: none.txt" in result["text"]
            assert result["attestation"]["executor"] == "worker:attic"
            place = Place(await session(w.daemon), home)
            assert await outcome(w, place, await say(w.daemon, place.session, "steal")) == "denied"

    run_loop(scenario())


@pytest.mark.parametrize("folder", ["contents", "calls"])
def test_a_worker_without_room_for_files_or_records_says_so_and_takes_the_next_ones(
    tmp_path: Path, folder: str
) -> None:
    script = {
        "go": turns(call("worker:attic/shell.run", command="cat notes.txt", files=["notes.txt"]))
    }

    async def scenario() -> None:
        async with world(tmp_path, script) as w:
            (tmp_path / "work" / "notes.txt").write_text("hello\n")
            home = await w.enrol()
            await w.start(home)
            # As when its disk is full: nothing can be written there.
            (home.state / folder).rmdir()
            place = Place(await session(w.daemon), home)
            assert await outcome(w, place, await say(w.daemon, place.session, "go")) == "error"
            home.make()
            place = Place(await session(w.daemon), home)
            assert await outcome(w, place, await say(w.daemon, place.session, "go")) == "ok"

    run_loop(scenario())


def test_a_call_for_a_worker_that_is_away_says_so_and_has_not_happened(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            home = await w.enrol()
            task = await w.start(home)
            task.cancel()
            station = w.daemon.workers.presence.station("attic")
            await eventually(lambda: station.link is None, "the daemon has seen that it is gone")
            w.daemon.workers.crew._wait_s = 0.05
            place = Place(await session(w.daemon), home)
            run = await say(w.daemon, place.session, "once")
            assert await outcome(w, place, run) == "error"
            assert place.lines == []
            (check,) = await w.daemon.workers.checks()
            assert (check.state, check.detail) == ("warn", "not connected")

    run_loop(scenario())
