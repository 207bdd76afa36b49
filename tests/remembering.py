"""Memory for tests: a real journal in a temporary folder, and one embedding process for everybody
who needs meanings.
"""

import asyncio
import math
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from palyra.core.ports import Embedder
from palyra.features.memory import relevance, selection
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.model import Item, NewMemory, Recalled, Where
from palyra.features.memory.service import Memory
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from tests import stores


class WordEmbedder:
    """Vectors made of words alone: the same text always has the same one, and it costs nothing."""

    name = "words"
    running = True

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [self._vector(text) for text in texts]

    async def close(self) -> None:
        pass

    @staticmethod
    def _vector(text: str) -> bytes:
        elements = [0.01] * 384
        for word in text.lower().split():
            digest = sha256(word.encode()).digest()
            for at in range(0, 24, 2):
                elements[int.from_bytes(digest[at : at + 2]) % 384] += (
                    1.0 if digest[at + 1] & 1 else -1.0
                )
        length = math.hypot(*elements)
        return array("f", [each / length for each in elements]).tobytes()


ME = Where(principal="user:owner")


class SetClock(Clock):
    """Time that a test moves."""

    def __init__(self, ms: int = 1_790_000_000_000) -> None:
        super().__init__()
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms


@asynccontextmanager
async def remembering(
    folder: Path, embedder: Embedder | None = None, clock: Clock | None = None
) -> AsyncIterator[Memory]:
    clock = clock or Clock()
    path = folder / "journal.db"
    db = Database(stores.dialect(path), clock.now_ms)
    db.open()
    embedding = Embedding(db, embedder)
    memory = Memory(db, Redactor(b"k" * 32), clock, embedding, stores.upkeep(path).scrub)
    embedding.start()
    try:
        yield memory
    finally:
        await embedding.close()
        await db.close()


async def settled(memory: Memory) -> None:
    await asyncio.wait_for(memory.embedding.settled(), 60)


async def remember(memory: Memory, where: Where, *texts: str) -> list[Item]:
    return [await memory.add(where, NewMemory(text=text)) for text in texts]


async def found(memory: Memory, where: Where, text: str, limit: int = 10) -> Sequence[str]:
    return [each.item.text for each in (await memory.search(where, text, limit)).found]


async def told(memory: Memory, where: Where, text: str) -> list[Recalled]:
    """What a run is told that begins with this text."""
    searched = await memory.search(where, text, relevance.WEIGHED, patient=False)
    return selection.told(await memory.standing(where), searched)
