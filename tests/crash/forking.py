"""Daemons that are ended at every point of what they do, as forked children of a process that has
everything imported.

A point is the moment before or after a commit, or before or after a file operation.

What `kill -9` leaves of a daemon are its files. So one daemon goes through the whole work; at every
point it is stopped, all its threads at once, and its files are kept: they are those of a daemon
that was killed there. One start from each is then enough, and one for points that follow each other
without a byte written between them.
"""

import asyncio
import gc
import hashlib
import json
import os
import shutil
import signal
import stat
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import palyra.serve.wiring.foundation
from palyra.store.database import Database
from palyra.system import cpu_affinity, thread_pool

# Those that tools use.
FILES = ("rename", "replace", "fsync", "unlink")
Work = Callable[[], Coroutine[Any, Any, Any]]
Counts = Callable[[str, tuple[Any, ...]], bool]
_THREAD_SECONDS = 10


def ready_to_fork(work: Work | None = None) -> None:
    """Do once what each child would do for the first time; then a child costs milliseconds.

    `work` is what they will do, in a folder that nobody looks at: it imports, compiles and reads
    what is read once in a process.
    """
    _keep_together()
    if work is not None:
        asyncio.run(work())
        # A child has none of these threads, so none may hold anything when it is made.
        thread_pool.everyday.close()
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join(_THREAD_SECONDS)
    # What is there is never looked at again: a child that counted references in it would copy it
    # page by page.
    gc.collect()
    gc.freeze()


def _keep_together() -> None:
    """As the daemon does, but two programs of tests that run at once do not choose the same
    processor.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if number.isdecimal() and hasattr(os, "sched_setaffinity"):
        given = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {given[int(number) % len(given)]})
    else:
        cpu_affinity.keep_together()


class Points:
    """Counts points and dies at the chosen one, or stops at each until it is told to go on. While
    it is not `on` there are none.
    """

    def __init__(self, die_at: int = 0, *, stops: bool = False, on: bool = True) -> None:
        self.count = 0
        self.on = on
        self._die_at = die_at
        self._stops = stops

    def reach(self) -> None:
        if not self.on:
            return
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._stops:
            # To this very thread: what is sent to the process, another thread may notice, and this
            # one goes on until it does.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def mortal(self) -> type[Database]:
        """A journal with points around every commit."""
        reach = self.reach

        class Mortal(Database):
            def _commit(self, batch: list[Any]) -> None:
                reach()
                super()._commit(batch)
                reach()

        return Mortal

    def around(self, name: str, counts: Counts | None = None, *, after: bool = True) -> None:
        """Put points around a function of `os`, where `counts` says so. Without `after`: the one
        after is before the next.
        """
        real = getattr(os, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            counted = counts is None or counts(name, arguments)
            if counted:
                self.reach()
            result = real(*arguments, **named)
            if counted and after:
                self.reach()
            return result

        setattr(os, name, wrapped)


def arm(
    points: Points,
    operations: tuple[str, ...] = FILES,
    counts: Counts | None = None,
    *,
    after: bool = True,
) -> None:
    """Put points around every commit of the daemon and around file operations."""
    setattr(palyra.serve.wiring.foundation, "Database", points.mortal())  # noqa: B010  a name that the module only imports
    for name in operations:
        points.around(name, counts, after=after)


def fork(work: Work, seconds: int) -> int:
    """The id of a child that does the work. One that is not done after `seconds` ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(seconds)
            asyncio.run(work())
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return pid


def forked(work: Work, seconds: int, stopped: Callable[[], None] | None = None) -> int:
    """How a child that did the work ended. Whenever it stops, `stopped` is called, and then it goes
    on.
    """
    pid = fork(work, seconds)
    while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
        if stopped is not None:
            stopped()
        os.kill(pid, signal.SIGCONT)
    return status


_TRACE = 3_000


def told(
    report: Path, work: Work, seconds: int, stopped: Callable[[], None] | None = None
) -> tuple[int, Any]:
    """The same, and what the work returned, by way of a file; `error` if it failed."""
    report.unlink(missing_ok=True)

    async def tell() -> None:
        try:
            report.write_text(json.dumps(await work()))
        except BaseException:
            report.write_text(json.dumps({"error": traceback.format_exc()[-_TRACE:]}))
            raise

    status = forked(tell, seconds, stopped)
    return status, json.loads(report.read_text()) if report.exists() else {}


def killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


class Copies:
    """What lies in `place` whenever somebody who works there is stopped."""

    def __init__(self, place: Path, kept: Path) -> None:
        self._place = place
        self._kept = kept
        self._last = b""
        self.points = 0
        self.states = 0

    def keep(self) -> None:
        self.points += 1
        if (state := _state(self._place)) != self._last:
            self._last = state
            self.states += 1
            shutil.copytree(self._place, self._kept / str(self.points), symlinks=True)

    def each(self) -> Iterator[str]:
        """Put them back one after another where they were, because much knows where it lies. Each
        is named by its first point.
        """
        for copy in sorted(self._kept.iterdir(), key=lambda each: int(each.name)):
            shutil.rmtree(self._place)
            copy.rename(self._place)
            yield copy.name


def _state(place: Path) -> bytes:
    """Everything that a start could find there."""
    found = hashlib.sha256()
    for folder, folders, files in os.walk(place):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            # The index of SQLite's log is made anew by whoever opens it first.
            if name.endswith("-shm"):
                continue
            about = os.lstat(path)
            found.update(f"{path}\0{about.st_mode}\0{about.st_size}\0".encode())
            if os.path.islink(path):
                found.update(os.readlink(path).encode())
            elif stat.S_ISREG(about.st_mode):
                with open(path, "rb") as content:
                    found.update(content.read())
    return found.digest()
