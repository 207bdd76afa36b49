"""Embedding behind the writes: what was remembered, and what was said, is given its vector
afterwards, outside any transaction.

The rule: the rows themselves say what is left to do. A crash between a write and its vector loses
nothing; the next start goes on. What was said waits until the daemon has been quiet for a moment:
nobody is slowed down by it, and idle machines stay idle.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from palyra.agent.idle_gate import IdleGate
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.ids import SYSTEM
from palyra.core.ports import Embedder
from palyra.features.memory import words as memory_vectors
from palyra.features.memory.rows import claims, index, items, transcript_index
from palyra.features.memory.rows.codes import Codes
from palyra.store.database import Database, Tx
from palyra.system.thread_pool import everyday

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("palyra.memory")
_AT_ONCE = 16
_RETRY_S = 60.0
# How often items are looked for whose time is over, and whether people are about.
_SWEEP_S = 300.0
# For longer than that, so that the model does not end between two looks.
IDLE_S = _SWEEP_S + 120.0
# How long nobody must have been at work before what was said is indexed.
_QUIET_S = 20.0
# Few at once: the writer is everybody's.
_ENTRIES_AT_ONCE = 16
_ITEMS_AT_ONCE = 200
# After so many passages the embedding model rests until it is quiet again.
_MOST_SAID = 256
# Who asks in the middle of a run waits no longer for a question's vector. The model takes a small
# part of this once it is started, and people who are about to ask have it started; starting takes
# about a second, and a few on a machine that is busy.
PATIENCE_S = 4.0
_EVERYTHING = 1 << 53
# The model is kept for longer than this after it was last used.
_WARM_S = 120.0


class Embedding:
    """One task. `why_not` says why meanings are not searched now, in words for a person."""

    def __init__(
        self,
        db: Database,
        embedder: Embedder | None,
        lull: IdleGate | None = None,
        *,
        quiet_s: float = _QUIET_S,
        attended: Callable[[], bool] = lambda: False,
    ) -> None:
        """`attended` says whether people are about: then the model is kept."""
        self._attended = attended
        self._db = db
        self._embedder = embedder
        self._lull = lull or IdleGate()
        self._quiet_s = quiet_s
        self._quiet: asyncio.TimerHandle | None = None
        self._said_at = 0.0
        self._due = False
        self._warm_until = 0.0
        # Nothing was remembered when it was looked, and nothing has been written since.
        self._empty = False
        self._asking: set[asyncio.Task[list[bytes]]] = set()
        # Held here because this task is what lets go of them when nobody has searched for a while.
        self.codes = Codes()
        self._wake = asyncio.Event()
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.why_not = "" if embedder else "memory.embeddings is off in the config"

    @property
    def wanted(self) -> bool:
        return self._embedder is not None

    @property
    def name(self) -> str:
        """The model, or nothing if there is none."""
        return self._embedder.name if self._embedder is not None else ""

    async def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """One vector for each text: float32, little endian. Unavailable if there is no model."""
        if self._embedder is None:
            raise Unavailable(f"there is no embedding model: {self.why_not}")
        return await self._embedder.embed(texts)

    def start(self) -> None:
        self._wake.set()
        self._task = asyncio.create_task(self._run())
        self.said()

    async def close(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
        tasks = [*self._asking, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._embedder is not None:
            await self._embedder.close()

    def wake(self) -> None:
        """Wake it: something was written."""
        self._empty = False
        self._done.clear()
        self._wake.set()

    def said(self, run_id: str = "") -> None:
        """A run ended: something was said. It is looked at when nothing has been for a while."""
        loop = asyncio.get_running_loop()
        self._said_at = loop.time()
        if self._quiet is None:
            self._quiet = loop.call_later(self._quiet_s, self._when_quiet)

    def _when_quiet(self) -> None:
        """One timer for all: ending a thousand runs at once must not set a thousand."""
        loop, self._quiet = asyncio.get_running_loop(), None
        left = self._said_at + self._quiet_s - loop.time()
        if left > 0:
            self._quiet = loop.call_later(left, self._when_quiet)
        else:
            self.look_at_said()

    def look_at_said(self) -> None:
        """Index what was said and give it vectors, now."""
        self._due = True
        self.wake()

    async def settled(self) -> None:
        """Wait until nothing is left to embed, or it is known that nothing can be."""
        await self._done.wait()

    async def question(self, text: str, *, patient: bool = True) -> "NDArray[np.float32] | None":
        """A question's vector, or None if only words can be searched; `why_not` then says why.

        Who is not patient waits PATIENCE_S for a model that is starting or busy. It goes on
        starting; the next question has it.
        """
        if self._embedder is None:
            return None
        task = asyncio.create_task(self._embedder.embed([text]))
        self._asking.add(task)
        task.add_done_callback(self._asked)
        try:
            async with asyncio.timeout(None if patient else PATIENCE_S):
                (raw,) = await asyncio.shield(task)
        except TimeoutError:
            return None
        except PalyraError as error:
            self._failed(error)
            return None
        self.why_not = ""
        import numpy as np

        return np.frombuffer(raw, "<f4")

    def warm(self) -> None:
        """Start the model, or keep it: somebody may ask soon. Does nothing while it is at work."""
        loop = asyncio.get_running_loop()
        if self._embedder is None or self._asking:
            return
        if loop.time() < self._warm_until and (self._empty or self._embedder.running):
            return
        self._warm_until = loop.time() + _WARM_S
        task = asyncio.create_task(self._warm(self._embedder))
        self._asking.add(task)
        task.add_done_callback(self._asked)

    async def _warm(self, embedder: Embedder) -> list[bytes]:
        self._empty = True
        if not await self._db.read(index.anything):
            # Nobody has anything remembered that could be found.
            return []
        self._empty = False
        return await embedder.embed(["?"])

    def _asked(self, task: "asyncio.Task[list[bytes]]") -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()

    async def index_said(self, most: int, *, unhurried: bool = False) -> int:
        """Make what was said findable by its words, up to so many entries. Says how many are
        left.
        """
        done = 0
        while done < most and (
            taken := await self._db.write(lambda tx: transcript_index.index(tx, _ENTRIES_AT_ONCE))
        ):
            done += taken
            if unhurried:
                await self._lull.wait()
        return await self._db.read(transcript_index.behind) if done >= most else 0

    async def _run(self) -> None:
        while True:
            await self._attempt(self._sweep)
            self._wake.clear()
            good = await self._attempt(self._embed_all)
            if self._due:
                self._due = not (good and await self._attempt(self._embed_said))
                good = not self._due
            if not self._wake.is_set():
                self._done.set()
            try:
                async with asyncio.timeout(_SWEEP_S if good else _RETRY_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _attempt(self, work: Callable[[], Awaitable[object]]) -> bool:
        try:
            await work()
        except PalyraError as error:
            self._failed(error)
            return False
        except Exception as error:
            log.exception("memory could not be brought up to date")
            self._failed(PalyraError(f"{type(error).__name__}, see the log"))
            return False
        return True

    def _failed(self, error: PalyraError) -> None:
        if self.why_not != error.message:
            log.warning("memory is searched by words only: %s", error.message)
        self.why_not = error.message

    async def _embed_all(self) -> None:
        if self._embedder is None:
            return
        while todo := await self._db.read(lambda tx: items.unembedded(tx, _AT_ONCE)):
            packed = await self._vectors(self._embedder, todo)
            await self._db.write(partial(items.embedded, by=self._embedder.name, packed=packed))
            self.why_not = ""

    async def _embed_said(self) -> None:
        if await self._db.read(transcript_index.behind):
            await self.index_said(_EVERYTHING, unhurried=True)
        if self._embedder is None:
            return
        done = 0
        while todo := await self._db.read(
            lambda tx: transcript_index.unembedded(tx, _ENTRIES_AT_ONCE)
        ):
            if done >= _MOST_SAID:
                # A long history is worked off in the pauses, not at one go.
                self.said()
                return
            done += len(todo)
            await self._lull.wait()
            packed = await self._vectors(self._embedder, todo)
            await self._db.write(
                partial(transcript_index.embedded, by=self._embedder.name, packed=packed)
            )
            self.why_not = ""

    async def _vectors(
        self, embedder: Embedder, todo: list[items.Unembedded]
    ) -> dict[int, tuple[bytes, bytes]]:
        raw = await embedder.embed([view for each in todo for view in each.views])
        return await everyday.run(_pack, todo, raw)

    async def _sweep(self) -> None:
        """Forget for good what was to be kept for a time only; let go of what is not in use."""
        if self._attended():
            self.warm()
        self.codes.release(await self._db.read(lambda tx: tx.now_ms) - int(_SWEEP_S * 1000))

        def step(tx: Tx) -> int:
            return items.purge(tx, items.On(SYSTEM), items.expired(tx), "expired")

        while await self._db.write(lambda tx: claims.unclaimed(tx, _ITEMS_AT_ONCE)):
            await self._lull.wait()
        if await self._db.read(lambda tx: items.expired(tx, 1)):
            while await self._db.write(step):
                pass


def _pack(todo: list[items.Unembedded], raw: list[bytes]) -> dict[int, tuple[bytes, bytes]]:
    vectors = iter(raw)
    return {
        each.spot: index.pack(memory_vectors.between([next(vectors) for _ in each.views]))
        for each in todo
    }
