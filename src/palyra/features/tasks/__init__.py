"""Background tasks: a durable queue, and who works on it."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.approvals import ApprovalService
    from palyra.agent.idle_gate import IdleGate
    from palyra.agent.provider_wait import ProviderWaits
    from palyra.features.tasks.metrics import TaskMetrics
    from palyra.features.tasks.service import TaskVerbs
    from palyra.features.tasks.worker import Tasks
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    tasks = w.add(Tasks(w.get(Database), w.get(Redactor), w.get(Clock), w.get(IdleGate)))
    w.add(TaskVerbs(w.get(Database), tasks))
    w.metrics.append(TaskMetrics(tasks))
    w.with_loop(lambda: tasks.on_jump.connect(w.get(ApprovalService).clock_was_set))
    w.with_loop(lambda: tasks.on_jump.connect(w.get(ProviderWaits).clock_was_set))

    async def start() -> None:
        tasks.start()

    w.after_runs(start)
    w.on_close(tasks.close)
