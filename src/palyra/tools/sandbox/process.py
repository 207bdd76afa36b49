"""A running tree: its output as it comes, its end, and the certainty that nothing of it is left.

The rule: whoever waits for a tree and is cancelled kills it first; `wait` returns when the whole
tree is dead, not only its root.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from palyra.core.signals import Signal
from palyra.system import thread_pool
from palyra.system.descriptors import PipeReader, Writer, readable
from palyra.tools.sandbox.cgroups import ControlGroup, Use
from palyra.tools.sandbox.changed_files import ChangedFiles
from palyra.tools.sandbox.command import Command, Exit, Killed, signal_name

T = TypeVar("T")

_LOOK_EVERY_S = 0.2
# How often the files that a command leaves behind are looked at while it runs, and how many times
# longer than a look the pause is.
_CHECK_EVERY_S = 2.0
_CHECK_SHARE = 20
# A process can be stuck in the kernel (a dead network disk); a cancel does not wait for it for
# ever.
_LONGEST_DEATH_S = 5.0

_background: set[asyncio.Future[None]] = set()


class Ender(Protocol):
    """Ends a tree for good; how depends on the tier."""

    def end(self) -> None: ...

    def close(self) -> None: ...


class Pipes(Struct):
    stdin: Writer
    stdout: PipeReader
    stderr: PipeReader | None

    def close(self) -> None:
        self.stdin.close()
        self.stdout.close()
        if self.stderr is not None:
            self.stderr.close()


class Process:
    """Made by `Sandbox.start`. Use it as a context manager, or see that somebody awaits `wait`."""

    def __init__(
        self,
        command: Command,
        root: "subprocess.Popen[bytes]",
        ender: Ender,
        pipes: Pipes,
        group: ControlGroup | None = None,
        aftermath: ChangedFiles | None = None,
    ) -> None:
        """`aftermath` is what it leaves behind in the workspace, if it may write there."""
        self.command = command
        self._root = root
        self._ender = ender
        self._pipes = pipes
        self.group = group
        self._killed: Killed = ""
        self._read = 0
        # Called once when the tree is dead.
        self.on_exit = Signal[[]]("a process's end")
        self.aftermath = aftermath
        self._guard = asyncio.ensure_future(self._watch())

    @property
    def pid(self) -> int:
        return self._root.pid

    @property
    def running(self) -> bool:
        return not self._guard.done()

    @property
    def stdin(self) -> Writer:
        return self._pipes.stdin

    @property
    def stderr(self) -> PipeReader | None:
        return self._pipes.stderr

    async def output(self) -> AsyncIterator[bytes]:
        """Output in the order in which it was written, both streams together unless they were to be
        separate.
        """
        while chunk := await self._or_kill(self._pipes.stdout.read()):
            self._read += len(chunk)
            if self._read > self.command.caps.output_bytes:
                self.kill("output")
            yield chunk

    async def wait(self) -> Exit:
        return await self._or_kill(asyncio.shield(self._guard))

    def kill(self, why: Killed = "stopped") -> None:
        """End the whole tree. It is dead when `wait` returns."""
        if self.running and not self._killed:
            self._killed = why
            self._ender.end()

    async def __aenter__(self) -> "Process":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        await self._dead()
        self._pipes.close()

    async def _or_kill(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except asyncio.CancelledError:
            self.kill()
            await self._dead()
            raise

    async def _dead(self) -> None:
        """Wait for the end although this task may have been cancelled, and may be again."""
        end = asyncio.get_running_loop().time() + _LONGEST_DEATH_S
        while not self._guard.done() and (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.wait([self._guard], timeout=left)
            except asyncio.CancelledError:
                continue

    async def _watch(self) -> Exit:
        handle = os.pidfd_open(self.pid)
        use = Use(
            self.pid, self.command.workspace, self.command.caps, grouped=self.group is not None
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.command.caps.time_s or float("inf"))
        look_again = loop.time() + _CHECK_EVERY_S
        try:
            while not await _within(
                readable(handle), min(_LOOK_EVERY_S, max(0.0, deadline - loop.time()))
            ):
                if loop.time() >= deadline:
                    deadline = float("inf")
                    self.kill("time")
                elif not self._killed and (reason := use.exceeded()):
                    self.kill(reason)
                elif self.aftermath is not None and loop.time() >= look_again:
                    began = loop.time()
                    await thread_pool.everyday.run(self.aftermath.check)
                    look_again = loop.time() + max(
                        _CHECK_EVERY_S, _CHECK_SHARE * (loop.time() - began)
                    )
        finally:
            os.close(handle)
        ended = self._ended(use)
        if self.aftermath is not None:
            # Before anybody hears that it has ended: what it left behind is in order then.
            await thread_pool.everyday.run(self.aftermath.finish)
        return ended

    async def look(self, *, hold: bool = False) -> tuple[str, ...]:
        """Look at what it has left behind so far, and hold what it may not leave. Return what a
        person should know of it.
        """
        if self.aftermath is not None:
            await thread_pool.everyday.run(self.aftermath.check, hold)
        return self.notes()

    def notes(self) -> tuple[str, ...]:
        """Return what a person should know of what it left behind, since this was last asked."""
        return self.aftermath.take() if self.aftermath is not None else ()

    def _ended(self, use: Use) -> Exit:
        _, status, spent = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        # Otherwise Popen would wait for a process that is no longer ours.
        self._root.returncode = code
        self._pipes.stdout.finish()
        if self._pipes.stderr is not None:
            self._pipes.stderr.finish()
        self._ender.close()
        killed, peak = self._killed, use.peak
        if self.group is not None:
            peak = self.group.peak()
            if not killed and code and self.group.out_of_memory():
                killed = "memory"
            if not self.group.remove_now():
                _in_background(asyncio.to_thread(self.group.remove))
        self.on_exit.send()
        return Exit(
            code=code,
            signal=signal_name(code),
            killed=killed,
            cpu_s=spent.ru_utime + spent.ru_stime,
            max_rss=peak,
        )


async def _within(work: Coroutine[Any, Any, None], seconds: float) -> bool:
    """Return whether it happened in that time."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


def _in_background(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    _background.add(task)
    task.add_done_callback(_background.discard)
