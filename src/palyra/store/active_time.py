"""Active time of runs, whatever the wall clock does: a machine that sleeps, or a clock that is set,
is no work.

Entries are stamped with the wall clock. Between two entries of a run that is in progress the writer
also measures with a clock that nobody sets and that stands still while the machine sleeps. If the
two disagree, an entry says how long it really was, and readers that count active time count that.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from palyra.core.events import RunClockChanged

# What a clock that is kept in step by the network gains or loses in half an hour is less.
LEAST_MS = 2_000


class ActiveTime(Protocol):
    """Hooks that the writer calls before and after it appends to a run. What a step notes counts
    once the step is kept and committed.
    """

    def changed(self, tape: str, seq: int, run_id: str, now_ms: int) -> RunClockChanged | None:
        """Return the entry that must precede the next one of a run in progress, whose tape ends at
        `seq`; None: the clocks agree.
        """
        ...

    def note(self, run_id: str, now_ms: int, *, working: bool) -> None:
        """An entry of a run was appended now, and the run is in progress behind it, or not."""
        ...

    def keep(self) -> None: ...

    def drop(self) -> None: ...

    def commit(self) -> None: ...

    def undo(self) -> None: ...


class _Last(NamedTuple):
    wall_ms: int
    ticks_ms: int
    slept_ms: int


class Measured:
    """`ticks` is a clock that nobody sets and that does not run while the machine sleeps; `slept`,
    how long it has slept so far.
    """

    def __init__(self, ticks: Callable[[], int], slept: Callable[[], int] = lambda: 0) -> None:
        self._ticks = ticks
        self._slept = slept
        # The last entry of each run in progress: committed, of this commit, of this step. None: not
        # in progress any more.
        self._committed: dict[str, _Last] = {}
        self._batch: dict[str, _Last | None] = {}
        self._step: dict[str, _Last | None] = {}

    def changed(self, tape: str, seq: int, run_id: str, now_ms: int) -> RunClockChanged | None:
        last = self._last(run_id)
        if last is None:
            return None
        active_ms = self._ticks() - last.ticks_ms
        moved_ms = now_ms - last.wall_ms - active_ms
        if abs(moved_ms) < LEAST_MS:
            return None
        return RunClockChanged(
            active_ms=max(0, active_ms),
            moved_ms=moved_ms,
            slept_ms=max(0, self._slept() - last.slept_ms),
        )

    def _last(self, run_id: str) -> _Last | None:
        for notes in (self._step, self._batch):
            if run_id in notes:
                return notes[run_id]
        return self._committed.get(run_id)

    def note(self, run_id: str, now_ms: int, *, working: bool) -> None:
        self._step[run_id] = _Last(now_ms, self._ticks(), self._slept()) if working else None

    def keep(self) -> None:
        if self._step:
            self._batch.update(self._step)
            self._step.clear()

    def drop(self) -> None:
        self._step.clear()

    def commit(self) -> None:
        for run_id, last in self._batch.items():
            if last is None:
                self._committed.pop(run_id, None)
            else:
                self._committed[run_id] = last
        self._batch.clear()

    def undo(self) -> None:
        self._step.clear()
        self._batch.clear()
