"""Workers on other machines in the exposition."""

from collections.abc import Iterable

from palyra.api.metrics import single
from palyra.features.workers.service import Workers
from palyra.store.database import Tx


class WorkerMetrics:
    def __init__(self, machines: Workers) -> None:
        self._machines = machines

    def lines(self, tx: Tx) -> Iterable[str]:
        machines = self._machines
        yield from single(
            "palyra_workers_connected", "gauge", "workers that are connected", machines.connected
        )
        yield from single("palyra_workers_calls", "gauge", "calls that workers hold", machines.held)
        yield from single(
            "palyra_workers_lost_calls_total",
            "counter",
            "calls whose worker was lost",
            machines.presence.lost,
        )
        yield from single(
            "palyra_workers_refused_total",
            "counter",
            "workers and words turned away",
            machines.refusals.total,
        )
