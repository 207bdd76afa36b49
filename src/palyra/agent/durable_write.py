"""Holding on to what cannot be had again for nothing while the store refuses it: a reply that was
paid for, what a tool did.

The rule: whoever holds on waits here, asks nobody a second time and does nothing a second time.
What is held is lost only with the process, and then it is in doubt as after any crash.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from palyra.core.errors import PalyraError, Unavailable
from palyra.store.database import Database, Tx

T = TypeVar("T")

log = logging.getLogger("palyra.journal")
# Nothing tells that there is room again.
RETRY_S = 5.0
# Tasks that nobody waits for: the event loop alone would forget them.
_holding: set[asyncio.Task[None]] = set()


async def write_until_stored(
    db: Database, step: Callable[[Tx], T], what: str, handed_over: "asyncio.Future[T] | None" = None
) -> T:
    """Hand a step over until the store takes it. `handed_over`: it was, once, by the caller."""
    while True:
        try:
            return await (handed_over or db.write(step))
        except Unavailable as error:
            handed_over = None
            if db.closed:
                raise
            log.error("%s is held until it can be written: %s", what, error.message)
            await asyncio.sleep(RETRY_S)


def soon(db: Database, step: Callable[[Tx], T], what: str) -> None:
    """Hand a step over now, and again until the store takes it, while the caller goes on: for
    whoever is being cancelled.
    """
    holding = asyncio.create_task(_hold(db, step, what, db.write(step)))
    _holding.add(holding)
    holding.add_done_callback(_holding.discard)


async def _hold(
    db: Database, step: Callable[[Tx], T], what: str, handed_over: "asyncio.Future[T]"
) -> None:
    try:
        await write_until_stored(db, step, what, handed_over)
    except PalyraError as error:
        log.error("%s is lost: %s", what, error.message)
