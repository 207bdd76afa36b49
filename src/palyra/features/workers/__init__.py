"""Workers: other machines that run tools for this daemon."""

from functools import partial

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.broadcast import Broadcast
    from palyra.agent.gateway import Gateway
    from palyra.features.tls.service import Certificates
    from palyra.features.workers.metrics import WorkerMetrics
    from palyra.features.workers.service import Workers, WorkerSettings
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.tools.catalogue import Catalogue

    workers = Workers(
        w.get(Database),
        w.get(Clock),
        w.get(Certificates),
        w.get(Catalogue),
        w.guard,
        lease_ms=w.settings.get(WorkerSettings).lease_ms,
    )
    w.add(workers)
    w.metrics.append(WorkerMetrics(workers))
    workers.presence.on_change.connect(partial(w.get(Broadcast).changed, ("workers",)))

    async def close() -> None:
        workers.close()

    w.with_loop(lambda: w.get(Gateway).on_commit.connect(workers.crew.on_commit))
    w.before_runs(workers.start)
    w.on_halt(workers.halt)
    w.on_close(close, after_runs=True)
