"""Workers in odd moments: greeted first, given things once, forgotten when nobody waits for
them.
"""

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.core.errors import Unavailable
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.core.ports import CallContext
from palyra.features.workers import rows as workers_rows
from palyra.features.workers.dispatch import Dispatcher
from palyra.features.workers.node.worker import Worker
from palyra.features.workers.presence import Presence, WorkerRefusalLog
from palyra.features.workers.protocol import (
    PROTOCOL,
    Assign,
    CancelCall,
    Down,
    Hello,
    TakeBack,
    Welcome,
)
from palyra.features.workers.tools import Errand
from palyra.models.scripted import Turn
from palyra.store import tape
from tests.clocks import HeldClock
from tests.faults import eventually
from tests.journals import FailingDisk, new_id, opened
from tests.journals import run as run_loop
from tests.worker_world import world

HELLO = [Turn(text=("hello",))]


class Line:
    """The daemon's end of a connection to a worker."""

    address = "here"

    def __init__(self) -> None:
        self.posted: list[Down] = []

    def post(self, message: Down) -> None:
        self.posted.append(message)

    async def send(self, message: Down) -> None:
        self.posted.append(message)

    def close(self) -> None:
        return


def test_a_worker_that_comes_back_is_greeted_before_it_is_given_anything(tmp_path: Path) -> None:
    """A call is being leased on a connection that was lost: it goes over the next one, behind the
    greeting, and once.
    """

    async def inside() -> None:
        async with opened(tmp_path / "j.db") as db:
            clock, first, second = HeldClock(), Line(), Line()
            hello = Hello(protocol=PROTOCOL, version="1", instance=new_id(), tools=("test.pure",))
            presence = Presence(db, clock, WorkerRefusalLog(db, clock), lease_ms=60_000)
            await db.write(partial(workers_rows.admit, name="attic", fingerprint="f"))
            row = await db.read(partial(workers_rows.get, name="attic"))
            await presence.join(row, first, hello)
            busy, gate = threading.Event(), threading.Event()
            db.write(lambda tx: (busy.set(), gate.wait(10)))
            await eventually(busy.is_set, "the store is slow")
            errand = Errand(tool="test.pure", arguments={}, time_ms=1_000, tier="none")
            context = CallContext(
                principal=OWNER,
                session_id=new_id(),
                run_id=new_id(),
                call_id=new_id(),
                workspace="",
            )
            performing = asyncio.create_task(
                Dispatcher(db, clock, presence).perform("attic", errand, context, resume=False)
            )
            await eventually(lambda: db._jobs.qsize() >= 1, "the call is being leased")
            joining = asyncio.create_task(presence.join(row, second, hello))
            await eventually(lambda: db._jobs.qsize() >= 2, "the worker comes back")
            gate.set()
            await joining
            assert [type(each) for each in second.posted] == [Welcome, Assign]
            performing.cancel()
            await asyncio.wait([performing])
            presence.close()

    run_loop(inside())


def test_a_worker_that_is_not_greeted_yet_is_not_asked_to_take_anything_back(
    tmp_path: Path,
) -> None:
    """Nothing is said to it before its greeting: whoever asked would wait a minute for the answer
    to what was never sent.
    """

    async def inside() -> None:
        async with opened(tmp_path / "j.db") as db:
            clock = HeldClock()
            hello = Hello(
                protocol=PROTOCOL, version="1", instance=new_id(), tools=("fs.write",), undoes=True
            )
            presence = Presence(db, clock, WorkerRefusalLog(db, clock), lease_ms=60_000)
            await db.write(partial(workers_rows.admit, name="attic", fingerprint="f"))
            row = await db.read(partial(workers_rows.get, name="attic"))
            await presence.join(row, Line(), hello)
            busy, gate = threading.Event(), threading.Event()
            db.write(lambda tx: (busy.set(), gate.wait(20)))
            await eventually(busy.is_set, "the store is slow")
            joining = asyncio.create_task(presence.join(row, Line(), hello))
            await eventually(lambda: db._jobs.qsize() >= 1, "the worker comes back")
            async with asyncio.timeout(20):
                with pytest.raises(Unavailable, match="not connected"):
                    await Dispatcher(db, clock, presence).take_back(
                        "attic", new_id(), (new_id(),), look=True, force=False
                    )
            gate.set()
            await joining
            presence.close()

    run_loop(inside())


@pytest.mark.parametrize("how", ["revoked", "not heard any more"])
def test_who_waits_for_a_worker_that_is_put_out_is_told_at_once(tmp_path: Path, how: str) -> None:
    async def inside() -> None:
        async with opened(tmp_path / "j.db") as db:
            clock, line = HeldClock(), Line()
            hello = Hello(
                protocol=PROTOCOL, version="1", instance=new_id(), tools=("fs.write",), undoes=True
            )
            presence = Presence(db, clock, WorkerRefusalLog(db, clock), lease_ms=60_000)
            await db.write(partial(workers_rows.admit, name="attic", fingerprint="f"))
            await presence.join(await db.read(partial(workers_rows.get, name="attic")), line, hello)
            taking = asyncio.create_task(
                Dispatcher(db, clock, presence).take_back(
                    "attic", new_id(), (), look=True, force=False
                )
            )
            await eventually(lambda: isinstance(line.posted[-1], TakeBack), "it is asked")
            if how == "revoked":
                await presence.drop("attic")
            else:
                await eventually(lambda: clock.next_ms > 0, "its lease is watched")
                clock.advance(60_000)
            with pytest.raises(Unavailable, match="is away"):
                await asyncio.wait_for(taking, 20)
            presence.close()

    run_loop(inside())


def test_a_worker_forgets_a_call_that_is_cancelled_in_the_moment_it_is_given(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        async with world(tmp_path, HELLO) as w:
            worker = Worker(
                await w.enrol(), ("test.pure",), slots=1, say=lambda text: None, rehearsal=True
            )
            given = Assign(
                call_id=new_id(),
                attempt=1,
                session_id=new_id(),
                tool="test.pure",
                arguments={},
                time_ms=1_000,
            )
            line: Any = Line()
            # Both came in one read.
            worker._hear(line, given)
            worker._hear(line, CancelCall(call_id=given.call_id, attempt=1))
            worker.leave()
            await asyncio.wait_for(worker._left(), 30)

    run_loop(inside())


def test_a_worker_that_could_not_be_recorded_is_not_there(tmp_path: Path) -> None:
    disk = FailingDisk("no room for workers")

    async def inside() -> None:
        async with opened(tmp_path / "j.db", vfs=disk.name) as db:
            clock, hello = HeldClock(), Hello(protocol=PROTOCOL, version="1", instance=new_id())
            presence = Presence(db, clock, WorkerRefusalLog(db, clock), lease_ms=60_000)
            await db.write(partial(workers_rows.admit, name="attic", fingerprint="f"))
            row = await db.read(partial(workers_rows.get, name="attic"))
            disk.arm(1, apsw.FullError, sticky=True)
            with pytest.raises(Unavailable):
                await presence.join(row, Line(), hello)
            disk.arm(0, apsw.FullError)
            station = presence.station("attic")
            assert (station.link, station.present, station.free) == (None, False, False)
            await presence.join(row, Line(), hello)
            told = await db.read(lambda tx: [each.kind for each in tape.after(tx, SYSTEM_TAPE, 0)])
            assert (station.free, told) == (True, ["worker.joined"])
            presence.close()

    run_loop(inside())
