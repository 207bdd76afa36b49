"""Schedules: what the agent does at its time, without anybody asking."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.approvals import ApprovalService
    from palyra.agent.gateway import Gateway
    from palyra.agent.runs import Runs
    from palyra.agent.sessions import Sessions
    from palyra.features.notices.service import Notices
    from palyra.features.references.attachments import Attachments
    from palyra.features.schedules import tools
    from palyra.features.schedules.scheduler import Scheduler
    from palyra.features.schedules.service import Schedules, local_zone
    from palyra.features.schedules.tools import SchedulePlanner
    from palyra.features.schedules.watched_files import WatchedFiles
    from palyra.features.schedules.webhooks import Hooks
    from palyra.features.tasks.worker import Tasks
    from palyra.features.vault.service import Vault
    from palyra.models.routing import Models
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    db, clock, vault, catalogue = w.get(Database), w.get(Clock), w.get(Vault), w.get(Catalogue)
    schedules = Schedules(
        db,
        catalogue,
        w.get(Models).find,
        vault,
        w.get(Redactor),
        clock,
        zone=local_zone(),
        forbidden=w.forbidden,
    )
    w.add(schedules)
    catalogue.renew("schedules", tools.tools(SchedulePlanner(db, schedules)))
    files = w.add(WatchedFiles(db))
    schedules.on_change.connect(files.renew)

    def with_loop() -> None:
        gateway, runs = w.get(Gateway), w.get(Runs)
        scheduler = Scheduler(
            db, w.get(Tasks), gateway, w.get(Sessions), w.get(ApprovalService), w.get(Notices)
        )
        w.add(scheduler)
        runs.on_end.connect(scheduler.run_ended)
        gateway.on_commit.connect(scheduler.on_commit)
        w.add(Hooks(db, scheduler, w.get(Attachments), vault, clock))
        w.after_runs(scheduler.start)
        w.after_runs(files.start)

    w.with_loop(with_loop)
    w.on_close(files.close)
