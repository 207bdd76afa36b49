"""Sessions that programs never named are archived when nobody has used them for a while, so that
the list shows what people work with. The next request with their history brings them back.
"""

from functools import partial

from msgspec import Struct

from palyra.core.events import SessionChanged
from palyra.core.ids import SYSTEM
from palyra.features.openai_api import rows
from palyra.features.tasks.worker import Step, Tasks
from palyra.store import sessions, tasks
from palyra.store.database import Database, Tx
from palyra.store.tasks import Task

KIND = "openai.archive_idle"
_HOUR_MS = 3_600_000
_SOON_MS = 1_000
# One step holds up everybody who writes.
_MOST = 100


class CallerSettings(Struct, frozen=True):
    """Settings of programs' sessions. 0 hours: they are never archived."""

    archive_after_hours: int = 24


class IdleSessions:
    def __init__(self, db: Database, settings: CallerSettings) -> None:
        self._db = db
        self._hours = settings.archive_after_hours

    def register(self, tasks_: Tasks) -> None:
        tasks_.register(KIND, self._archive, unhurried=True)

    async def start(self) -> None:
        """See to it that there is a next time."""
        if self._hours:
            await self._db.write(partial(_next, after_ms=_HOUR_MS, again=False))

    async def _archive(self, task: Task) -> Step | None:
        return partial(archive, hours=self._hours) if self._hours else None


def archive(tx: Tx, *, hours: int) -> None:
    """Archive the sessions that were not used for so many hours, and plan the next round."""
    found = rows.idle(tx, tx.now_ms - hours * _HOUR_MS, _MOST)
    for session_id, owner in found:
        session = sessions.get(tx, session_id, owner)
        sessions.change(tx, session, SessionChanged(archived=True), by=SYSTEM)
    if not found:
        rows.forget_sealed(tx)
    _next(tx, after_ms=_SOON_MS if len(found) == _MOST else _HOUR_MS, again=True)


def _next(tx: Tx, *, after_ms: int, again: bool) -> None:
    at = tx.now_ms + after_ms
    tasks.enqueue(tx, KIND, key="round", again=again, priority=tasks.LOW, not_before_ms=at)
