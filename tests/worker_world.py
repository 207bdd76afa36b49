"""A daemon with its door for workers, workers in this process or in one of their own, and a bad
line between them.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palyra.api import listen_sockets
from palyra.core.events import Entry
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.workers.door.door import WorkerListener
from palyra.features.workers.node import enrol as node_enrol
from palyra.features.workers.node.home import Home
from palyra.features.workers.node.worker import Worker
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.system.clock import Clock
from tests.faults import permit_all
from tests.inprocess import body, daemon, entries

REHEARSED = ("test.pure", "test.idempotent", "test.once", "test.reversible")
LEASE_MS = 60_000
_RUN = """import asyncio, sys
from pathlib import Path
from palyra.features.workers.node import process
asyncio.run(process.run(Path(sys.argv[1]), tuple(sys.argv[2].split(",")), slots=int(sys.argv[3]), say=print, rehearsal=True))
"""


class Proxy:
    """A line between a worker and the daemon that can be cut, held up, and made to deliver what is
    old late.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        # Cleared: nothing gets through, in this direction.
        self.up, self.down = asyncio.Event(), asyncio.Event()
        self.up.set()
        self.down.set()
        self.closed = False
        self.connected = 0
        self.sent_down = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.close()
            return
        self.connected += 1
        there_reader, there = await asyncio.open_connection("127.0.0.1", self._to)
        self._pairs.append((writer, there))
        for pump in (
            self._pump(reader, there, self.up),
            self._pump(there_reader, writer, self.down, count=True),
        ):
            task = asyncio.ensure_future(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
        *,
        count: bool = False,
    ) -> None:
        with suppress(OSError):
            # In odd pieces: what is one message here is several there, or a part of one.
            while data := await reader.read(40_009):
                self.sent_down += len(data) if count else 0
                await gate.wait()
                writer.write(data)
                await writer.drain()
            writer.close()

    def cut(self) -> None:
        """Both ends see that the line is gone."""
        for one, other in self._pairs:
            for writer in (one, other):
                writer.transport.abort()
        self._pairs.clear()

    def part(self) -> list[asyncio.StreamWriter]:
        """Only the worker sees that the line is gone; what it had sent may still arrive, by
        `up`.
        """
        there = [other for _, other in self._pairs]
        for one, _ in self._pairs:
            one.transport.abort()
        self._pairs.clear()
        return there

    async def close(self) -> None:
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        if self._server is not None:
            self._server.close()


@dataclass
class World:
    daemon: Daemon
    door: WorkerListener
    folder: Path
    proxy: Proxy
    running: list["asyncio.Task[None]"] = field(default_factory=list)
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    async def enrol(self, name: str = "attic") -> Home:
        made = await self.daemon.workers.desk.enrol(OWNER, name)
        home = Home(self.folder / name)
        await node_enrol.enrol(home, f"127.0.0.1:{self.proxy.port}", made.code, made.authority)
        return home

    async def start(self, home: Home, *offered: str) -> "asyncio.Task[None]":
        """A worker in this process, connected."""
        worker = Worker(
            home,
            offered or ("shell.run", *REHEARSED),
            slots=2,
            say=lambda text: None,
            rehearsal=True,
        )
        task = asyncio.create_task(worker.run())
        self.running.append(task)
        await self.connected(home.identity().name, task)
        return task

    def launch(self, home: Home, *offered: str, slots: int = 4) -> "subprocess.Popen[bytes]":
        """A worker in a process of its own, which can be killed."""
        names = ",".join(offered or REHEARSED)
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(home.folder), names, str(slots)],
            stdout=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    async def connected(self, name: str, task: "asyncio.Task[None] | None" = None) -> None:
        station = self.daemon.workers.presence.station(name)
        async with asyncio.timeout(40):
            while not station.there or station.hello is None:
                waiting = asyncio.ensure_future(station.changed.wait())
                await asyncio.wait(
                    [waiting, *([task] if task else [])], return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                if task is not None and task.done():
                    task.result()

    async def system(self, kind: str) -> list[dict[str, Any]]:
        """What the system's tape says of one kind."""
        await self.daemon.db.write(lambda tx: None)
        return [body(entry) for entry in await self.entries(SYSTEM_TAPE) if entry.kind == kind]

    async def told(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """The same, once there are so many."""
        committed = asyncio.Event()
        self.daemon.gateway.on_commit.connect(lambda appended: committed.set())
        async with asyncio.timeout(20):
            while len(found := await self.system(kind)) < count:
                await committed.wait()
                committed.clear()
        return found

    async def entries(self, tape: str) -> list[Entry]:
        return await entries(self.daemon, tape)


@asynccontextmanager
async def opened(daemon_: Daemon, folder: Path, *, port: int = 0) -> AsyncIterator[World]:
    """A door and a line, on a daemon that is there already."""
    door = WorkerListener(
        daemon_.workers, daemon_.certificates, daemon_.clock, listen_sockets.bind("127.0.0.1", port)
    )
    await door.open()
    proxy = Proxy(door.port)
    await proxy.open()
    world = World(daemon_, door, folder, proxy)
    try:
        yield world
    finally:
        for task in world.running:
            task.cancel()
        if world.running:
            await asyncio.wait(world.running, timeout=10)
        for process in world.processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(10)
        await proxy.close()
        await door.close()


@asynccontextmanager
async def world(
    folder: Path,
    script: Sequence[Turn] | dict[str, Sequence[Turn]],
    *,
    lease_ms: int = LEASE_MS,
    port: int = 0,
    clock: Clock | None = None,
) -> AsyncIterator[World]:
    permit_all(folder)
    async with (
        daemon(
            folder,
            script,
            f"[workers]\nlease_ms = {lease_ms}\n[memory]\nembeddings = false\n",
            clock=clock,
        ) as opened_daemon,
        opened(opened_daemon, folder, port=port) as found,
    ):
        yield found


async def arrived(fifo: Path) -> int:
    """Wait until a tool stands at a FIFO; the descriptor to release it with."""
    async with asyncio.timeout(20):
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                await asyncio.sleep(0.005)  # Another process opens it: there is nothing to wait on.


def release(descriptor: int) -> None:
    os.write(descriptor, b"x")
    os.close(descriptor)
