"""Telling whoever wrote in a chat that their answer takes longer, because no provider can answer.

Once for each run, and only if it takes longer than a hiccup. One timer serves all of them; what was
said is in the outbox, so a restart says nothing twice.
"""

import asyncio
import logging
from functools import partial

from palyra.core.errors import Unavailable
from palyra.features.channels import texts
from palyra.features.channels.outbox import Posting
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.views import ChatPlace
from palyra.store import approvals, run_waits
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

log = logging.getLogger("palyra.channels")

# Shorter waits are nobody's business.
AFTER_MS = 60_000
_RETRY_MS = 5_000


class WaitNotes:
    def __init__(self, db: Database, clock: Clock, posting: Posting) -> None:
        self._db = db
        self._clock = clock
        self._posting = posting
        # When whoever waits for a run is told, by a clock that nobody sets.
        self._due: dict[str, int] = {}
        self._timer: asyncio.Task[None] | None = None

    def waits(self, run_id: str, since_ms: int) -> None:
        """A run waits for its provider since then."""
        waited_ms = max(0, self._clock.now_ms() - since_ms)
        self._due.setdefault(run_id, self._clock.ticks_ms() + max(0, AFTER_MS - waited_ms))
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._tell())

    def over(self, run_id: str) -> None:
        """A run has ended."""
        self._due.pop(run_id, None)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.wait({self._timer}, timeout=1.0)

    async def _tell(self) -> None:
        while self._due:
            run_id, due_ms = min(self._due.items(), key=lambda each: each[1])
            left_ms = due_ms - self._clock.ticks_ms()
            if left_ms > 0:
                # Who comes later is due later.
                await self._clock.sleep(left_ms)
                continue
            try:
                await self._db.write(partial(self._note, run_id=run_id))
            except Unavailable as error:
                log.warning("that an answer takes longer could not be told: %s", error.message)
                await self._clock.sleep(_RETRY_MS)
                continue
            except Exception:
                log.exception("that run %s takes longer could not be told", run_id)
            self._due.pop(run_id, None)

    def _note(self, tx: Tx, run_id: str) -> None:
        wait = run_waits.of_runs(tx, [run_id]).get(run_id)
        messages = [each for each in messages_rows.of_run(tx, run_id) if each.state == "queued"]
        if wait is None or not messages:
            return
        first = messages[0]
        inside = first.inbound.is_direct and not first.principal.startswith(approvals.CHANNEL)
        text, buttons = texts.waiting(
            wait,
            self._clock.now_ms(),
            inside=inside,
            buttons=self._posting.abilities(first.connector).buttons,
        )
        self._posting.post(
            tx,
            ChatPlace(first.connector, first.conversation, first.thread),
            text,
            "told",
            reply_id=f"{run_id}w",
            message_id=first.message_id,
            reply_to=messages[-1].inbound.native_id,
            buttons=buttons,
        )
