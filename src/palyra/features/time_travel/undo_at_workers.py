"""Taking back what calls changed at workers: a worker keeps how its files were, is asked to put
them back, says what it did.
"""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from palyra.core.errors import PalyraError, Unavailable
from palyra.core.events import FileChange
from palyra.features.workers.protocol import TookBack
from palyra.store import artifacts
from palyra.store.artifacts import EffectRow


class NotUndone(Struct, frozen=True, kw_only=True):
    """A call whose changes could not be put back, and why."""

    call_id: str
    tool: str
    why: str


class There(Struct, frozen=True, kw_only=True):
    """The calls of one worker, newest first, with what taking each back changes there, or why it
    cannot be.
    """

    worker: str
    effects: tuple[EffectRow, ...]
    taken: dict[str, tuple[FileChange, ...]] = {}
    clashes: tuple[str, ...] = ()
    why_not: str = ""
    diff: str = ""

    @property
    def left(self) -> tuple[NotUndone, ...]:
        return tuple(
            NotUndone(call_id=each.call_id, tool=each.tool, why=self.why_not)
            for each in self.effects
            if self.why_not
        )

    @property
    def changes(self) -> tuple[FileChange, ...]:
        found = {each.path: each for changes in self.taken.values() for each in changes}
        return tuple(found.values())


class WorkerUndoPort(Protocol):
    """Whoever reaches them; see `palyra.features.workers`."""

    async def take_back(
        self, worker: str, session_id: str, calls: tuple[str, ...], *, look: bool, force: bool
    ) -> TookBack: ...


class NoWorkers:
    """A daemon without workers: their part stays undone."""

    async def take_back(
        self, worker: str, session_id: str, calls: tuple[str, ...], *, look: bool, force: bool
    ) -> TookBack:
        raise Unavailable(f"the worker {worker} cannot be reached: this daemon has no workers")


def grouped(effects: Iterable[EffectRow]) -> list[There]:
    by_worker: dict[str, list[EffectRow]] = {}
    for effect in effects:
        by_worker.setdefault(artifacts.elsewhere(effect), []).append(effect)
    return [There(worker=worker, effects=tuple(found)) for worker, found in by_worker.items()]


async def ask(
    workers: WorkerUndoPort, session_id: str, there: There, *, look: bool, force: bool
) -> There:
    """What a worker did, or would do. That it cannot is an answer too."""
    calls = tuple(effect.call_id for effect in reversed(there.effects))
    try:
        took = await workers.take_back(there.worker, session_id, calls, look=look, force=force)
    except PalyraError as error:
        return There(worker=there.worker, effects=there.effects, why_not=error.message)
    why_not = took.failed
    if took.missing:
        why_not = f"the worker {there.worker} has not kept how its files were before"
    elif took.clashes and not force and not look:
        why_not = (
            f"changed by somebody else on {there.worker} in the meantime:"
            f" {', '.join(took.clashes[:20])}"
        )
    mine = {each.call_id: each.changes for each in took.taken}
    return There(
        worker=there.worker,
        effects=there.effects,
        taken={
            call: tuple(
                FileChange(_path(there, each.path), each.change) for each in mine.get(call, ())
            )
            for call in reversed(calls)
        },
        clashes=tuple(_path(there, path) for path in took.clashes),
        why_not=why_not,
        diff=f"# on the worker {there.worker}\n{took.diff}" if took.diff else "",
    )


def _path(there: There, path: str) -> str:
    """As policies and approvals name files there."""
    return f"/worker:{there.worker}/{path[:4_096]}"
