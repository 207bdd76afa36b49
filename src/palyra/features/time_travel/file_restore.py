"""Putting files back, whole or not at all, while nobody works on them.

The rule: what the files are before is durable before the first of them is touched, and the entry
that tells of the change commits with its end. Whatever stops in between is taken back, by whoever
notices first: the same call, a retry, or the next start.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from palyra.agent.checkpoints import Checkpoints
from palyra.agent.runs import Runs
from palyra.core.errors import PalyraError, Unavailable
from palyra.store import rewinds
from palyra.store.database import Appended, Database, Tx
from palyra.store.rewinds import Travel
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.tools.files.restore import Aim

log = logging.getLogger("palyra.restoring")

T = TypeVar("T")
RETRY_S = 5.0
_SHUTDOWN_GRACE_S = 10.0


class Restoring:
    def __init__(self, db: Database, runs: Runs, checkpoints: Checkpoints, clock: Clock) -> None:
        self._db = db
        self._runs = runs
        self._checkpoints = checkpoints
        self._clock = clock
        # One at a time: two restorations of the same files must not interleave.
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._retries: set[asyncio.Task[None]] = set()

    async def alone(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something that puts files back, with nobody else doing so. It is carried to its end
        whatever becomes of the caller.
        """

        async def locked() -> T:
            async with self._lock:
                return await work()

        task = asyncio.create_task(locked())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def carry_out(
        self,
        session: Session,
        travel: Travel,
        aim: Aim,
        ready: Callable[[Tx], None],
        tell: Callable[[Tx], Appended],
    ) -> Appended:
        """Reach an aim, and tell of it. `ready` refuses, in the step that makes the intent durable,
        if it must not be now.

        That is exact: a run that works is seen there, and one that begins later waits until this is
        over.
        """
        travel_id, session_id = self._clock.new_id(), session.session_id

        def begin(tx: Tx, before: bytes) -> None:
            ready(tx)
            rewinds.begin(tx, travel_id, session_id, travel, before)

        def end(tx: Tx) -> Appended:
            told = tell(tx)
            rewinds.tell(tx, travel_id, session_id, travel, told.position)
            return told

        def at_once(tx: Tx) -> Appended:
            ready(tx)
            return end(tx)

        self._runs.hold_back(session_id)
        try:
            if not await self._take_back(session_id):
                raise Unavailable(
                    "files of this session were restored in part and wait to be undone: the"
                    " daemon's log says why"
                )
            if aim.idle:
                return await self._db.write(at_once)
            before = await self._checkpoints.keep(aim, session.workspace, travel_id)
            await self._db.write(partial(begin, before=before))
            await self._runs.last_words(session_id)
            try:
                await self._checkpoints.reach(aim, session.workspace)
                return await self._db.write(end)
            except Exception:
                await self._take_back(session_id)
                raise
        finally:
            if session_id not in {task.get_name() for task in self._retries}:
                self._runs.let_go(session_id)

    async def elsewhere(
        self,
        session: Session,
        act: Callable[[], Coroutine[Any, Any, T]],
        ready: Callable[[Tx], None],
        tell: Callable[[T, Tx], None],
    ) -> T:
        """Have another machine put its files back, and tell of it. Asked again it answers the same:
        a crash needs no more care.
        """
        session_id = session.session_id
        self._runs.hold_back(session_id)
        try:
            await self._db.write(ready)
            await self._runs.last_words(session_id)
            done = await act()
            await self._db.write(partial(tell, done))
            return done
        finally:
            if session_id not in {task.get_name() for task in self._retries}:
                self._runs.let_go(session_id)

    async def recover(self) -> None:
        """Recover after a start, before any run continues: undo what was begun and not told."""
        for session_id in {each.session_id for each in await self._db.read(rewinds.pending)}:
            self._runs.hold_back(session_id)
            if await self._take_back(session_id):
                self._runs.let_go(session_id)

    async def close(self) -> None:
        for task in self._retries:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_GRACE_S)

    async def _take_back(self, session_id: str) -> bool:
        """Return whether nothing is left half-done. If something is, the session keeps still until
        that is over.
        """
        try:
            for each in await self._db.read(lambda tx: rewinds.pending(tx, session_id)):
                await self._checkpoints.go_back(each.checkpoint, each.workspace, each.travel_id)
                await self._db.write(partial(rewinds.forget, travel_id=each.travel_id))
            return True
        except PalyraError as error:
            log.error(
                "files of session %s were restored in part, and could not be undone: %s",
                session_id,
                error.message,
            )
            self._try_later(session_id)
            return False

    def _try_later(self, session_id: str) -> None:
        if session_id in {task.get_name() for task in self._retries}:
            return
        task = asyncio.create_task(self._retry(session_id), name=session_id)
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _retry(self, session_id: str) -> None:
        done = False
        while not done:
            await asyncio.sleep(RETRY_S)
            async with self._lock:
                done = await self._take_back(session_id)
        self._runs.let_go(session_id)
