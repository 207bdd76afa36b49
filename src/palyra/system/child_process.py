"""Programs of the daemon's own: helpers that it starts, talks to over pipes, and ends.

The rule: nothing of ours runs in the child before the program does. uvloop and asyncio's loops
would fork, and uvloop lets Python tidy up in the child: what other threads held is dropped there,
connections of SQLite among it. A thread that had a lock of SQLite's in that moment does not exist
in the child, so nobody ever lets go of it. The child never becomes the program, and the daemon,
which waits for that on its event loop, never answers anybody again. `subprocess` has the kernel
start the program.
"""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE

from palyra.core.errors import Unavailable
from palyra.system import cpu_affinity
from palyra.system.descriptors import PipeReader, Writer, readable

# Who says more than this is ended.
_MOST_OUTPUT = 16 << 20


class ChildProcess:
    """A running program. Each of its streams is a pipe or leads nowhere."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stdin: bool = True,
        stdout: bool = True,
        stderr: bool = True,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start it, on the event loop's own thread: when another thread ends, the kernel tells its
        children that their parent has died. Raises OSError if it cannot be started.
        """
        with cpu_affinity.roaming():
            self._process = subprocess.Popen(
                argv,
                stdin=PIPE if stdin else DEVNULL,
                stdout=PIPE if stdout else DEVNULL,
                stderr=PIPE if stderr else DEVNULL,
                env=dict(env or {}),
                cwd=cwd,
                pass_fds=pass_fds,
                bufsize=0,
            )
        mine = (self._process.stdin, self._process.stdout, self._process.stderr)
        into, *heard = (None if each is None else os.dup(each.fileno()) for each in mine)
        for stream in mine:
            if stream is not None:
                stream.close()
        self._input = None if into is None else Writer(into)
        self._heard = [None if each is None else PipeReader(each) for each in heard]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        return self._process.poll()

    @property
    def stdin(self) -> Writer:
        assert self._input is not None
        return self._input

    @property
    def stdout(self) -> PipeReader:
        output = self._heard[0]
        assert output is not None
        return output

    @property
    def stderr(self) -> PipeReader:
        errors = self._heard[1]
        assert errors is not None
        return errors

    async def talk(self, said: bytes = b"") -> tuple[bytes, bytes]:
        """Say this, hear all that it says on both streams, and wait for its end. Whatever comes in
        between, a cancel for example, ends it.
        """
        listening = [asyncio.ensure_future(self._hear(each)) for each in self._heard]
        saying = asyncio.ensure_future(self._say(said))
        try:
            await self.wait()
            # What it has started may still hold the other side.
            for each in self._heard:
                if each is not None:
                    each.finish()
            output, errors = await asyncio.gather(*listening)
            if saying.done():
                saying.result()
            return output, errors
        finally:
            for task in (saying, *listening):
                task.cancel()
            await asyncio.gather(saying, *listening, return_exceptions=True)
            await self.end()

    async def _say(self, said: bytes) -> None:
        if self._input is not None:
            try:
                await self._input.write(said)
            finally:
                self._input.close()

    async def _hear(self, stream: PipeReader | None) -> bytes:
        heard = await stream.read_all(_MOST_OUTPUT) if stream is not None else b""
        if len(heard) >= _MOST_OUTPUT:
            self._process.kill()
            raise Unavailable(f"the program said more than {_MOST_OUTPUT >> 20} MB")
        return heard

    async def wait(self) -> int:
        """Wait for its end."""
        if (code := self._process.poll()) is not None:
            return code
        handle = os.pidfd_open(self.pid)
        try:
            await readable(handle)
        finally:
            os.close(handle)
        return self._process.wait()

    async def end(self) -> int:
        """Kill it if it still runs, and let go of its pipes: nobody may read or write any more."""
        self._process.kill()
        try:
            return await self.wait()
        finally:
            for pipe in (self._input, *self._heard):
                if pipe is not None:
                    pipe.close()
