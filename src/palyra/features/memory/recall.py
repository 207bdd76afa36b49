"""Recall: memories that belong to what the user says, for the prompt of one run.

The rule: what is pinned needs no search. A search is waited for within a bound; if it does not
finish, the run continues without it, and its tape says so.

Search of transcripts: a principal's own sessions, archived ones too, by words and by meaning.

The rule: whoever asks searches their own sessions and nobody else's, and is told when a part of
them was not searched.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec import Struct

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt import run_context
from palyra.agent.prompt.run_context import Recall, RecalledMemory
from palyra.core.errors import PalyraError
from palyra.core.ports import CallContext
from palyra.features.memory import relevance, selection
from palyra.features.memory import words as memory_words
from palyra.features.memory.embedding import PATIENCE_S, Embedding
from palyra.features.memory.model import (
    Item,
    Said,
    Where,
)
from palyra.features.memory.rows import transcript_index
from palyra.features.memory.service import Memory, Searched
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
        """Return what the session's principal said or was told in other runs: for the tool."""
        page = await self.search(context.principal, text, limit, but_run=context.run_id)
        return page.found, page.words_only


log = logging.getLogger("palyra.memory")

# Longer than a question's vector may take.
_PATIENCE_S = PATIENCE_S + 0.5
# What is looked for: longer texts say no more about what they are about.
_LONGEST_QUESTION = 2_000


class Recalling:
    """`look` costs nothing for whoever has nothing remembered, which is nearly everybody at
    first.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        # Principals that had nothing remembered, with the memory's state of changes when that was
        # seen.
        self._empty: dict[str, int] = {}

    async def again(self, run: ActiveRun, memory_ids: Sequence[str]) -> tuple[RecalledMemory, ...]:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found = await self._memory.active(run.principal, memory_ids)
        except (TimeoutError, PalyraError) as error:
            log.warning("memory could not be read again, the run goes on without it: %s", error)
            return ()
        doubted = run_context.doubted_in(run.live.conversation)
        return tuple(for_prompt(each, 0.0, unsure=each.memory_id in doubted) for each in found)

    async def look(self, run: ActiveRun) -> Recall:
        shown = run_context.shown_in(run.live.conversation, run.run_id)
        if shown:
            # It goes on after a restart: what it was shown stays as it was.
            return Recall(await self.again(run, shown))
        principal, session = run.principal, run.live.session
        changes = self._memory.changes
        if self._empty.get(principal) == changes:
            return Recall()
        where = Where(
            principal=principal,
            channel=session.channel,
            session=session.session_id,
            workspace=session.workspace,
        )
        text = "\n".join(event.text for _, event in run.progress.inputs)[:_LONGEST_QUESTION]
        try:
            if not await self._memory.any_for(principal):
                self._empty[principal] = changes
                return Recall()
            standing = await self._memory.standing(where)
        except PalyraError as error:
            log.warning("memory could not be read, the run goes on without it: %s", error.message)
            return Recall(problem=f"not read: {error.message}")
        searched, problem = await self._search(where, text)
        chosen = selection.told(standing, searched)
        return Recall(
            tuple(for_prompt(each.item, each.score, unsure=each.unsure) for each in chosen), problem
        )

    async def _search(self, where: Where, text: str) -> tuple[Searched, str]:
        """Return what answers the question, and what is to be said about how it was searched."""
        nothing = Searched([], relevance.TOLD_FROM)
        if not text.strip():
            return nothing, ""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                searched = await self._memory.search(where, text, relevance.WEIGHED, patient=False)
        except TimeoutError:
            log.warning("memory took too long to answer; the run goes on without it")
            return nothing, f"not searched: no answer within {_PATIENCE_S:g} s"
        except PalyraError as error:
            log.warning("memory could not answer, the run goes on without it: %s", error.message)
            return nothing, f"not searched: {error.message}"
        problem = f"searched by words only: {searched.words_only}" if searched.words_only else ""
        return searched, problem


def for_prompt(item: Item, score: float, *, unsure: bool = False) -> RecalledMemory:
    text = item.text
    if item.supersedes and item.valid_from_ms:
        # It was otherwise before: what the model finds elsewhere may be older.
        text = f"{text.rstrip('. ')} (since {memory_words.day(item.valid_from_ms)})"
    return RecalledMemory(item.memory_id, item.kind, text, item.label, score, unsure)
