"""Operations of a person on background tasks: look, pause, resume, retry, cancel. Each change is
one step with its record.
"""

from collections.abc import Callable
from typing import Literal

from palyra.core.errors import Conflict, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.tasks.worker import Tasks
from palyra.store import tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.tasks import KindCount, State, Task

Verb = Literal["pause", "resume", "retry", "cancel"]
# From which states a verb leads where, and what to say where it does not.
_MOVES: dict[Verb, tuple[frozenset[State], State, str]] = {
    "pause": (frozenset({"queued"}), "paused", "only a task that waits can be paused"),
    "resume": (
        frozenset({"paused"}),
        "queued",
        "only a paused task can be resumed; `retry` begins one that has ended again",
    ),
    "retry": (tasks.ENDED, "queued", "only a task that has ended can be retried; cancel it first"),
    "cancel": (frozenset({"queued", "paused", "running"}), "cancelled", "it has ended"),
}
_PAST: dict[Verb, str] = {
    "pause": "paused",
    "resume": "resumed",
    "retry": "retried",
    "cancel": "cancelled",
}


class TaskVerbs:
    def __init__(self, db: Database, worker: Tasks) -> None:
        self._db = db
        self._worker = worker

    async def get(self, task_id: str) -> Task:
        return await self._db.read(lambda tx: tasks.get(tx, task_id))

    async def listing(
        self, *, kind: str = "", state: str = "", before: str = "", limit: int = 100
    ) -> list[Task]:
        return await self._db.read(
            lambda tx: tasks.listing(tx, kind=kind, state=state, before=before, limit=limit)
        )

    async def kinds(self) -> list[KindCount]:
        """Return every kind that somebody does here, or that has tasks."""
        counted = {each.kind: each for each in await self._db.read(tasks.counts)}
        return [
            counted.get(kind, KindCount(kind=kind, states={}))
            for kind in sorted({*counted, *self._worker.kinds})
        ]

    async def change(self, principal: str, task_id: str, verb: Verb) -> Task:
        """One task. Cancelling one that runs stops it here at once, and elsewhere with its next
        heartbeat.
        """
        changed = await self._db.write(_moving(principal, task_id, verb))
        if verb == "cancel":
            self._worker.let_go(task_id)
        return changed

    async def pause_kind(self, principal: str, kind: str, *, paused: bool) -> KindCount:
        """All tasks of a kind, also those that come later."""

        def step(tx: Tx) -> None:
            if kind not in self._worker.kinds and all(
                each.kind != kind for each in tasks.counts(tx)
            ):
                known = ", ".join(sorted(self._worker.kinds))
                raise NotFound(
                    f"there is no kind of task {kind}: there are {known or 'none'}", kind=kind
                )
            tasks.pause_kind(tx, kind, paused=paused)
            _record(tx, principal, "paused" if paused else "resumed", kind, kind)

        await self._db.write(step)
        return next(each for each in await self.kinds() if each.kind == kind)


def _moving(principal: str, task_id: str, verb: Verb) -> Callable[[Tx], Task]:
    before, after, otherwise = _MOVES[verb]

    def step(tx: Tx) -> Task:
        task = tasks.get(tx, task_id)
        if task.state not in before:
            raise Conflict(f"task {task_id} is {task.state}: {otherwise}", state=task.state)
        _record(tx, principal, _PAST[verb], task_id, task.kind)
        return tasks.move(tx, task, after)

    return step


def _record(tx: Tx, principal: str, action: str, subject: str, kind: str) -> None:
    changed = AdminChanged(what="task", action=action, subject=subject, details={"kind": kind})
    tape.append(tx, SYSTEM_TAPE, principal, [changed])
