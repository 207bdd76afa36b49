"""Replays inside a running daemon: one at a time, on a thread with an event loop of its own, and
looked at later.

A folder of kept runs as regression tests: each is replayed, and one sentence says what came of
all.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from palyra.core import ids
from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.compare import Replayed
from palyra.features.time_travel.replay.recording import Recording
from palyra.store import runs
from palyra.store.database import Database
from palyra.tools.catalogue import Catalogue

SUFFIX = ".run.json"


class ReplayedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One kept run. `problem`: why it could not be replayed at all."""

    file: str
    replayed: Replayed | None = None
    problem: str = ""

    @property
    def ok(self) -> bool:
        return self.replayed is not None and self.replayed.identical


class SuiteSummary(Struct, frozen=True, kw_only=True):
    identical: int
    different: int
    broken: int
    entries: int
    runs: tuple[ReplayedRun, ...]

    @property
    def ok(self) -> bool:
        return not self.different and not self.broken


def keep(recording: Recording, folder: Path) -> Path:
    """Write a recording into a folder, whole or not at all. One that is there already is not
    replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{recording.run_id or recording.session_id}{SUFFIX}"
    if target.exists():
        raise Conflict(f"{target} exists already: it was kept before", path=str(target))
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        # As private as the journal it comes from.
        with open(fresh, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(recordings.encode(recording))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
    return target


def kept(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}", path=str(folder))
    found = sorted(folder.glob(f"*{SUFFIX}"))
    if not found:
        raise InvalidInput(
            f"{folder} has no kept runs: keep one with `palyra replay --keep RUN {folder}`",
            path=str(folder),
        )
    return found


def run(
    folder: Path, ours: Catalogue, told: Callable[[ReplayedRun], None] = lambda tried: None
) -> SuiteSummary:
    """Replay every kept run of a folder; `told` hears of each at once."""
    tried = tuple(_tried(kept(folder), ours, told))
    return SuiteSummary(
        identical=sum(each.ok for each in tried),
        different=sum(each.replayed is not None and not each.ok for each in tried),
        broken=sum(each.replayed is None for each in tried),
        entries=sum(each.replayed.entries for each in tried if each.replayed),
        runs=tried,
    )


def _replayed(recording: Recording, ours: Catalogue) -> Replayed:
    """Replay a recording. The loop of a replay is loaded with the first: few daemons see one."""
    from palyra.features.time_travel.replay.replay import replay

    return replay(recording, ours)


def _tried(
    files: list[Path], ours: Catalogue, told: Callable[[ReplayedRun], None]
) -> Iterator[ReplayedRun]:
    for path in files:
        try:
            one = ReplayedRun(
                file=path.name, replayed=_replayed(recordings.decode(path.read_bytes()), ours)
            )
        except PalyraError as error:
            one = ReplayedRun(file=path.name, problem=error.message)
        told(one)
        yield one


log = logging.getLogger("palyra.replay")

_REMEMBERED = 256


class RunReplay(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a run's replay. `problem`: why it could not be replayed."""

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
        """Return how far it is; after `wait_ms` at the latest, or when it is done."""
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
                replayed = await asyncio.to_thread(_replayed, recording, self._catalogue)
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
