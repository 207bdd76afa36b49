"""Replays inside a running daemon: one at a time, on a thread with an event loop of its own, and
looked at later.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Literal

from msgspec import Struct

from palyra.core import ids
from palyra.core.errors import NotFound, PalyraError
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.replay.replay import Replayed, replay
from palyra.store import runs
from palyra.store.database import Database
from palyra.tools.catalogue import Catalogue

log = logging.getLogger("palyra.replay")

_REMEMBERED = 256


class RunReplay(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far the replay of a run is. `problem`: why it could not be replayed."""

    run_id: str
    state: Literal["running", "done", "failed"]
    replayed: Replayed | None = None
    problem: str = ""


class Replays:
    def __init__(self, db: Database, catalogue: Catalogue) -> None:
        self._db = db
        self._catalogue = catalogue
        self._found: OrderedDict[str, RunReplay] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # One at a time: live work goes first.
        self._slot = asyncio.Semaphore(1)

    async def start(self, principal: str, run_id: str) -> RunReplay:
        """Replay a run of this principal. One that is being replayed already is not begun again."""
        ids.check(run_id, "run_id")
        await self._db.read(lambda tx: runs.get(tx, run_id, principal))
        recording = await self._db.read(lambda tx: recordings.read(tx, run_id, principal))
        # Looked at only now: somebody else may have begun it meanwhile.
        known = self._found.get(run_id)
        if known is not None and known.state == "running":
            return known
        begun = self._say(RunReplay(run_id=run_id, state="running"))
        self._tasks[run_id] = asyncio.create_task(self._replay(recording))
        return begun

    async def get(self, principal: str, run_id: str, wait_ms: int = 0) -> RunReplay:
        """How far it is; after `wait_ms` at the latest, or when it is done."""
        ids.check(run_id, "run_id")
        await self._db.read(lambda tx: runs.get(tx, run_id, principal))
        task = self._tasks.get(run_id)
        if task is not None and wait_ms:
            await asyncio.wait([task], timeout=wait_ms / 1000)
        known = self._found.get(run_id)
        if known is None:
            raise NotFound(
                f"run {run_id} has not been replayed: ask for it with POST", run_id=run_id
            )
        return known

    async def _replay(self, recording: Recording) -> None:
        async with self._slot:
            try:
                replayed = await asyncio.to_thread(replay, recording, self._catalogue)
            except PalyraError as error:
                self._say(RunReplay(run_id=recording.run_id, state="failed", problem=error.message))
            except Exception as error:
                log.exception("the replay of run %s failed", recording.run_id)
                problem = (
                    f"the replay itself failed ({type(error).__name__}): this is a defect, and the"
                    " log says more"
                )
                self._say(RunReplay(run_id=recording.run_id, state="failed", problem=problem))
            else:
                self._say(RunReplay(run_id=recording.run_id, state="done", replayed=replayed))
            finally:
                self._tasks.pop(recording.run_id, None)

    def _say(self, found: RunReplay) -> RunReplay:
        self._found[found.run_id] = found
        self._found.move_to_end(found.run_id)
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return found

    async def close(self) -> None:
        """A replay has no effects: what is being worked on is left."""
        working = list(self._tasks.values())
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working, timeout=1)
