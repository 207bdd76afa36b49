"""A worker that lies, over the real link: the daemon believes neither sizes, nor depth, nor that
anything will come.
"""

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import palyra
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.workers.file_transfer import digest
from palyra.features.workers.node import dial
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import (
    MOST_CALL_BYTES,
    MOST_FILE_BYTES,
    PIECE_BYTES,
    PROTOCOL,
    Assign,
    Beat,
    CallRefused,
    CallSettled,
    CancelCall,
    Down,
    Finished,
    Hello,
    Leaving,
    Piece,
    ProgressReport,
    Shipped,
    Up,
    Want,
    Welcome,
    encode,
    pieces,
)
from palyra.models.scripted import ScriptedCall, Turn
from palyra.system.clock import Clock
from tests.faults import asked
from tests.inprocess import body, finished, say, session
from tests.journals import run as run_loop
from tests.worker_world import World, world

TOOLS = ("shell.run", "test.pure")
WAIT_S = 60


def calls(name: str, **arguments: Any) -> list[Turn]:
    return [
        Turn(calls=(ScriptedCall(name=f"worker:attic/{name}", arguments=arguments),)),
        Turn(text="ok"),
    ]


SCRIPT = {
    "look": calls("test.pure", text="x"),
    "run": calls("shell.run", command="make", timeout_s=1),
    "bring": calls("shell.run", command="make", timeout_s=1, results=["out"]),
}


class FastClock(Clock):
    """Twenty times as fast: what takes a quarter of a minute takes less than one second."""

    def ticks_ms(self) -> int:
        return 20 * super().ticks_ms()

    async def sleep(self, ms: int) -> None:
        await super().sleep(max(1, ms // 20))


class Liar:
    """One end of the link, with a worker's certificate. Says what it likes."""

    def __init__(self, line: DaemonConnection) -> None:
        self.line = line
        self.heard: list[Down] = []
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._hear())
        self._beating = asyncio.create_task(self._beat())

    async def _hear(self) -> None:
        while (said := await self.line.receive()) is not None:
            self.heard.append(said)
            self._news.set()

    async def _beat(self) -> None:
        """It is always there."""
        number = 0
        while True:
            number += 1
            self.say(Beat(number=number))
            await asyncio.sleep(0.05)

    def say(self, message: Up) -> None:
        self.line.post(message)

    async def until(self, wanted: Callable[[Down], bool], count: int = 1) -> list[Any]:
        async with asyncio.timeout(WAIT_S):
            while len(found := [each for each in self.heard if wanted(each)]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    async def assigned(self, count: int = 1) -> Assign:
        found: Assign = (await self.until(lambda each: isinstance(each, Assign), count))[-1]
        return found

    def end(self) -> None:
        self._task.cancel()
        self._beating.cancel()
        self.line.close()


def hello(home: Home, **more: Any) -> Hello:
    given = {"tier": "none", "tools": TOOLS, "slots": 4, **more}
    return Hello(
        protocol=PROTOCOL, version=palyra.__version__, instance=home.identity().instance, **given
    )


async def dialled(w: World, home: Home) -> DaemonConnection:
    return await dial.dial("127.0.0.1", w.door.port, dial.of(home))


@asynccontextmanager
async def lying(
    folder: Path, clock: Clock | None = None
) -> AsyncIterator[tuple[World, Liar, Home]]:
    async with world(folder, SCRIPT, clock=clock, lease_ms=600_000) as w:
        home = await w.enrol()
        line = await dialled(w, home)
        line.post(hello(home, tier=(await _tier(w))))
        liar = Liar(line)
        await liar.until(lambda each: isinstance(each, Welcome))
        try:
            yield w, liar, home
        finally:
            liar.end()


async def _tier(w: World) -> str:
    return str(w.daemon.catalogue.get("shell.run").spec.tier)


def answer(assign: Assign, **more: Any) -> Finished:
    return Finished(
        **{
            "call_id": assign.call_id,
            "attempt": assign.attempt,
            "outcome": "ok",
            "text": "done",
            **more,
        }
    )


async def results(w: World, session_id: str) -> list[dict[str, Any]]:
    return [body(entry) for entry in await w.entries(session_id) if entry.kind == "tool.finished"]


def test_files_that_are_larger_than_they_were_said_to_be_are_not_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            there = await session(w.daemon)
            run = await say(w.daemon, there, "bring")
            assign = await liar.assigned()
            contents = [os.urandom(1 << 20) for _ in range(3)]
            named = tuple(
                Shipped(f"out/{number}", digest(each), 1) for number, each in enumerate(contents)
            )
            liar.say(answer(assign, files=named))
            await liar.until(lambda each: isinstance(each, Want) and each.digest == named[0].sha256)
            for piece in pieces(named[0].sha256, contents[0]):
                liar.say(piece)
            await finished(w.daemon, run)
            (result,) = await results(w, there.session_id)
            assert result["outcome"] == "error"
            assert "did not send it whole" in result["text"]
            assert not (Path(there.workspace) / "out").exists()

    run_loop(scenario())


@pytest.mark.parametrize("same", [True, False], ids=["one content", "many contents"])
def test_more_than_a_call_may_carry_is_refused_before_it_is_asked_for(
    tmp_path: Path, same: bool
) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            there = await session(w.daemon)
            run = await say(w.daemon, there, "bring")
            assign = await liar.assigned()
            count = MOST_CALL_BYTES // MOST_FILE_BYTES + 1
            digests = [("0" if same else f"{number:x}") * 64 for number in range(count)]
            named = tuple(
                Shipped(f"out/{number}", each, MOST_FILE_BYTES)
                for number, each in enumerate(digests)
            )
            liar.say(answer(assign, files=named))
            await finished(w.daemon, run)
            (result,) = await results(w, there.session_id)
            assert (result["outcome"], "64 MiB" in result["text"]) == ("error", True)
            assert not [each for each in liar.heard if isinstance(each, Want)]

    run_loop(scenario())


def test_what_nobody_asked_for_is_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            for _ in range(200):
                liar.say(Piece(digest="0" * 64, offset=0, data=bytes(PIECE_BYTES)))
            there = await session(w.daemon)
            run = await say(w.daemon, there, "look")
            liar.say(answer(await liar.assigned(), text="fine"))
            await finished(w.daemon, run)
            assert not w.daemon.workers.presence.station("attic").fetching

    run_loop(scenario())


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"deep": value}


def test_data_that_is_nested_too_deeply_is_left_out_and_the_result_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            there = await session(w.daemon)
            run = await say(w.daemon, there, "look")
            liar.say(answer(await liar.assigned(), text="fine", data=nested(900)))
            assert (await finished(w.daemon, run)).kind == "run.completed"
            (result,) = await results(w, there.session_id)
            assert result["outcome"] == "ok"
            assert "fine" in result["text"]
            assert "nested deeper" in result["text"]

    run_loop(scenario())


def test_a_message_that_cannot_be_read_costs_the_worker_its_calls_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            there = await session(w.daemon)
            await say(w.daemon, there, "run")
            assign = await liar.assigned()
            whole = encode(answer(assign, data=7_777_777))
            number = msgspec.msgpack.encode(7_777_777)
            deep = whole.replace(number, b"\x91" * 100_000 + b"\x90")
            liar.line._carrier.write(struct.pack(">I", len(deep)) + deep)
            # Nobody knows whether the command ran: a person is asked, as after every lost lease.
            assert (await asked(w.daemon, there.session_id)).request.about == "in_doubt"
            await liar.until(lambda each: isinstance(each, CallRefused))

    run_loop(scenario())


def test_a_call_is_not_waited_for_longer_than_was_shown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, FastClock()) as (w, liar, _):
            there = await session(w.daemon)
            await say(w.daemon, there, "run")
            assign = await liar.assigned()
            await liar.until(
                lambda each: isinstance(each, CancelCall) and each.call_id == assign.call_id
            )
            assert (await asked(w.daemon, there.session_id)).request.about == "in_doubt"
            (left,) = await w.told("worker.left")
            assert left["calls"] == [assign.call_id]
            # What comes now comes too late.
            liar.say(answer(assign))
            await liar.until(lambda each: isinstance(each, CallSettled))
            assert await w.told("worker.refused")

    run_loop(scenario())


def test_a_file_that_is_named_and_never_sent_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, FastClock()) as (w, liar, _):
            there = await session(w.daemon)
            await say(w.daemon, there, "bring")
            assign = await liar.assigned()
            liar.say(answer(assign, files=(Shipped("out", "0" * 64, 10),)))
            await liar.until(lambda each: isinstance(each, Want))
            assert (await asked(w.daemon, there.session_id)).request.about == "in_doubt"
            assert not (Path(there.workspace) / "out").exists()

    run_loop(scenario())


def test_a_call_that_only_looks_is_given_up_after_three_silent_attempts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, FastClock()) as (w, liar, _):
            there = await session(w.daemon)
            run = await say(w.daemon, there, "look")
            await liar.assigned(3)
            assert (await finished(w.daemon, run)).kind == "run.completed"
            (result,) = await results(w, there.session_id)
            assert result["outcome"] == "unknown"

    run_loop(scenario())


def test_a_worker_that_comes_and_goes_does_not_fill_the_database(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            home = await w.enrol()
            refused = 0
            async with asyncio.timeout(WAIT_S):
                for _ in range(100):
                    line = await dialled(w, home)
                    line.post(hello(home))
                    said = await line.receive()
                    if isinstance(said, CallRefused):
                        assert said.code == "limit_exceeded", said.message
                        refused += 1
                    else:
                        line.post(Leaving())
                    line.close()
            assert refused >= 70
            kinds = [entry.kind for entry in await w.entries(SYSTEM_TAPE)]
            assert kinds.count("worker.joined") + kinds.count("worker.left") <= 60

    run_loop(scenario())


def test_a_flood_of_small_messages_leaves_the_loop_to_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            for number in range(20_000):
                liar.say(Beat(number=number))
            turns = 0
            heard = len(liar.heard)
            async with asyncio.timeout(WAIT_S):
                while len(liar.heard) - heard < 2_000:
                    turns += 1
                    await asyncio.sleep(0)
            # Many turns of the loop, not one: nobody waits until all of them are heard.
            assert turns > 20
            assert w.daemon.workers.connected == 1

    run_loop(scenario())


def test_of_a_calls_progress_no_more_is_shown_than_somebody_can_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path) as (w, liar, _):
            there = await session(w.daemon)
            run = await say(w.daemon, there, "look")
            assign = await liar.assigned()
            station = w.daemon.workers.presence.station("attic")
            seen: list[str] = []
            station.held[assign.call_id].progress = seen.append
            liar.say(
                ProgressReport(call_id=assign.call_id, attempt=assign.attempt, text="x" * 1_000_000)
            )
            liar.say(answer(assign))
            await finished(w.daemon, run)
            assert [len(each) for each in seen] == [16 << 10]

    run_loop(scenario())
