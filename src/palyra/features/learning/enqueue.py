"""Feeds the queue with sessions to reflect on. A completed run only sets a flag; what follows is
one step for all of them together.

The rule: a run never waits for learning, and nothing wakes up that has nothing to do.
"""

import asyncio
import logging

from palyra.core.errors import PalyraError
from palyra.features.learning import rows
from palyra.features.learning.reflection import feed
from palyra.features.learning.settings import FEED_MS, LearningSettings
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

log = logging.getLogger("palyra.learning")

_AT_ONCE = 500


class Feeder:
    def __init__(self, db: Database, clock: Clock, settings: LearningSettings) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._due = False

    def ended(self, run_id: str = "") -> None:
        """A run has ended, or the daemon has started: there may be something to read."""
        if not self._settings.enabled:
            return
        self._due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def use(self, settings: LearningSettings) -> None:
        """Other settings from now on. What ended while it was switched off is read when it is
        switched on.
        """
        resumed = settings.enabled and not self._settings.enabled
        self._settings = settings
        if resumed:
            self.ended()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._due:
            await self._clock.sleep(FEED_MS)
            if not self._settings.enabled:
                return
            self._due = False
            try:
                self._due = await self._db.write(self._feed) or self._due
            except PalyraError as error:
                log.warning("nothing could be queued for learning now: %s", error.message)
                self._due = True
            except Exception:
                log.exception("nothing could be queued for learning")
                self._due = True

    def _feed(self, tx: Tx) -> bool:
        """One step: the sessions with new runs, each not before its cooldown is over. Whether there
        is more.
        """
        fed, more = rows.feed(tx, _AT_ONCE)
        for each in fed:
            last_ms = rows.reflected_ms(tx, each.session_id)
            feed(
                tx,
                each.session_id,
                each.owner,
                last_ms + self._settings.cooldown_ms if last_ms else 0,
            )
        return more
