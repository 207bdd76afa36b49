"""Tells when files of one folder change. On Linux the kernel says so itself: nothing looks while
nothing happens.
"""

import asyncio
import ctypes
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

log = logging.getLogger("palyra.policy")

Ours = Callable[[str], bool]

# From <sys/inotify.h>: written and closed, moved from and to, created, deleted; the folder itself
# deleted or moved.
_MASK: Final = 0x008 | 0x040 | 0x080 | 0x100 | 0x200 | 0x400 | 0x800
_OVERFLOW: Final = 0x4000
_HEAD: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024
# What does not stop changing is told of all the same.
_MOST_ROUNDS: Final = 10


async def changes(folder: Path, ours: Ours, quiet_ms: int) -> AsyncIterator[None]:
    """Yields when something of ours has changed and nothing more has for a moment; for ever. `ours`
    is asked about names.
    """
    kernel = _kernel(folder, ours) if sys.platform == "linux" else None
    if kernel is None:
        async for _ in _elsewhere(folder, ours, quiet_ms):
            yield
        return
    try:
        while True:
            await kernel.changed.wait()
            rounds = 0
            while kernel.changed.is_set() and rounds < _MOST_ROUNDS:
                # An editor saves in several steps.
                kernel.changed.clear()
                rounds += 1
                await asyncio.sleep(quiet_ms / 1000)
            yield
    finally:
        kernel.close()


def _kernel(folder: Path, ours: Ours) -> "_Kernel | None":
    try:
        return _Kernel(folder, ours)
    except OSError as error:
        log.warning(
            "the kernel watches no more folders (fs.inotify in sysctl): %s is looked at instead"
            " (%s)",
            folder,
            error,
        )
        return None


async def _elsewhere(folder: Path, ours: Ours, quiet_ms: int) -> AsyncIterator[None]:
    from watchfiles import awatch  # costs start-up time that only who needs it should pay

    def filtered(_: object, path: str) -> bool:
        return ours(Path(path).name)

    looking = sys.platform == "linux"
    async for _ in awatch(
        folder,
        watch_filter=filtered,
        debounce=quiet_ms,
        step=250,
        recursive=False,
        force_polling=looking,
        poll_delay_ms=2_000,
    ):
        yield


class _Kernel:
    """An inotify descriptor on a folder, and on the one above it: a folder that was put in its
    place is found there.
    """

    def __init__(self, folder: Path, ours: Ours) -> None:
        self.changed = asyncio.Event()
        self._folder = folder
        self._ours = ours
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _why()
        self._above = self._watch(folder.parent)
        self._inside = self._watch(folder)
        if self._inside < 0:
            error = _why()
            os.close(self._fd)
            raise error
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def _watch(self, path: Path) -> int:
        """Below 0: it is not there now."""
        watched: int = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _MASK)
        return watched

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watched, mask, _, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = os.fsdecode(data[at : at + size].rstrip(b"\0"))
            at += size
            if mask & _OVERFLOW:
                self.changed.set()
            elif watched == self._above:
                if name == self._folder.name:
                    # Another folder may have its name now.
                    self._inside = self._watch(self._folder)
                    self.changed.set()
            elif watched == self._inside and (not name or self._ours(name)):
                self.changed.set()

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)


def _why() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
