"""Tells when files of one folder change. On Linux the kernel says so itself: nothing looks while
nothing happens.

The operator's policy files: read, tried, saved, removed. What would not load with everything
else is not written.

A file is replaced whole, under the same lock as "always" answers, and only if it still is what was
edited.

Reloads the policies when their files change. A change that does not load is reported and changes
nothing.
"""

import asyncio
import ctypes
import fcntl
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from palyra.core.errors import Conflict, NotFound
from palyra.policy import policy_set, sources
from palyra.policy.policy_set import GROUPS_FILE, SHIPPED, PolicySet
from palyra.policy.sources import PolicyProblem
from palyra.policy.store import PolicyStore, Reloaded


class PolicyFile(Struct, frozen=True):
    """`digest` is of the text; who saves names the one that was edited."""

    name: str
    text: str
    digest: str
    shipped: bool = False


def listing(folder: Path | None, preset: str) -> list[PolicyFile]:
    """The operator's files by name, then the shipped ones that are in force with them."""
    own: list[PolicyFile] = []
    if folder is not None and folder.is_dir():
        for path in sorted((*folder.glob("*.cedar"), *folder.glob(GROUPS_FILE))):
            # What is not text is shown as far as it is: only so can it be mended here.
            text = path.read_bytes().decode("utf-8", "replace")
            own.append(PolicyFile(path.name, text, digest(text)))
    shipped = [
        (name, (SHIPPED / name).read_text("utf-8")) for name in (f"{preset}.cedar", "labels.cedar")
    ]
    return [*own, *(PolicyFile(name, text, digest(text), shipped=True) for name, text in shipped)]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def tried(
    folder: Path | None, preset: str, name: str, text: str | None
) -> tuple[PolicySet | None, list[PolicyProblem]]:
    """The set as it would be with this text in this file, or without the file; or what is wrong,
    with plain names of files.
    """
    found, problems = policy_set.build(folder, preset, {name: text})
    return found, [
        PolicyProblem(problem.file.rpartition("/")[2], problem.line, problem.message)
        for problem in problems
    ]


def save(folder: Path, preset: str, name: str, text: str, was: str) -> PolicyFile:
    """Put a text into force. `was` is the digest of what was edited, empty for a new file."""
    with _locked(folder):
        _check_unchanged(folder / name, was)
        found, problems = tried(folder, preset, name, text)
        if found is None:
            raise sources.refuse(problems)
        # Not *.cedar, so that a half-written file is never read as a policy.
        fresh = folder / f".{name}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / name)
    return PolicyFile(name, text, digest(text))


def remove(folder: Path, preset: str, name: str, was: str) -> None:
    with _locked(folder):
        path = folder / name
        if not path.is_file():
            raise NotFound(f"there is no policy file {name}", name=name)
        _check_unchanged(path, was)
        found, problems = tried(folder, preset, name, None)
        if found is None:
            raise sources.refuse(problems)
        path.unlink()


def _check_unchanged(path: Path, was: str) -> None:
    now = digest(path.read_bytes().decode("utf-8", "replace")) if path.is_file() else ""
    if now != was:
        how = (
            "was changed meanwhile"
            if now and was
            else "is there already"
            if now
            else "is no longer there"
        )
        raise Conflict(f"{path.name} {how}: load it again, then save", name=path.name)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
        os.fsync(place)
    finally:
        os.close(place)


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


_AGAIN_S = 5.0

OnChange = Callable[[PolicyStore, Reloaded], Awaitable[None]]


async def watch(
    stores: Iterable[PolicyStore | None], on_change: OnChange, quiet_ms: int = 300
) -> None:
    """Watch the stores' folders until the task is cancelled. `on_change` hears of new sets and of
    problems.
    """
    async with asyncio.TaskGroup() as group:
        for store in stores:
            if store is not None and store.folder is not None:
                group.create_task(_watch(store, on_change, quiet_ms))


async def _watch(store: PolicyStore, on_change: OnChange, quiet_ms: int) -> None:
    assert store.folder is not None
    last: Reloaded | None = None
    missed = False
    while True:
        try:
            if missed:
                last = await _reload(store, on_change, last)
            async for _ in changes(store.folder, _is_ours, quiet_ms):
                last = await _reload(store, on_change, last)
        except Exception:
            # Who changes a policy relies on it: the watch must not end in silence.
            log.exception(
                "the policies in %s cannot be watched; it is tried again in a moment", store.folder
            )
            missed = True
            await asyncio.sleep(_AGAIN_S)


async def _reload(store: PolicyStore, on_change: OnChange, last: Reloaded | None) -> Reloaded:
    before = store.version
    found = await asyncio.to_thread(store.reload)
    # An editor that saves in three steps wakes us three times; tell only what is news.
    if found.version != before or (found.problems and found != last):
        await on_change(store, found)
    return found


def _is_ours(name: str) -> bool:
    return name.endswith(".cedar") or name == "groups.toml"
