"""Searching what was said: a principal's own sessions, archived ones too, by words and by meaning.

The rule: whoever asks searches their own sessions and nobody else's, and is told when a part of
them was not searched.
"""

from msgspec import Struct

from palyra.core.ports import CallContext
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.model import Said
from palyra.features.memory.rows import transcript_index
from palyra.store.database import Database

# Who searches waits for at most so many entries to be indexed; usually there are a few, from the
# last minute.
_MOST_INDEXED = 1_024


class SaidPage(Struct, frozen=True, omit_defaults=True):
    """Entries, best first. `words_only`: why meanings were not searched. `not_searched`: entries
    that are not indexed yet.
    """

    found: list[Said]
    words_only: str = ""
    not_searched: int = 0


class Transcripts:
    def __init__(self, db: Database, embedding: Embedding) -> None:
        self._db = db
        self._embedding = embedding

    async def search(
        self, principal: str, text: str, limit: int, *, semantic: bool = True, but_run: str = ""
    ) -> SaidPage:
        """`but_run` leaves out what was said in the run that asks: its question would be the best
        answer to itself.
        """
        left = (
            await self._embedding.index_said(_MOST_INDEXED)
            if await self._db.read(transcript_index.behind)
            else 0
        )
        vector = await self._embedding.question(text) if semantic else None
        codes = self._embedding.codes
        found = await self._db.read(
            lambda tx: transcript_index.search(
                tx, principal, text, limit, vector=vector, codes=codes, but_run=but_run
            )
        )
        return SaidPage(found, self._embedding.why_not if semantic and vector is None else "", left)

    async def quote(self, context: CallContext, text: str, limit: int) -> tuple[list[Said], str]:
        """For the tool: what the session's principal said or was told, in other runs than this."""
        page = await self.search(context.principal, text, limit, but_run=context.run_id)
        return page.found, page.words_only
