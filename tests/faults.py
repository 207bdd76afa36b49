"""Faults to put under a daemon in the test's own loop: a store that is slow, a disk that is full, a
process that dies.

The daemon's own parts stay real; what is held up or broken is what lies below them. Every wait is
bounded.
"""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.agent import session_cache
from palyra.agent.session_cache import MOST_IDLE
from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, runs
from palyra.store.approvals import Approval
from palyra.store.database import Appended, Tx
from palyra.store.runs import RunRow
from palyra.store.sqlite_files import inspect
from tests.crash.scenarios import PERMIT_ALL, call
from tests.inprocess import TERMINAL, daemon, session, until
from tests.journals import run as run_loop

LONGEST_S = 60.0
WRITING = [Turn(calls=(call("fs.write", path="a.txt", content="x"),)), Turn(text=("ok",))]


def in_daemon(
    folder: Path,
    model: Any,
    scenario: Callable[[Daemon], Awaitable[None]],
    settings: str = "",
    *,
    window: int = 128_000,
) -> None:
    """Run a scenario in a daemon, and verify the journal it leaves behind."""
    _run(folder, model, scenario, settings, window)
    _verify(folder)


def _run(
    folder: Path,
    model: Any,
    scenario: Callable[[Daemon], Awaitable[None]],
    settings: str,
    window: int = 128_000,
) -> None:
    async def inside() -> None:
        async with daemon(folder, model, settings, window=window) as opened:
            await scenario(opened)

    run_loop(inside())


def _verify(folder: Path) -> None:
    report = inspect(folder / "home/journal.db")
    assert report.ok, report.bad


def permit_all(folder: Path) -> None:
    """No call of this daemon needs a person."""
    policies = folder / "home/policies"
    policies.mkdir(parents=True)
    (policies / "all.cedar").write_text(PERMIT_ALL)


def long_and_next(hold: StreamPause) -> ScriptedModel:
    """A model that stands still in its answer to "long", and answers "next" at once."""
    script = Script({"long": (Turn(text=("a",), hold="h"),), "next": (Turn(text=("fine",)),)})
    return ScriptedModel(script, holds={"h": hold})


async def row(d: Daemon, run_id: str) -> RunRow:
    found = await d.db.read(lambda tx: runs.find(tx, run_id))
    assert found is not None, f"there is no run {run_id}"
    return found


async def pending(d: Daemon) -> list[Approval]:
    return await d.db.read(lambda tx: approvals.listing(tx, OWNER, pending=True))


async def asked(d: Daemon, session_id: str) -> Approval:
    """The one approval that is pending, once it is."""
    await until(d, session_id, "approval.requested")
    (approval,) = await pending(d)
    return approval


async def ends(d: Daemon, session_id: str, run_id: str) -> Entry:
    """The run's last entry; a run that nobody brings to its end is a failure that says in what
    state it lies.
    """
    try:
        return await until(d, session_id, *TERMINAL, run_id=run_id, seconds=LONGEST_S)
    except TimeoutError:
        left = await row(d, run_id)
        raise AssertionError(
            f"the run is {left.state}, and {d.runs.working} runs are being worked on"
        ) from None


async def eventually(is_so: Callable[[], object], what: str) -> None:
    """For what no entry on a tape tells: another thread, another process, a counter."""
    deadline = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < deadline, f"it never came about that {what}"
        await asyncio.sleep(0.005)


async def reached(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), LONGEST_S)


def at_commit(d: Daemon, kind: str, act: Callable[[], None]) -> None:
    """Do something once: in the moment when an entry of this kind is durable and everybody has been
    told.
    """

    def told(appended: list[Appended]) -> None:
        if any(entry.kind == kind for entry in appended):
            leave()
            act()

    leave = d.db.on_commit.connect(told)


class HeldWriter:
    """While it is held nothing commits; what was handed over meanwhile lands in one batch, as
    behind one slow fsync.
    """

    def __init__(self, d: Daemon) -> None:
        self._db = d.db
        self._runs = d.runs
        self._gate = threading.Event()
        self.held = asyncio.Event()

    def hold(self) -> None:
        busy = threading.Event()
        if self._runs._heart is not None:
            # On a slow machine its beat would be taken for a step that is waited for.
            self._runs._heart.cancel()

        def wait(tx: Tx) -> None:
            busy.set()
            self._gate.wait(LONGEST_S)

        self._db.write(wait)
        assert busy.wait(LONGEST_S)
        self.held.set()

    def release(self) -> None:
        self._gate.set()

    async def handed_over(self, steps: int) -> None:
        """Wait until so many steps lie before the writer."""
        await eventually(
            lambda: self._db._jobs.qsize() >= steps, f"{steps} steps wait for the writer"
        )


@contextmanager
def held_writer(d: Daemon) -> Iterator[HeldWriter]:
    writer = HeldWriter(d)
    writer.hold()
    try:
        yield writer
    finally:
        writer.release()


def hold_writer_at(d: Daemon, kind: str) -> HeldWriter:
    """Hold the writer from the moment when an entry of this kind is committed."""
    writer = HeldWriter(d)
    at_commit(d, kind, writer.hold)
    return writer


class SlowLoading:
    """Reading a session back into memory stands still until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begun, self._gate = threading.Event(), threading.Event()
        real = session_cache._read

        def slow(tx: Tx, session_id: str) -> Any:
            self._begun.set()
            self._gate.wait(LONGEST_S)
            return real(tx, session_id)

        monkeypatch.setattr(session_cache, "_read", slow)
        # A submit that reads the session along would wait on the writer's thread.
        monkeypatch.setattr(session_cache, "_SHORT_TAPE", 0)

    async def begun(self) -> None:
        await eventually(self._begun.is_set, "a session is loaded")

    def release(self) -> None:
        self._gate.set()


async def crowd_out(d: Daemon) -> None:
    """Make as many sessions as are kept in memory: those that nobody works on have to be read
    again.
    """
    await asyncio.gather(*(session(d) for _ in range(MOST_IDLE + 1)))


class FullDisk(apsw.VFS):
    """SQLite's own file access, on a disk that has no room, or another `error`, while it is
    `full`.
    """

    def __init__(self, below: str) -> None:
        self.below = below
        self.full = False
        self.failed = 0
        self.error: apsw.Error = apsw.FullError("database or disk is full")
        super().__init__("full disk", below)

    def fill(self) -> None:
        self.full = True

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _FileOnFullDisk(self, name, flags)


class _FileOnFullDisk(apsw.VFSFile):
    def __init__(self, disk: FullDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(disk.below, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        if self._disk.full:
            self._disk.failed += 1
            raise self._disk.error
        super().xWrite(data, offset)


def on_full_disk(
    folder: Path,
    model: Any,
    scenario: Callable[[Daemon, FullDisk], Awaitable[None]],
    settings: str = "",
) -> None:
    """Run a scenario in a daemon whose journal lies on a disk that the scenario can fill."""

    async def inside(d: Daemon) -> None:
        try:
            await scenario(d, disk)
        finally:
            disk.full = False
            # Have a writing connection again: a read-only one that closes last cannot take the lock
            # it tries for.
            await d.db.write(lambda tx: None)

    usual = apsw.vfs_names()[0]
    disk = FullDisk(usual)
    apsw.set_default_vfs("full disk")
    try:
        _run(folder, model, inside, settings)
    finally:
        apsw.set_default_vfs(usual)
        disk.unregister()
    _verify(folder)


class Killed(BaseException):
    """The process is dead: nothing that it still tries has any effect, whatever its `finally`
    says.
    """


class Life:
    """Counts the moments before and after each file operation, and is over at the chosen one."""

    OPERATIONS = ("open", "write", "fsync", "link", "rename", "replace", "unlink")

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self.moments = 0

    @property
    def over(self) -> bool:
        return self.moments >= self._die_at

    def pass_moment(self) -> None:
        self.moments += 1
        if self.over:
            raise Killed

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            self.pass_moment()
            result = real(*arguments, **named)
            try:
                self.pass_moment()
            except Killed:
                if name == "open":
                    os.close(result)
                raise
            return result

        return operation


@contextmanager
def killed_at(moment: int) -> Iterator[Life]:
    """What happens in this block is cut off at a moment, if it has so many."""
    life = Life(moment)
    with pytest.MonkeyPatch.context() as patch:
        for name in Life.OPERATIONS:
            patch.setattr(os, name, life.around(name, getattr(os, name)))
        try:
            yield life
        except Killed:
            return
