"""The local embedder: all-MiniLM-L6-v2 in a process of its own, started when first needed and ended
when idle.

The rule: the daemon never loads the model. What the process takes, it gives back when it ends; what
it breaks, it breaks alone.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence

import msgspec

from palyra.core.errors import Unavailable
from palyra.system.child_process import ChildProcess
from palyra.system.descriptors import PipeReader

log = logging.getLogger("palyra.embedding")
VECTOR_BYTES = 384 * 4
_IDLE_S = 300.0
_START_S = 60.0
_ANSWER_S = 60.0
# A question waits for no more than this many texts of somebody else.
_MOST_AT_ONCE = 4
_MOST_CHARACTERS = 2_000
_MOST_COMPLAINT = 2_000
_READY = b"ready\n"


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
        self._process: ChildProcess | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process that holds the model, 0 if there is none now."""
        return self._process.pid if self._process is not None and self._process.running else 0

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
            line = msgspec.json.encode(texts) + b"\n"
            async with asyncio.timeout(_ANSWER_S):
                await process.stdin.write(line)
                answer = await process.stdout.read_all(len(texts) * VECTOR_BYTES)
            if len(answer) < len(texts) * VECTOR_BYTES:
                raise EOFError(f"{len(answer)} bytes of {len(texts) * VECTOR_BYTES} came")
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

    async def _started(self) -> ChildProcess:
        if self._process is not None and self._process.running:
            return self._process
        process = self._process = ChildProcess(self._command)
        try:
            async with asyncio.timeout(_START_S):
                ready = await process.stdout.read_all(len(_READY))
        except TimeoutError:
            raise Unavailable(
                f"the embedding process was not ready within {_START_S:g} s: is the machine very"
                " busy?"
            ) from None
        if ready != _READY:
            raise Unavailable(await _complaint(process.stderr))
        return process

    def _rest(self) -> None:
        if not self._waiting:
            # Let go of at once: who asks from now on must not get one that is about to be killed.
            task = asyncio.ensure_future(_killed(self._let_go()))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _let_go(self) -> ChildProcess | None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        return process


async def _killed(process: ChildProcess | None) -> None:
    if process is not None:
        await process.end()


async def _complaint(stderr: PipeReader) -> str:
    """Return the process's message before it ended; its last line is for people."""
    said = (await stderr.read(_MOST_COMPLAINT)).decode(errors="replace").strip().splitlines()
    if len(said) > 1:
        log.warning("the embedding process could not start: %s", " / ".join(said))
    return said[-1] if said else "the embedding process ended without a word: see the log"
