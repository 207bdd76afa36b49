"""Watch of the files that schedules wait for. The system tells of changes; nothing is watched while
no schedule asks for it.

What changes while the daemon is not running is not noticed. Many changes at once are one firing.
"""

import asyncio
import logging
from pathlib import Path

from palyra.core.errors import PalyraError
from palyra.features.schedules import rows, steps
from palyra.features.schedules.model import FileTrigger, Schedule
from palyra.store.database import Database, Tx
from palyra.system.thread_pool import everyday

log = logging.getLogger("palyra.schedules")
# So long nothing must have changed, or so long it may go on changing, until it is one firing.
_QUIET_MS = 500
_LONGEST_MS = 5_000
_AGAIN_S = 5.0


class WatchedFiles:
    def __init__(self, db: Database, *, quiet_ms: int = _QUIET_MS) -> None:
        self._db = db
        self._quiet_ms = quiet_ms
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        # Set while everything that should be is being watched.
        self.watching = asyncio.Event()

    async def start(self) -> None:
        if await self._watched():
            self.renew()

    def renew(self) -> None:
        """Renew the watches: schedules have come or gone."""
        self.watching.clear()
        self._changed.set()
        self._stop.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _watched(self) -> dict[str, str]:
        """Return paths by schedule."""
        found = await self._db.read(rows.listing)
        return {
            each.schedule_id: each.trigger.path
            for each in found
            if each.state == "active" and isinstance(each.trigger, FileTrigger)
        }

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            self._stop = asyncio.Event()
            try:
                paths = await self._watched()
                if not paths and not self._changed.is_set():
                    return
                await self._watch(paths)
            except PalyraError as error:
                log.warning("which files are to be watched cannot be read now: %s", error.message)
                await asyncio.sleep(_AGAIN_S)
            except (OSError, RuntimeError) as error:
                # A path is gone: it is watched again when schedules change or the daemon starts.
                log.warning("files cannot be watched: %s", error)
                await self._changed.wait()

    async def _watch(self, paths: dict[str, str]) -> None:
        there, folders = await everyday.run(_folders, paths)
        if not folders:
            self.watching.set()
            await self._changed.wait()
            return
        from watchfiles import awatch  # costs start-up time that only who watches should pay

        loop = awatch(
            *folders,
            stop_event=self._stop,
            debounce=_LONGEST_MS,
            step=self._quiet_ms,
            recursive=True,
            yield_on_timeout=False,
        )
        asyncio.get_running_loop().call_later(0.2, self.watching.set)
        async for changes in loop:
            touched = {path for _, path in changes}
            hit = [
                schedule_id
                for schedule_id, path in there.items()
                if any(_below(each, path) for each in touched)
            ]
            if hit:
                await self._fire(hit)

    async def _fire(self, schedule_ids: list[str]) -> None:
        def step(tx: Tx) -> None:
            for schedule_id in schedule_ids:
                schedule: Schedule | None = rows.find(tx, schedule_id)
                if schedule is not None and schedule.state == "active":
                    steps.happened(tx, schedule, "a file changed")

        try:
            await self._db.write(step)
        except PalyraError as error:
            log.error("a change of a file could not be recorded: %s", error.message)


def _folders(paths: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """Return what exists, and the folders to watch: a file through its folder, because editors put
    a new file in its place.
    """
    there = {schedule_id: path for schedule_id, path in paths.items() if Path(path).exists()}
    return there, {
        path if Path(path).is_dir() else str(Path(path).parent) for path in there.values()
    }


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
