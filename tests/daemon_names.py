"""A daemon's services by short names, for tests that use many of them."""

from importlib import import_module
from typing import Any

from palyra.serve.wiring.daemon import Daemon

_PLACES = {
    "answers": "agent.approvals:ApprovalService",
    "budgets": "features.budgets.service:BudgetService",
    "callers": "features.openai_api.sessions:Callers",
    "catalogue": "tools.catalogue:Catalogue",
    "certificates": "features.tls.service:Certificates",
    "children": "features.subagents.service:Children",
    "clock": "system.clock:Clock",
    "compacting": "features.compaction.service:Compacting",
    "db": "store.database:Database",
    "doctor": "features.health.doctor:Doctor",
    "enclosures": "features.references.message_inputs:Enclosures",
    "feeder": "features.learning.reflection:Feeder",
    "files": "features.schedules.watched_files:WatchedFiles",
    "forecasts": "features.budgets.forecasts:Forecasts",
    "forking": "features.time_travel.fork:Forking",
    "gateway": "agent.gateway:Gateway",
    "hooks": "features.schedules.webhooks:Hooks",
    "http": "models.http:HttpClient",
    "hub": "agent.broadcast:Broadcast",
    "incidents": "features.health.incidents:Incidents",
    "jobs": "tools.shell.jobs:Jobs",
    "late_channels": "features.channels.lazy:LateChannels",
    "learning": "features.learning.service:Learning",
    "mcp": "features.mcp.service:Mcp",
    "memory": "features.memory.service:Memory",
    "models": "models.routing:Models",
    "moments": "features.time_travel.session_snapshot:Moments",
    "notices": "features.notices.service:Notices",
    "policy": "policy.store:PolicyStore",
    "project_notes": "features.project_notes.service:ProjectNotes",
    "redactor": "system.redactor:Redactor",
    "replays": "features.time_travel.replay.service:Replays",
    "restoring": "features.time_travel.file_restore:Restoring",
    "retention": "features.retention.service:Retention",
    "rewinding": "features.time_travel.rewind:Rewinding",
    "rules": "agent.session_rules:SessionRules",
    "runs": "agent.runs:Runs",
    "schedules": "features.schedules.service:Schedules",
    "scheduler": "features.schedules.scheduler:Scheduler",
    "sessions": "agent.sessions:Sessions",
    "settings": "agent.settings:Settings",
    "setup": "features.setup.model:Setup",
    "shelf": "features.skills.registry:SkillRegistry",
    "task_verbs": "features.tasks.service:TaskVerbs",
    "tasks": "features.tasks.worker:Tasks",
    "transcripts": "features.memory.recall:Transcripts",
    "undoing": "features.time_travel.undo:Undoing",
    "vault": "features.vault.service:Vault",
    "watchdog": "features.health.watchdog:Watchdog",
    "why": "features.why.service:CauseFinder",
    "workers": "features.workers.service:Workers",
}


class Inside:
    """`inside.memory` is the daemon's Memory, and so on; everything else is the daemon's own."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def __getattr__(self, name: str) -> Any:
        if name == "channels":
            return self.late_channels.now
        if name == "policy_folder":
            return self.policy.folder
        if name == "timekeeping":
            return self
        if name == "browsers":
            from palyra.tools.browser.port import BrowserPool

            pool = self.daemon.find(BrowserPool)
            return pool.browsers if pool else None
        place = _PLACES.get(name)
        if place is None:
            return getattr(self.daemon, name)
        module, _, kind = place.partition(":")
        return self.daemon.get(getattr(import_module(f"palyra.{module}"), kind))
