"""Real journals in temporary folders, on real or failing disks."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from palyra.core import ids
from palyra.core.events import AnyEvent, SessionChanged
from palyra.store import tape
from palyra.store.database import Database, Tx
from tests import stores

T = TypeVar("T")


class FakeClock:
    """Time that stands still unless a test moves it."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


@asynccontextmanager
async def opened(path: Path, *, vfs: str | None = None) -> AsyncIterator[Database]:
    db = Database(stores.dialect(path, vfs=vfs), FakeClock())
    db.open()
    try:
        yield db
    finally:
        await db.close()


def run(work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(bounded())


def note(text: str) -> SessionChanged:
    return SessionChanged(title=text)


def noting(tape_id: str, *texts: str) -> Callable[[Tx], Any]:
    events: list[AnyEvent] = [note(text) for text in texts]
    return lambda tx: tape.append(tx, tape_id, "user:owner", events)


def new_id() -> str:
    return ids.make(1, os.urandom(10))


class FailingDisk(apsw.VFS):
    """SQLite's own file access, with every n-th write or sync failing from a given moment on.

    `below` is the one underneath; it must be named where this one becomes the default.
    """

    def __init__(self, name: str, below: str = "") -> None:
        self.name = name
        self.below = below
        self.calls = 0
        self.fail_at = 0
        self.error: type[apsw.Error] = apsw.IOError
        self.sticky = False
        super().__init__(name, below)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _FailingFile(self, name, flags)

    def arm(self, fail_at: int, error: type[apsw.Error], *, sticky: bool = False) -> None:
        self.calls, self.fail_at, self.error, self.sticky = 0, fail_at, error, sticky

    def check(self) -> None:
        if not self.fail_at:
            return
        self.calls += 1
        if self.calls == self.fail_at or (self.sticky and self.calls >= self.fail_at):
            raise self.error("the test's disk failed")


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(disk.below, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.check()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        # It fails or it does not; the machine's own disk need not be waited for, no test of these
        # cuts the power.
        self._disk.check()

    def xTruncate(self, size: int) -> None:
        self._disk.check()
        super().xTruncate(size)
