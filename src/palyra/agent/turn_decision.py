"""Record of what was decided of a turn's calls, on its way to the tape."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from palyra.agent.judged_call import Judged
from palyra.core.events import ToolDecided, ToolProposed
from palyra.core.run_progress import CallProgress
from palyra.store.database import Database, Tx

# A result that comes sooner goes on the tape in the same commit.
_WITH_RESULT_S = 0.1


class TurnDecision:
    """The step that records what was decided, and that the calls have started.

    A call that only looks at what is here changes nothing and tells nobody, so its record need not
    be durable before it runs, only before its result is shown to a model. If the result comes at
    once, both are one commit; if not, the record is written while the call runs.
    """

    def __init__(self, db: Database, step: Callable[[Tx], None]) -> None:
        self._db = db
        self._step = step
        self._told: asyncio.Future[None] | None = None
        self._taken = False
        self._timer: asyncio.TimerHandle | None = None

    def tell_soon(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_WITH_RESULT_S, self.tell)

    def tell(self) -> "asyncio.Future[None]":
        """Hand it over to the store, if that was not done."""
        self.close()
        if self._told is None:
            self._told = self._db.write(self._step)
        return self._told

    async def told(self) -> None:
        """Wait until it is durable, unless it was taken by who writes a result."""
        if not self._taken:
            await self.tell()

    async def take(self) -> Callable[[Tx], None] | None:
        """The step, for who writes it together with a result; None if it is on the tape by
        itself.
        """
        if self._told is None:
            self.close()
            self._taken = True
            return self._step
        await self._told
        return None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def as_decided(call: CallProgress, judged: Judged) -> CallProgress:
    """The call as the tape will show it when its decision is there."""
    proposed = next(each for each in judged.events if isinstance(each, ToolProposed))
    decided = next(each for each in judged.events if isinstance(each, ToolDecided))
    # Nobody has tried it before it is decided; the live call may have moved on by now.
    return replace(call, proposed=proposed, decided=decided, attempts=1)
