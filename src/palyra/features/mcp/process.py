"""A server's program as a process of our own: its own group, an environment of its own, dead when
the daemon is.

This is the one that runs without walls. `palyra.features.mcp.sandboxed_process` gives the same
inside the sandbox.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from palyra.features.mcp.jsonrpc import NotSent
from palyra.system import cpu_affinity
from palyra.tools.sandbox.descriptors import PipeReader, Writer, readable

# How long a server may take to leave by itself once its input has ended, and once it was told to.
FAREWELL_S = 1.0
_TOLD_S = 1.0
_DEATH_S = 5.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Runs in the new process before the program does: from now on the kernel kills it when the daemon
# dies. If that has happened already, there is another parent. A program that cannot be started ends
# with the shell's number for that.
_BEFORE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""


class ServerProcess(Protocol):
    """A running server program. Reading gives nothing once it has ended.

    `stop` lets it leave by itself for a moment and returns when nothing of it is left; `close`
    comes after, when nobody reads.
    """

    async def read(self) -> bytes: ...

    async def read_errors(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def look(self, *, called: bool) -> tuple[str, ...]:
        """Return what a person should know of the files it has changed since the last time.
        `called`: during a call.
        """
        ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...


# Starts a program with exactly this environment in this folder. Raises PalyraError or OSError if it
# cannot.
Spawn = Callable[[Sequence[str], Mapping[str, str], str], Awaitable[ServerProcess]]


def environment(home: str, given: Mapping[str, str]) -> dict[str, str]:
    """What a server's program is told about the machine: next to nothing, and what the operator
    set.
    """
    return {"PATH": PATH, **({"HOME": home} if home else {}), "LANG": "C.UTF-8", **given}


async def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> ServerProcess:
    # On the loop's own thread: when a thread ends, the kernel tells its children that their parent
    # has died.
    with cpu_affinity.roaming():
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-I", "-S", "-c", _BEFORE, str(os.getpid()), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
    return _Process(process)


class _Process:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._handle = os.pidfd_open(process.pid)
        self._input = Writer(os.dup(process.stdin.fileno()))
        self._output = PipeReader(os.dup(process.stdout.fileno()))
        self._errors = PipeReader(os.dup(process.stderr.fileno()))
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    async def read(self) -> bytes:
        return await self._output.read()

    async def read_errors(self) -> bytes:
        return await self._errors.read()

    async def write(self, data: bytes) -> None:
        try:
            await self._input.write(data)
        except OSError as error:
            raise NotSent("its input is closed") from error

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return ()

    async def stop(self) -> None:
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        self._input.close()
        try:
            for seconds, number in ((FAREWELL_S, signal.SIGTERM), (_TOLD_S, signal.SIGKILL)):
                if await _ended(handle, seconds):
                    break
                self._signal(number)
        finally:
            # The group outlives its first process if that left children behind. Its id cannot be
            # another's before we have waited.
            self._signal(signal.SIGKILL)
            await asyncio.shield(_ended(handle, _DEATH_S))
            self._process.poll()
            os.close(handle)

    async def close(self) -> None:
        self._output.close()
        self._errors.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return


async def _ended(handle: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await readable(handle)
    except TimeoutError:
        return False
    return True
