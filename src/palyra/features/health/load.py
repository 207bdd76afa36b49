"""Load and capacity of the daemon: samples of the last hours, in memory.

A sample is taken at every look of the watchdog and whenever somebody asks, so the daemon needs no
timer of its own for it.
"""

import os
import shutil
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from palyra.agent.runs import Runs
from palyra.api.metrics import resident_bytes
from palyra.features.health.watchdog import HealthFinding, LookTime
from palyra.store import tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.upkeep import Upkeep
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday

# Six hours of the usual looks.
KEPT = 720
_LEAST_MS = 1_000


class LoadSample(Struct, frozen=True, kw_only=True):
    """`cpu_bps` is the daemon's processor time since the sample before it, in ten thousandths of
    one processor; `load_bps` is the machine's load over the last minute, for each of its
    processors. `queued` and `running` count background tasks.
    """

    time_ms: int
    cpu_bps: int
    load_bps: int
    memory_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    runs: int
    queued: int
    running: int
    journal_entries: int
    journal_bytes: int


class LoadHistory:
    def __init__(self, db: Database, clock: Clock, runs: Runs, home: Path, journal: Upkeep) -> None:
        self._db = db
        self._clock = clock
        self._runs = runs
        self._home = home
        self._journal = journal
        self._samples: deque[LoadSample] = deque(maxlen=KEPT)
        self._spent_s = time.process_time()
        self._since_ms = clock.now_ms()

    async def samples(self) -> list[LoadSample]:
        """The samples so far, oldest first, and one of now."""
        await self._sample()
        return list(self._samples)

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        """Take a sample with the watchdog's look. A load is never wrong by itself."""
        await self._sample()
        return ()

    async def _sample(self) -> None:
        now_ms = self._clock.now_ms()
        if self._samples and 0 <= now_ms - self._samples[-1].time_ms < _LEAST_MS:
            return

        def query(tx: Tx) -> tuple[int, dict[str, int]]:
            counted = {"queued": 0, "running": 0}
            for _, state, count in tasks.unfinished(tx):
                counted[state] += count
            return tape.last_position(tx), counted

        entries, counted = await self._db.read(query)
        disk = await everyday.run(shutil.disk_usage, self._home)
        stored = await everyday.run(self._journal.size)
        spent_s, passed_ms = time.process_time(), max(1, now_ms - self._since_ms)
        sample = LoadSample(
            time_ms=now_ms,
            cpu_bps=max(0, round((spent_s - self._spent_s) * 10_000_000 / passed_ms)),
            load_bps=round(os.getloadavg()[0] * 10_000 / (os.cpu_count() or 1)),
            memory_bytes=resident_bytes(),
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            runs=self._runs.working,
            queued=counted["queued"],
            running=counted["running"],
            journal_entries=entries,
            journal_bytes=stored,
        )
        self._spent_s, self._since_ms = spent_s, now_ms
        self._samples.append(sample)
