"""Time travel: undo, rewind, a session as it was, replay and fork."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.checkpoints import Checkpoints
    from palyra.agent.runs import Runs
    from palyra.agent.settings import Settings
    from palyra.features.time_travel.file_restore import Restoring
    from palyra.features.time_travel.fork import Forking
    from palyra.features.time_travel.replay.service import Replays
    from palyra.features.time_travel.rewind import Rewinding
    from palyra.features.time_travel.session_snapshot import Moments
    from palyra.features.time_travel.undo import NoWorkers, Undoing
    from palyra.features.workers.service import Workers
    from palyra.models.routing import Models
    from palyra.policy.store import OtherPolicies
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    db, redactor, checkpoints = w.get(Database), w.get(Redactor), w.get(Checkpoints)
    replays = w.add(Replays(db, w.get(Catalogue)))
    w.add(Moments(db))
    w.add(Forking(db, w.get(Models), w.get(Clock), w.get(Settings), w.get(OtherPolicies)))

    def with_loop() -> None:
        runs, machines = w.get(Runs), w.find(Workers)
        restoring = w.add(Restoring(db, runs, checkpoints, w.get(Clock)))
        elsewhere = machines.crew if machines is not None else NoWorkers()
        w.add(Undoing(db, checkpoints, restoring, redactor, elsewhere))
        w.add(Rewinding(db, runs, checkpoints, restoring, redactor))
        w.before_runs(restoring.recover)
        w.on_close(replays.close)
        w.on_close(restoring.close)

    w.with_loop(with_loop)
