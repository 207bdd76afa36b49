"""Memory as verbs: remember, search, correct, forget, review, pin, export, import, purge.

The rule: what came from outside, looks like an order to the agent or held a secret waits for a
person. It is never searched or shown to a model before, and nobody sees what belongs to somebody
else, or to another channel, session or workspace.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.labels import CLEAN, Label
from palyra.features.memory import model as shapes
from palyra.features.memory import relevance
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.model import (
    Found,
    Item,
    Kind,
    NewMemory,
    State,
    Where,
    Written,
)
from palyra.features.memory.rows import index
from palyra.features.memory.rows import items as items_rows
from palyra.features.memory.rows import search as rows_search
from palyra.features.memory.rows.items import On
from palyra.store import sessions
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

T = TypeVar("T")
_NOT_READY = "the embedding model was not ready in time"
MOST_IMPORTED = 500
ALL_STATES: tuple[State, ...] = ("active", "review", "superseded", "forgotten", "rejected")


class MemorySettings(Struct, frozen=True):
    """`embeddings`: whether meanings are compared, and not words alone."""

    embeddings: bool = True


class MemoryChange(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Changes of an item. Another text, kind, confidence or end is a new version; pinning is
    not.
    """

    text: shapes.Text | None = None
    kind: Kind | None = None
    confidence_bps: shapes.Bps | None = None
    valid_until_ms: shapes.Milliseconds | None = None
    pinned: bool | None = None


class Searched(Struct, frozen=True):
    """Results, best first. `relevance`: how likely each is what was asked for; what is below the
    threshold is not told to the agent.

    `words_only` is set when meanings could not be searched, and says why.
    """

    found: list[Found]
    threshold: float
    words_only: str = ""
    relevance: list[float] = []


class Origin(Struct, frozen=True):
    """Author of a text, and what it was made from."""

    written: Written = "user"
    label: Label = CLEAN
    provenance: tuple[int, ...] = ()
    run: str = ""


_NO_ORIGIN = Origin()


class MemoryStatus(Struct, frozen=True):
    """Status of memory: how many items are in each state, and how meanings are searched."""

    counts: dict[State, int]
    not_embedded: int
    words_only: str


class Imported(Struct, frozen=True):
    """Counts of an import: taken items; of those, how many said what was known or need review."""

    taken: int
    merged: int
    review: int


class Memory:
    def __init__(
        self,
        db: Database,
        redactor: Redactor,
        clock: Clock,
        embedding: Embedding,
        settle_files: Callable[[], None] = lambda: None,
    ) -> None:
        """`settle_files` makes what was deleted leave the disk; it is called on a thread after a
        purge.
        """
        self._db = db
        self._redactor = redactor
        self._clock = clock
        self._settle_files = settle_files
        self._codes = embedding.codes
        self.embedding = embedding
        # Counts what was written since the start: whoever remembers an answer knows by it whether
        # that still holds.
        self.changes = 0

    async def where(self, principal: str, session_id: str = "") -> Where:
        """Return from where one looks who is in this session."""
        if not session_id:
            return Where(principal=principal)
        session = await self._db.read(lambda tx: sessions.get(tx, session_id, principal))
        return Where(
            principal=principal,
            channel=session.channel,
            session=session_id,
            workspace=session.workspace,
        )

    async def add(self, where: Where, new: NewMemory, origin: Origin = _NO_ORIGIN) -> Item:
        """Remember something. It says the same as what is known: that is strengthened and
        returned.
        """
        item = self._item(where, new, origin)
        on = On(where.principal, where.session, origin.run)
        (kept,) = await self._write(lambda tx: items_rows.add(tx, on, [item]))
        return kept

    def prepared(self, where: Where, new: NewMemory, origin: Origin) -> Item:
        """An item as `add` would keep it, for a step of somebody's own; under review if it asks for
        a look.
        """
        return self._item(where, new, origin)

    async def within(self, step: Callable[[Tx], T]) -> T:
        """Write a step of somebody's own that changes what is remembered."""
        return await self._write(step)

    async def change(
        self, where: Where, memory_id: str, change: MemoryChange, origin: Origin = _NO_ORIGIN
    ) -> Item:
        """Correct or pin an item. A new version takes the place of the old one, which stays as
        history.
        """
        on = On(where.principal, where.session, origin.run)

        def step(tx: Tx) -> Item:
            old = _in_sight(tx, where, memory_id)
            fresh = {
                name: value
                for name, value in msgspec.to_builtins(change).items()
                if value is not None and name != "pinned"
            }
            if fresh:
                old = items_rows.correct(tx, on, old, self._version(old, fresh, origin))
            if change.pinned is not None and change.pinned != old.pinned:
                old = items_rows.pin(tx, on, old, pinned=change.pinned)
            return old

        return await self._write(step)

    async def forget(self, where: Where, memory_id: str, run: str = "") -> Item:
        """Take an item out of search. A person can bring it back with `review`, until it is
        purged.
        """
        on = On(where.principal, where.session, run)

        def step(tx: Tx) -> Item:
            item = _in_sight(tx, where, memory_id)
            if item.state in ("forgotten", "superseded", "rejected"):
                return item
            return items_rows.settle(tx, on, item, "forgotten")

        return await self._write(step)

    async def review(
        self, principal: str, memory_id: str, decision: Literal["accept", "reject"]
    ) -> Item:
        """A person's word about an item that waits for one, or was forgotten."""

        def step(tx: Tx) -> Item:
            item = items_rows.get(tx, principal, memory_id)
            if item.state == "superseded":
                raise Conflict(
                    f"memory {memory_id} was corrected: look at {item.superseded_by}",
                    newest=item.superseded_by,
                )
            if decision == "accept":
                return (
                    item
                    if item.state == "active"
                    else items_rows.settle(tx, On(principal), item, "active")
                )
            if item.state == "active":
                raise Conflict(
                    f"memory {memory_id} is in use: forget it instead", memory_id=memory_id
                )
            return items_rows.settle(tx, On(principal), item, "rejected", item.why)

        return await self._write(step)

    async def import_(self, where: Where, given: Sequence[Item | NewMemory]) -> Imported:
        """Remember many at once. Exported items keep their labels, states and times; all of them
        are looked at like new ones.
        """
        if len(given) > MOST_IMPORTED:
            raise InvalidInput(
                f"at most {MOST_IMPORTED} items at once: send them in pieces", limit=MOST_IMPORTED
            )
        items = [self._imported(where, each) for each in given]
        on = On(where.principal, where.session)
        kept = await self._write(lambda tx: items_rows.add(tx, on, items))
        merged = sum(
            given.memory_id != kept.memory_id for given, kept in zip(items, kept, strict=True)
        )
        return Imported(len(kept), merged, sum(item.state == "review" for item in kept))

    async def purge(
        self, principal: str, memory_ids: Sequence[str], *, everything: bool = False
    ) -> int:
        """Remove items for good, with all their versions: text, words, vectors. Says how many rows
        went.
        """

        def step(tx: Tx) -> int:
            if everything:
                count = 0
                while found := items_rows.listing(tx, principal, ALL_STATES, "", 1_000):
                    count += items_rows.purge(tx, On(principal), found)
                return count
            return items_rows.purge(
                tx, On(principal), [items_rows.get(tx, principal, each) for each in memory_ids]
            )

        count = await self._write(step)
        self._codes.release(before_ms=1 << 62)
        # What the pages held is overwritten; what the log holds goes when it is folded in.
        await asyncio.to_thread(self._settle_files)
        return count

    async def _write(self, step: Callable[[Tx], T]) -> T:
        """Write a step. It counts as a change once durable, even if the caller is gone by then."""
        written = self._db.write(step)
        written.add_done_callback(self._changed)
        return await asyncio.shield(written)

    def _changed(self, written: asyncio.Future[T]) -> None:
        if not written.cancelled() and written.exception() is None:
            self.changes += 1
            self.embedding.wake()

    async def any_for(self, principal: str) -> bool:
        """Return whether anything at all is remembered for somebody."""
        return await self._db.read(lambda tx: bool(index.everything_of(tx, principal)))

    async def get(self, principal: str, memory_id: str) -> Item:
        return await self._db.read(lambda tx: items_rows.get(tx, principal, memory_id))

    async def active(self, principal: str, memory_ids: Sequence[str]) -> list[Item]:
        return await self._db.read(lambda tx: items_rows.active(tx, principal, memory_ids))

    async def history(self, principal: str, memory_id: str) -> list[Item]:
        return await self._db.read(lambda tx: items_rows.history(tx, principal, memory_id))

    async def listing(
        self, principal: str, states: Sequence[State], before: str = "", limit: int = 100
    ) -> list[Item]:
        return await self._db.read(
            lambda tx: items_rows.listing(tx, principal, states, before, limit)
        )

    async def status(self, principal: str) -> MemoryStatus:
        def query(tx: Tx) -> tuple[dict[State, int], int]:
            return items_rows.counts(tx, principal), items_rows.not_embedded(tx, principal)

        counts, left = await self._db.read(query)
        return MemoryStatus(counts, left, self.embedding.why_not)

    async def search(
        self,
        where: Where,
        text: str,
        limit: int = 10,
        *,
        everywhere: bool = False,
        patient: bool = True,
    ) -> Searched:
        """The best items for a question, of those in sight. `everywhere` is for the person who owns
        them all.

        Who is not patient gets what words alone find if the embedding model is not ready in time.
        """

        def seen(tx: Tx) -> list[index.Partition]:
            return (
                index.everything_of(tx, where.principal) if everywhere else index.visible(tx, where)
            )

        if not await self._db.read(seen):
            return Searched([], relevance.TOLD_FROM, self.embedding.why_not)
        vector = await self.embedding.question(text, patient=patient)
        found = await self._db.read(
            lambda tx: rows_search.search(
                tx,
                seen(tx),
                text,
                max(limit, relevance.WEIGHED),
                vector=vector,
                codes=self._codes,
            )
        )
        if vector is not None:
            likely = relevance.of(text, found)
            return Searched(found[:limit], relevance.TOLD_FROM, "", likely[:limit])
        likely = [max(each.score, each.parts.own) for each in found]
        if not any(each.parts.own >= shapes.WORDS_THRESHOLD for each in found):
            likely = [0.0 for _ in found]
        missing = self.embedding.why_not or _NOT_READY
        return Searched(found[:limit], shapes.WORDS_THRESHOLD, missing, likely[:limit])

    async def standing(self, where: Where) -> list[Item]:
        """Return what goes with every prompt without being searched: what is pinned, and
        preferences that were learned.
        """

        def query(tx: Tx) -> list[Item]:
            partitions = [each.partition for each in index.visible(tx, where)]
            return items_rows.pinned(tx, where.principal, partitions) if partitions else []

        return await self._db.read(query)

    def _item(self, where: Where, new: NewMemory, origin: Origin) -> Item:
        value = where.value(new.scope)
        if new.scope != "principal" and not value:
            raise InvalidInput(
                f"there is no {new.scope} here to remember this for: name a session that has one"
            )
        now = self._clock.now_ms()
        plain = Item(
            memory_id=self._clock.new_id(),
            owner=where.principal,
            text=new.text,
            kind=new.kind,
            scope=new.scope,
            scope_value=value,
            label=origin.label,
            provenance=origin.provenance,
            source=new.source,
            place=new.place,
            confidence_bps=new.confidence_bps,
            valid_from_ms=new.valid_from_ms,
            valid_until_ms=new.valid_until_ms,
            expires_ms=now + new.ttl_ms if new.ttl_ms else 0,
            pinned=new.pinned,
            origin=origin.written,
            created_ms=now,
            updated_ms=now,
        )
        return self._checked(plain)

    def _checked(self, item: Item) -> Item:
        """The item as it may be kept: without secrets, and under review if anything about it asks
        for a look.
        """
        text = self._redactor.redact(
            " ".join(item.text.split()) if "\n" not in item.text else item.text.strip()
        )
        if not text:
            raise InvalidInput("there is nothing to remember: the text is empty")
        order = labels.commands(text, by_a_person=item.origin in ("user", "import"))
        why = ""
        if item.label.integrity == "untrusted":
            why = "made from untrusted content: " + (
                ", ".join(item.label.sources) or "source unknown"
            )
        elif text != item.text and "[redacted:" in text:
            why = "held a secret, which was taken out; secrets belong into the vault"
        elif order:
            why = f"looks like an instruction to the agent: {order}"
        if not why:
            return msgspec.structs.replace(item, text=text)
        return msgspec.structs.replace(item, text=text, state="review", why=why)

    def _version(self, old: Item, fresh: dict[str, Any], origin: Origin) -> Item:
        now = self._clock.now_ms()
        return self._checked(
            msgspec.structs.replace(
                old,
                **fresh,
                memory_id=self._clock.new_id(),
                # Other words come from whoever writes them; anything else is still about the old
                # ones.
                label=origin.label if "text" in fresh else labels.join([old.label, origin.label]),
                provenance=origin.provenance or old.provenance,
                origin=origin.written,
                state="active",
                why="",
                superseded_by="",
                created_ms=now,
                updated_ms=now,
                embedded=False,
            )
        )

    def _imported(self, where: Where, given: Item | NewMemory) -> Item:
        if isinstance(given, NewMemory):
            return self._item(where, given, Origin("import"))
        now = self._clock.now_ms()
        checked = self._checked(
            msgspec.structs.replace(
                given,
                memory_id=self._clock.new_id(),
                owner=where.principal,
                # Positions are those of the journal it was exported from.
                provenance=(),
                supersedes="",
                superseded_by="",
                state="active",
                why="",
                origin="import",
                created_ms=given.created_ms or now,
                updated_ms=now,
                embedded=False,
            )
        )
        if given.state != "active" and checked.state == "active":
            return msgspec.structs.replace(
                checked, state="review", why=f"was {given.state} where it was exported"
            )
        return checked


def _in_sight(tx: Tx, where: Where, memory_id: str) -> Item:
    """An item of the principal; from inside a session only one that can be seen there."""
    item = items_rows.get(tx, where.principal, memory_id)
    if where.session and item.scope_value != where.value(item.scope):
        raise NotFound(f"there is no memory {memory_id[:64]}", memory_id=memory_id[:64])
    return item
