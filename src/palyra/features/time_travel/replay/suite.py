"""A folder of kept runs as regression tests: each is replayed, and one sentence says what came of
all.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.replay.replay import Replayed, replay
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


def _tried(
    files: list[Path], ours: Catalogue, told: Callable[[ReplayedRun], None]
) -> Iterator[ReplayedRun]:
    for path in files:
        try:
            one = ReplayedRun(
                file=path.name, replayed=replay(recordings.decode(path.read_bytes()), ours)
            )
        except PalyraError as error:
            one = ReplayedRun(file=path.name, problem=error.message)
        told(one)
        yield one
