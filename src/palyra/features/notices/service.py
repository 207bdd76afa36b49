"""Telling the owner what happened while nobody looked. Each notice is durable and told once for its
key, whoever asks again.

Consoles and programs see it on the event stream. Whoever carries notices further, as a chat channel
does, follows them from a position that it remembers itself.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial

from msgspec import Struct

from palyra.agent.broadcast import Broadcast
from palyra.core.errors import Unavailable
from palyra.core.events import NoticeAbout, OwnerNotified
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.notices import rows
from palyra.features.notices.rows import Notice, StoredNotice
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

LONGEST_TEXT = 2_000


class NoticeList(Struct, frozen=True, kw_only=True):
    """`unread` counts all of them, also those that are not on this page."""

    notices: list[Notice]
    unread: int


class Notices:
    def __init__(self, db: Database, hub: Broadcast, redactor: Redactor, clock: Clock) -> None:
        self._db = db
        self._hub = hub
        self._redactor = redactor
        self._clock = clock
        # What cannot be recorded now, by a key of whoever wants it shown.
        self._shown: dict[str, Notice] = {}

    def unread(self, tx: Tx, principal: str) -> int:
        return rows.unread(tx, principal)

    def show(self, key: str, about: NoticeAbout, text: str, link: str) -> None:
        """Show the owner something that the journal does not take now, until `show_no_more`. It is
        not told to channels.
        """
        told = self._redactor.redact(text)[:LONGEST_TEXT]
        now_ms, notice_id = self._clock.now_ms(), self._clock.new_id()
        self._shown[key] = Notice(
            notice_id=notice_id, about=about, key=key, text=told, link=link, created_ms=now_ms
        )
        self._hub.changed(("incidents",))

    def show_no_more(self, key: str) -> None:
        if self._shown.pop(key, None) is not None:
            self._hub.changed(("incidents",))

    def telling(
        self, about: NoticeAbout, key: str, text: str, link: str = "", *, to: str = OWNER
    ) -> Callable[[Tx], bool]:
        """The step that tells it, for whoever has a step of its own to do it in; gives whether it
        was told now.
        """
        told = self._redactor.redact_head(text, LONGEST_TEXT)
        event = OwnerNotified(
            notice_id=self._clock.new_id(), about=about, key=key, text=told, link=link, to=to
        )
        return partial(rows.tell, event=event)

    async def tell(
        self, about: NoticeAbout, key: str, text: str, link: str = "", *, to: str = OWNER
    ) -> bool:
        """Tell it once for this key, as `budget:month:2026-11` or `schedule:ID:FIRING`; whether it
        was told now.

        `link` is a page of the console, as `#/approvals`.
        """
        return await self._db.write(self.telling(about, key, text, link, to=to))

    async def listing(
        self, principal: str, *, unread: bool | None = None, before: str = "", limit: int = 100
    ) -> NoticeList:
        def query(tx: Tx) -> NoticeList:
            behind = rows.position_of(tx, before, principal) if before else 1 << 62
            found = rows.listing(tx, principal, unread=unread, before=behind, limit=limit)
            return NoticeList(notices=found, unread=rows.unread(tx, principal))

        try:
            found = await self._db.read(query)
        except Unavailable:
            if not self._shown:
                raise
            found = NoticeList(notices=[], unread=0)
        if principal != OWNER or before or unread is False or not self._shown:
            return found
        shown = list(self._shown.values())
        return NoticeList(
            notices=[*shown, *found.notices][:limit], unread=found.unread + len(shown)
        )

    async def read(self, principal: str, notice_id: str = "") -> int:
        """Mark one as read, or all of them; how many were unread."""
        return await self._db.write(
            partial(rows.mark_read, principal=principal, notice_id=notice_id)
        )

    async def follow(self, after: int) -> AsyncIterator[StoredNotice]:
        """Yield every notice behind a position of the journal, as they come, without end: what a
        channel carries further.
        """
        subscription = self._hub.subscribe(SYSTEM_TAPE)
        try:
            while True:
                subscription.lagging = False
                subscription.drop()
                while told := await self._db.read(partial(rows.told_after, position=after)):
                    for each in told:
                        after = each.position
                        yield each
                await subscription.take()
        finally:
            self._hub.unsubscribe(SYSTEM_TAPE, subscription)
