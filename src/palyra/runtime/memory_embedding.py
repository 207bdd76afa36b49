"""Embedding behind the writes: what was remembered is given its vector afterwards, a few items at a time, outside any transaction.

The rule: the rows themselves say what is left to do. A crash between a write and its vector loses nothing; the next start goes on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from palyra.domain.errors import PalyraError
from palyra.domain.ids import SYSTEM
from palyra.domain.ports import Embedder
from palyra.journal import memory, memory_index
from palyra.journal.database import Database, Tx
from palyra.journal.memory_codes import Codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("palyra.memory")
_AT_ONCE = 64
_RETRY_S = 60.0
# How often items are looked for whose time is over.
_SWEEP_S = 300.0


class Embedding:
    """One task. `why_not` says why meanings are not searched now, in words for a person."""

    def __init__(self, db: Database, embedder: Embedder | None) -> None:
        self._db = db
        self._embedder = embedder
        # Held here because this task is what lets go of them when nobody has searched for a while.
        self.codes = Codes()
        self._wake = asyncio.Event()
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.why_not = "" if embedder else "memory.embeddings is off in the config"

    def start(self) -> None:
        self._wake.set()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._embedder is not None:
            await self._embedder.close()

    def wake(self) -> None:
        """Something was written."""
        self._done.clear()
        self._wake.set()

    async def settled(self) -> None:
        """Wait until nothing is left to embed, or it is known that nothing can be."""
        await self._done.wait()

    async def question(self, text: str) -> "NDArray[np.float32] | None":
        """A question's vector, or None if only words can be searched; `why_not` then says why."""
        if self._embedder is None:
            return None
        try:
            (raw,) = await self._embedder.embed([text])
        except PalyraError as error:
            self._failed(error)
            return None
        self.why_not = ""
        import numpy as np

        return np.frombuffer(raw, "<f4")

    # --- the task -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._attempt(self._sweep)
            self._wake.clear()
            good = await self._attempt(self._embed_all)
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
        return True

    def _failed(self, error: PalyraError) -> None:
        if self.why_not != error.message:
            log.warning("memory is searched by words only: %s", error.message)
        self.why_not = error.message

    async def _embed_all(self) -> None:
        if self._embedder is None:
            return
        while todo := await self._db.read(lambda tx: memory.unembedded(tx, _AT_ONCE)):
            raw = await self._embedder.embed([each.text for each in todo])
            spots = [each.spot for each in todo]
            packed = await asyncio.to_thread(_pack, spots, raw)
            await self._db.write(partial(memory.embedded, by=self._embedder.name, packed=packed))
            self.why_not = ""

    async def _sweep(self) -> None:
        """Forget for good what was to be kept for a time only; let go of what is not in use."""
        self.codes.release(await self._db.read(lambda tx: tx.now_ms) - int(_SWEEP_S * 1000))

        def step(tx: Tx) -> int:
            return memory.purge(tx, memory.On(SYSTEM), memory.expired(tx), "expired")

        if await self._db.read(lambda tx: memory.expired(tx, 1)):
            while await self._db.write(step):
                pass


def _pack(spots: list[int], raw: list[bytes]) -> dict[int, tuple[bytes, bytes]]:
    import numpy as np

    return {spot: memory_index.pack(np.frombuffer(each, "<f4")) for spot, each in zip(spots, raw, strict=True)}
