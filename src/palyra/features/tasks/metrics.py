"""Background tasks in the exposition."""

from collections.abc import Iterable

from palyra.api.metrics import family, labels_of, single
from palyra.features.tasks.worker import Tasks
from palyra.store import tasks
from palyra.store.database import Tx


class TaskMetrics:
    def __init__(self, worker: Tasks) -> None:
        self._worker = worker

    def lines(self, tx: Tx) -> Iterable[str]:
        waiting, counts = tasks.unfinished(tx), self._worker.counts
        yield from family(
            "palyra_tasks", "gauge", "background tasks that have not ended, by kind and state"
        )
        for kind, state, count in waiting:
            yield f"palyra_tasks{labels_of(kind=kind, state=state)} {count}"
        yield from family(
            "palyra_tasks_attempts_total",
            "counter",
            "attempts at background tasks, by kind and how they ended",
        )
        for (kind, outcome), count in sorted(counts.ended.items()):
            yield f"palyra_tasks_attempts_total{labels_of(kind=kind, outcome=outcome)} {count}"
        yield from single(
            "palyra_tasks_wakes_total", "counter", "times the queue's worker woke up", counts.wakes
        )
