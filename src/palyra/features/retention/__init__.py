"""Retention: old sessions are put away into segments, unused files removed."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.ports import JournalCheckpoints
    from palyra.features.retention.service import Retention, RetentionSettings
    from palyra.features.tasks.worker import Tasks
    from palyra.store.database import Database
    from palyra.store.upkeep import Upkeep
    from palyra.system.clock import Clock

    settings = w.settings.get(RetentionSettings)
    checkpoints = w.find(JournalCheckpoints)
    retention = w.add(
        Retention(w.get(Database), w.get(Clock), w.get(Upkeep), settings, checkpoints)
    )
    retention.register(w.get(Tasks))
    w.after_runs(retention.start)
