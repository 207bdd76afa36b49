"""Notices of the owner carried into a chat: each once, from a position that is stored in the step
that posts it.

The rule: what is told about messages that could not be sent is not sent the same way, or one of
them would bring the next. If the channel is down, a notice waits in the outbox like everything
else, and nobody is troubled about that.
"""

import asyncio
import logging
from functools import partial

from palyra.core.errors import Unavailable
from palyra.core.ids import OWNER
from palyra.features.channels.approval_prompts import ApprovalPrompts
from palyra.features.channels.outbox import Posting
from palyra.features.channels.rows import messages
from palyra.features.channels.views import ChatPlace
from palyra.features.notices import rows as notice_rows
from palyra.features.notices.rows import StoredNotice
from palyra.features.notices.service import Notices
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

log = logging.getLogger("palyra.channels")

# A channel's name has no colon.
_CURSOR = "notices:"
_RETRY_MS = 1_000
# What is older was told while nothing was carried here, and is no news.
_NEWS_MS = 86_400_000


class Telling:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        notices: Notices,
        posting: Posting,
        asking: ApprovalPrompts,
    ) -> None:
        self._db = db
        self._clock = clock
        self._notices = notices
        self._posting = posting
        self._asking = asking
        self._to: ChatPlace | None = None
        self._task: asyncio.Task[None] | None = None

    async def use(self, to: str) -> None:
        """Carry them to `channel/conversation` from now on; nothing: nowhere."""
        connector, _, conversation = to.partition("/")
        place = ChatPlace(connector, conversation) if conversation else None
        if place == self._to:
            return
        await self.close()
        self._to = None
        if place is not None:
            await self._db.write(_begin)
            self._to = place
            self._task = asyncio.create_task(self._carry(place))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=2.0)
            self._task = None

    async def _carry(self, place: ChatPlace) -> None:
        while True:
            try:
                after = await self._db.write(_begin)
                async for told in self._notices.follow(after):
                    await self._pass_on(told, place)
            except Unavailable as error:
                log.warning("a notice waits: %s", error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception:
                log.exception("notices cannot be followed")
                await self._clock.sleep(10 * _RETRY_MS)

    async def _pass_on(self, told: StoredNotice, place: ChatPlace) -> None:
        try:
            await self._db.write(partial(self._tell, told=told, place=place))
        except Unavailable:
            raise
        except Exception:
            # It is in the console all the same; the next one must not wait behind it for ever.
            log.exception("notice %s could not be passed on", told.notice.notice_id)
            await self._db.write(lambda tx: messages.remember(tx, _CURSOR, str(told.position)))

    def _tell(self, tx: Tx, told: StoredNotice, place: ChatPlace) -> None:
        notice = told.notice
        messages.remember(tx, _CURSOR, str(told.position))
        own = notice.about == "channel" and notice.key.startswith(
            ("dead:", f"failed:{place.connector}:")
        )
        if told.to != OWNER or own or notice.created_ms < tx.now_ms - _NEWS_MS:
            return
        if notice.about == "approval" and self._asking.put(tx, place, notice.key.partition(":")[2]):
            return
        self._posting.post(tx, place, notice.text, "message", reply_id=notice.notice_id)


def _begin(tx: Tx) -> int:
    """Return where it was left. The first time that is now: what was told before was told
    elsewhere.
    """
    left = messages.recall(tx, _CURSOR)
    if left:
        return int(left)
    now = notice_rows.last_position(tx)
    messages.remember(tx, _CURSOR, str(now))
    return now
