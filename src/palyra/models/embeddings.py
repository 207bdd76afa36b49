"""The local embedder: all-MiniLM-L6-v2 in a process of its own, started when first needed and ended
when idle.

The rule: the daemon never loads the model. What the process takes, it gives back when it ends; what
it breaks, it breaks alone.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio import StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

import msgspec

from palyra.core.errors import Unavailable
from palyra.system import cpu_affinity

log = logging.getLogger("palyra.embedding")
VECTOR_BYTES = 384 * 4
_IDLE_S = 300.0
_START_S = 60.0
_ANSWER_S = 60.0
# A question waits for no more than this many texts of somebody else.
_MOST_AT_ONCE = 4
_MOST_CHARACTERS = 2_000
_MOST_COMPLAINT = 2_000


class _Ended(Unavailable):
    """The process is gone, in the middle of a question or before it."""


class LocalEmbedder:
    """MiniLM behind pipes. One question at a time; the process ends by itself when ours does,
    because its input ends.
    """

    name = "all-MiniLM-L6-v2-int8"

    def __init__(self, *, idle_s: float = _IDLE_S, command: Sequence[str] = ()) -> None:
        self._idle_s = idle_s
        self._command = tuple(command) or (sys.executable, "-m", "palyra.models.embedding_process")
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process that holds the model, 0 if there is none now."""
        return (
            self._process.pid
            if self._process is not None and self._process.returncode is None
            else 0
        )

    @property
    def running(self) -> bool:
        return self.pid != 0

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        vectors: list[bytes] = []
        self._waiting += 1
        try:
            for first in range(0, len(texts), _MOST_AT_ONCE):
                piece = [text[:_MOST_CHARACTERS] for text in texts[first : first + _MOST_AT_ONCE]]
                async with self._turn:
                    vectors += await self._answer(piece)
        finally:
            self._waiting -= 1
        return vectors

    async def close(self) -> None:
        async with self._turn:
            await _killed(self._let_go())
        for task in tuple(self._ending):
            await task

    async def _answer(self, texts: list[str]) -> list[bytes]:
        """Ask; once more if the process had ended since it was last asked: that is known only when
        it does not answer.
        """
        was_running = self._process is not None
        try:
            return await self._ask(texts)
        except _Ended:
            if not was_running:
                raise
        return await self._ask(texts)

    async def _ask(self, texts: list[str]) -> list[bytes]:
        if self._idle is not None:
            self._idle.cancel()
        done = False
        try:
            process = await self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            line = msgspec.json.encode(texts) + b"\n"
            async with asyncio.timeout(_ANSWER_S):
                process.stdin.write(line)
                await process.stdin.drain()
                answer = await process.stdout.readexactly(len(texts) * VECTOR_BYTES)
            done = True
        except (OSError, EOFError) as error:
            raise _Ended(
                f"the embedding process ended ({error or type(error).__name__}): see the log"
            ) from error
        except TimeoutError as error:
            raise Unavailable(
                f"the embedding process gave no answer within {_ANSWER_S:g} s: see the log"
            ) from error
        finally:
            if not done:
                # Cut off in the middle, the next answer would be this one's: it starts anew.
                await _killed(self._let_go())
        self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._rest)
        return [answer[at : at + VECTOR_BYTES] for at in range(0, len(answer), VECTOR_BYTES)]

    async def _started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        with cpu_affinity.roaming():
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={}
            )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(_START_S):
                ready = await process.stdout.readline()
        except TimeoutError:
            raise Unavailable(
                f"the embedding process was not ready within {_START_S:g} s: is the machine very"
                " busy?"
            ) from None
        if ready != b"ready\n":
            raise Unavailable(await _complaint(process.stderr))
        return process

    def _rest(self) -> None:
        if not self._waiting:
            # Let go of at once: who asks from now on must not get one that is about to be killed.
            task = asyncio.ensure_future(_killed(self._let_go()))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _let_go(self) -> Process | None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        return process


async def _killed(process: Process | None) -> None:
    if process is not None:
        if process.returncode is None:
            # Not Process.kill: it would reap a process that has just ended, and its watcher would
            # look for it in vain.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def _complaint(stderr: StreamReader) -> str:
    """Return the process's message before it ended; its last line is for people."""
    said = (await stderr.read(_MOST_COMPLAINT)).decode(errors="replace").strip().splitlines()
    if len(said) > 1:
        log.warning("the embedding process could not start: %s", " / ".join(said))
    return said[-1] if said else "the embedding process ended without a word: see the log"
