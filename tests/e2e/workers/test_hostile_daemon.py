"""A daemon that lies, over the real link: a worker does what it offers, as much as it said, and
ends when it is told to.
"""

import asyncio
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from palyra.features.workers.file_transfer import digest
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import (
    DAEMON_NAME,
    MOST_FILE_BYTES,
    Acknowledged,
    Assign,
    Beat,
    CallSettled,
    CancelCall,
    Down,
    Finished,
    Frames,
    Hello,
    NeedContents,
    Piece,
    Shipped,
    Up,
    Welcome,
    frame,
    from_worker,
    pieces,
)
from palyra.system.clock import Clock
from tests.faults import eventually
from tests.journals import run as run_loop
from tests.worker_world import World, world

WAIT_S = 60


class Liar:
    """A daemon's end of the link, with the daemon's certificate."""

    def __init__(self) -> None:
        self.heard: list[Up] = []
        self._news = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._clock = Clock()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        self._writer = writer
        while data := await reader.read(65_536):
            for body_ in frames.feed(data):
                said = from_worker(body_)
                if isinstance(said, Hello):
                    self.say(Welcome(name="attic", lease_ms=60_000))
                elif isinstance(said, Beat):
                    self.say(Acknowledged(number=said.number))
                self.heard.append(said)
                self._news.set()

    def say(self, message: Down) -> None:
        assert self._writer is not None
        self._writer.write(frame(message))

    def assign(self, tool: str, **more: Any) -> Assign:
        given: dict[str, Any] = {"arguments": {}, "time_ms": 60_000, **more}
        made = Assign(
            call_id=self._clock.new_id(),
            attempt=1,
            session_id=self._clock.new_id(),
            tool=tool,
            **given,
        )
        self.say(made)
        return made

    async def until(self, wanted: Callable[[Up], bool]) -> Any:
        async with asyncio.timeout(WAIT_S):
            while not (found := [each for each in self.heard if wanted(each)]):
                self._news.clear()
                await self._news.wait()
        return found[0]

    async def finished(self, assign: Assign) -> Finished:
        found: Finished = await self.until(
            lambda each: isinstance(each, Finished) and each.call_id == assign.call_id
        )
        return found


@asynccontextmanager
async def lying(
    folder: Path, *offered: str, slots: int = 1
) -> AsyncIterator[tuple[Liar, Home, "subprocess.Popen[bytes]"]]:
    """A worker in a process of its own, connected to a liar that has taken the daemon's place."""
    async with world(folder, []) as w:
        home = await w.enrol()
        liar = Liar()
        server = await asyncio.start_server(liar.meet, "127.0.0.1", 0, ssl=await _context(w))
        w.proxy._to = server.sockets[0].getsockname()[1]
        process = w.launch(home, *offered, slots=slots)
        try:
            await liar.until(lambda each: isinstance(each, Hello))
            yield liar, home, process
        finally:
            server.close()


async def _context(w: World) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=(await w.daemon.certificates.trust()).decode())
    context.load_cert_chain(await w.daemon.certificates.for_workers(DAEMON_NAME))
    return context


def shell(command: str) -> dict[str, Any]:
    return {"arguments": {"command": command, "timeout_s": 60}}


def test_a_tool_that_is_not_offered_is_not_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "fs.read") as (liar, home, _):
            refused = liar.assign("shell.run", **shell("touch made"))
            said = await liar.finished(refused)
            assert (said.outcome, "does not offer shell.run" in said.text) == ("denied", True)
            assert not list(home.work.rglob("made"))

    run_loop(scenario())


def test_no_more_calls_run_at_once_than_there_are_slots(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "shell.run", slots=2) as (liar, home, _):
            made = [liar.assign("shell.run", **shell("touch begun; sleep 300")) for _ in range(5)]
            outcomes = [await liar.finished(each) for each in made[2:]]
            assert {each.outcome for each in outcomes} == {"denied"}
            assert all("2 calls at once" in each.text for each in outcomes)
            await eventually(lambda: len(list(home.work.rglob("begun"))) == 2, "both have begun")
            assert {path.parent.name for path in home.work.rglob("begun")} == {
                each.session_id for each in made[:2]
            }
            # A place that is being freed is not taken before it is.
            liar.say(CancelCall(call_id=made[0].call_id, attempt=1))
            again = liar.assign("shell.run", **shell("true"))
            assert (await liar.finished(made[0])).outcome == "cancelled"
            assert (await liar.finished(again)).outcome == "ok"

    run_loop(scenario())


def test_more_files_than_a_call_may_carry_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "shell.run") as (liar, _, _):
            files = tuple(
                Shipped(f"f{number}", f"{number:x}" * 64, MOST_FILE_BYTES) for number in range(3)
            )
            said = await liar.finished(liar.assign("shell.run", **shell("true"), files=files))
            assert (said.outcome, "64 MiB" in said.text) == ("denied", True)
            assert not [each for each in liar.heard if isinstance(each, NeedContents)]

    run_loop(scenario())


def test_contents_that_nobody_asked_for_or_that_are_too_large_are_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "shell.run") as (liar, home, _):
            stray, large, fits = os.urandom(300_000), os.urandom(300_000), b"fits"
            for piece in pieces(digest(stray), stray):
                liar.say(piece)
            files = (Shipped("large", digest(large), 1), Shipped("fits", digest(fits), len(fits)))
            made = liar.assign("shell.run", **shell("true"), files=files)
            await liar.until(lambda each: isinstance(each, NeedContents))
            for content in (large, fits):
                for piece in pieces(digest(content), content):
                    liar.say(piece)
            await eventually(
                lambda: (home.state / "contents" / digest(fits)).exists(), "what fits is kept"
            )
            assert {path.name for path in (home.state / "contents").iterdir()} == {digest(fits)}
            assert not [
                each
                for each in liar.heard
                if isinstance(each, Finished) and each.call_id == made.call_id
            ]

    run_loop(scenario())


def test_arguments_that_are_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        value: Any = 1
        for _ in range(500):
            value = [value]
        async with lying(tmp_path, "fs.read") as (liar, _, _):
            said = await liar.finished(liar.assign("fs.read", arguments={"path": value}))
            assert (said.outcome, "nested deeper" in said.text) == ("denied", True)

    run_loop(scenario())


def test_a_call_has_the_time_that_its_tool_has_here_whatever_the_daemon_allows(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "shell.run") as (liar, _, _):
            short = liar.assign(
                "shell.run", arguments={"command": "sleep 300", "timeout_s": 300}, time_ms=300
            )
            assert (await liar.finished(short)).outcome == "timeout"
            liar.say(CallSettled(call_id=short.call_id, attempt=1))
            odd = liar.assign(
                "shell.run", arguments={"command": "sleep 300", "timeout_s": 300}, time_ms=-1
            )
            assert (await liar.finished(odd)).outcome == "timeout"

    run_loop(scenario())


def test_pieces_without_end_do_not_stop_the_beats(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "fs.read") as (liar, home, _):
            for _ in range(400):
                liar.say(Piece(digest="0" * 64, data=bytes(256 << 10)))
            said = await liar.finished(liar.assign("fs.read", arguments={"path": "x"}))
            assert said.outcome == "error"
            assert not list((home.state / "contents").iterdir())

    run_loop(scenario())


def test_sigterm_ends_it_with_everything_that_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lying(tmp_path, "shell.run", slots=2) as (liar, home, process):
            # A number that no other sleep on this machine has.
            seconds = (
                f"3{os.getpid()}{os.urandom(2).hex().translate(str.maketrans('abcdef', '123456'))}"
            )
            made = liar.assign(
                "shell.run", **shell(f"touch begun; sleep {seconds} & sleep {seconds}")
            )
            folder = Path(home.session(made.session_id))
            await eventually(lambda: (folder / "begun").exists() and running(seconds), "it sleeps")
            process.send_signal(signal.SIGTERM)
            # The daemon confirms nothing.
            await asyncio.get_running_loop().run_in_executor(None, process.wait, WAIT_S)
            assert process.returncode == 0
            assert not running(seconds)

    run_loop(scenario())


def running(seconds: str) -> list[str]:
    """Processes that sleep for exactly so long."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(str(each))
        except OSError:
            continue
    return found
