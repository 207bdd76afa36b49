"""Recording who was turned away at the workers' door. Anybody can knock: what is said again and
again is counted, not repeated.
"""

from msgspec import Struct

from palyra.core.events import RefusedWorker, WorkerRefused
from palyra.core.ids import SYSTEM, SYSTEM_TAPE, CallId
from palyra.store import tape
from palyra.store.database import Database
from palyra.system.clock import Clock

_QUIET_MS = 60_000
_MOST_KNOWN = 1_000


class _Told(Struct):
    until_ms: int
    unsaid: int = 0


class WorkerRefusalLog:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._told: dict[tuple[str, str, str], _Told] = {}
        self.total = 0

    def note(
        self,
        why: RefusedWorker,
        *,
        worker: str = "",
        address: str = "",
        call_id: str = "",
        detail: str = "",
    ) -> None:
        """Put it on the system tape, unless the same was said within the last minute."""
        self.total += 1
        now = self._clock.elapsed_ms()
        # Who only knocks is told apart by address; a worker is known by its name, wherever it comes
        # from.
        about = (why, worker or address, call_id)
        known = self._told.get(about)
        if known is not None and known.until_ms > now:
            known.unsaid += 1
            return
        if len(self._told) >= _MOST_KNOWN:
            self._told = {key: told for key, told in self._told.items() if told.until_ms > now}
        if len(self._told) >= _MOST_KNOWN:
            return  # A flood from a thousand addresses in a minute: its beginning is on the tape.
        self._told[about] = _Told(now + _QUIET_MS)
        event = WorkerRefused(
            why=why,
            worker=worker,
            address=address,
            call_id=CallId(call_id) if call_id else None,
            detail=detail[:500],
            times=1 + (known.unsaid if known else 0),
        )
        self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))
