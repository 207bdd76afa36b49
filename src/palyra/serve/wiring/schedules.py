"""What happens later and by itself: the schedules, who fires them, and what fires them besides the
clock.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from palyra.agent.approvals import ApprovalService
from palyra.agent.gateway import Gateway
from palyra.agent.runs import Runs
from palyra.agent.sessions import Sessions
from palyra.features.notices.service import Notices
from palyra.features.references.attachments import Attachments
from palyra.features.schedules import tools as schedule_tools
from palyra.features.schedules.scheduler import Scheduler
from palyra.features.schedules.service import Schedules
from palyra.features.schedules.tool_port import SchedulePlanner
from palyra.features.schedules.watched_files import WatchedFiles
from palyra.features.schedules.webhooks import Hooks
from palyra.features.tasks.worker import Tasks
from palyra.models.routing import Models
from palyra.serve.wiring.foundation import Foundation
from palyra.tools.catalogue import Catalogue

_LOCALTIME = Path("/etc/localtime")


@dataclass(frozen=True)
class Timekeeping:
    schedules: Schedules
    scheduler: Scheduler
    hooks: Hooks
    files: WatchedFiles

    async def start(self) -> None:
        await self.scheduler.start()
        await self.files.start()


def timekeeping(
    ground: Foundation,
    tasks: Tasks,
    gateway: Gateway,
    sessions: Sessions,
    answers: ApprovalService,
    notices: Notices,
    attachments: Attachments,
    runs: Runs,
    catalogue: Catalogue,
    models: Models,
) -> Timekeeping:
    db, clock = ground.db, ground.clock
    schedules = Schedules(
        db,
        catalogue,
        models.find,
        ground.vault,
        ground.redactor,
        clock,
        zone=local_zone(),
        forbidden=ground.forbidden,
    )
    catalogue.renew("schedules", schedule_tools.tools(SchedulePlanner(db, schedules)))
    scheduler = Scheduler(db, tasks, gateway, sessions, answers, notices)
    runs.on_end.append(scheduler.run_ended)
    gateway.listeners.append(scheduler.on_commit)
    files = WatchedFiles(db)
    schedules.on_change.append(files.renew)
    return Timekeeping(
        schedules, scheduler, Hooks(db, scheduler, attachments, ground.vault, clock), files
    )


def to_look_at(ground: Foundation, catalogue: Catalogue) -> None:
    """The tools as they describe themselves, with nobody behind them."""
    schedules = Schedules(
        ground.db,
        catalogue,
        lambda name: None,
        ground.vault,
        ground.redactor,
        ground.clock,
        zone="UTC",
        forbidden=(),
    )
    catalogue.renew("schedules", schedule_tools.tools(SchedulePlanner(ground.db, schedules)))


def local_zone() -> str:
    """The machine's time zone by its name, as far as it can be told."""
    try:
        _, found, name = os.readlink(_LOCALTIME).partition("zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"
