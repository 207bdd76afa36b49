"""Holding on to what cannot be had again for nothing while the store refuses it: a reply that was paid for, what a tool did.

The rule: whoever holds on waits here, asks nobody a second time and does nothing a second time. What is held is lost only with the
process, and then it is in doubt as after any crash.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from palyra.domain.errors import Unavailable
from palyra.journal.database import Database, Tx

T = TypeVar("T")

log = logging.getLogger("palyra.journal")
# Nothing tells that there is room again.
RETRY_S = 5.0


async def insist(db: Database, step: Callable[[Tx], T], what: str) -> T:
    """Hand a step over until the store takes it."""
    while True:
        try:
            return await db.write(step)
        except Unavailable as error:
            if db.closed:
                raise
            log.error("%s is held until it can be written: %s", what, error.message)
            await asyncio.sleep(RETRY_S)
