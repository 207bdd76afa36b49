"""Written by scripts/clients.py from the route table: the daemon's verbs.

A verb decodes its answer into the daemon's own type when it is called: importing this costs
nothing.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from palyra.client.calling import Calling, new_id, part, sent

if TYPE_CHECKING:
    from palyra.agent.gateway import Stopped, Submitted
    from palyra.agent.message_inputs import Attaching
    from palyra.agent.session_rules import ShownRule
    from palyra.api.about import Status, ToolList
    from palyra.api.journal import Verified
    from palyra.api.policy_tools import RuleList
    from palyra.api.runs import ApprovalPage, GrantList
    from palyra.api.sessions import EntryPage, RunPage, SessionPage
    from palyra.core.tools import Subject
    from palyra.features.budgets.http import UsageList
    from palyra.features.memory.http import ItemPage
    from palyra.features.memory.model import Item
    from palyra.features.memory.service import Searched
    from palyra.features.memory.transcripts import SaidPage
    from palyra.features.openai_api.models import ModelList
    from palyra.features.schedules.http import ScheduleList
    from palyra.features.time_travel.undo import Undone
    from palyra.store.approvals import Approval
    from palyra.store.runs import RunRow
    from palyra.store.sessions import Session


class Verbs(Calling):
    def resolve_session(
        self,
        *,
        session_id: str = "",
        key: str = "",
        label: str = "",
        title: str = "",
        workspace: str = "",
        device: str = "",
        channel: str = "",
        must_exist: bool = False,
    ) -> Session:
        """Find a session, or make one."""
        return self.call(
            "POST",
            "/v1/sessions",
            sent(
                {
                    "session_id": session_id,
                    "key": key,
                    "label": label,
                    "title": title,
                    "workspace": workspace,
                    "device": device,
                    "channel": channel,
                    "must_exist": must_exist,
                },
                {
                    "session_id": "",
                    "key": "",
                    "label": "",
                    "title": "",
                    "workspace": "",
                    "device": "",
                    "channel": "",
                    "must_exist": False,
                },
            ),
            "palyra.store.sessions:Session",
        )

    def list_sessions(
        self, *, archived: bool = False, before: str = "", limit: int = 50
    ) -> SessionPage:
        """Sessions, last used first."""
        return self.call(
            "GET",
            "/v1/sessions",
            sent(
                {"archived": archived, "before": before, "limit": limit},
                {"archived": False, "before": "", "limit": 50},
            ),
            "palyra.api.sessions:SessionPage",
        )

    def search_sessions(self, *, q: str, semantic: bool = True, limit: int = 20) -> SaidPage:
        """What was said in sessions, by words and meaning."""
        return self.call(
            "GET",
            "/v1/sessions/search",
            sent({"q": q, "semantic": semantic, "limit": limit}, {"semantic": True, "limit": 20}),
            "palyra.features.memory.transcripts:SaidPage",
        )

    def get_session(self, session_id: str) -> Session:
        """One session."""
        return self.call(
            "GET", f"/v1/sessions/{part(session_id)}", None, "palyra.store.sessions:Session"
        )

    def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        kept: bool | None = None,
    ) -> Session:
        """Rename, archive, unarchive."""
        return self.call(
            "PATCH",
            f"/v1/sessions/{part(session_id)}",
            sent(
                {"title": title, "archived": archived, "kept": kept},
                {"title": None, "archived": None, "kept": None},
            ),
            "palyra.store.sessions:Session",
        )

    def reset_session(self, session_id: str) -> Session:
        """Begin the conversation anew; the tape stays."""
        return self.call(
            "POST", f"/v1/sessions/{part(session_id)}/reset", {}, "palyra.store.sessions:Session"
        )

    def branch_session(self, session_id: str, *, at: int | None = None, title: str = "") -> Session:
        """A new session that continues from an entry of this one."""
        return self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/branch",
            sent({"at": at, "title": title}, {"at": None, "title": ""}),
            "palyra.store.sessions:Session",
        )

    def list_entries(self, session_id: str, *, after: int = 0, limit: int = 200) -> EntryPage:
        """Entries of the tape behind a cursor."""
        return self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/entries",
            sent({"after": after, "limit": limit}, {"after": 0, "limit": 200}),
            "palyra.api.sessions:EntryPage",
        )

    def list_runs(self, session_id: str, *, before: str = "", limit: int = 50) -> RunPage:
        """Runs of a session, newest first."""
        return self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/runs",
            sent({"before": before, "limit": limit}, {"before": "", "limit": 50}),
            "palyra.api.sessions:RunPage",
        )

    def submit(
        self,
        session_id: str,
        *,
        text: str,
        run_id: str = "",
        mode: Literal["collect", "followup", "interrupt", "steer"] = "followup",
        model: str = "",
        attended: bool = True,
        attachments: Sequence[Attaching] = (),
    ) -> Submitted:
        """Submit an input; a run answers it."""
        return self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/messages",
            sent(
                {
                    "text": text,
                    "run_id": run_id or new_id(),
                    "mode": mode,
                    "model": model,
                    "attended": attended,
                    "attachments": attachments,
                },
                {
                    "run_id": "",
                    "mode": "followup",
                    "model": "",
                    "attended": True,
                    "attachments": (),
                },
            ),
            "palyra.agent.gateway:Submitted",
        )

    def undo(
        self,
        session_id: str,
        *,
        call_id: str = "",
        run_id: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> Undone:
        """Take effects back."""
        return self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/undo",
            sent(
                {"call_id": call_id, "run_id": run_id, "dry_run": dry_run, "force": force},
                {"call_id": "", "run_id": "", "dry_run": False, "force": False},
            ),
            "palyra.features.time_travel.undo:Undone",
        )

    def add_rule(self, session_id: str, *, words: str) -> ShownRule:
        """Lay a rule down, in plain words."""
        return self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/rules",
            sent({"words": words}, {}),
            "palyra.agent.session_rules:ShownRule",
        )

    def list_rules(self, session_id: str) -> RuleList:
        """The rules of a session."""
        return self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/rules",
            None,
            "palyra.api.policy_tools:RuleList",
        )

    def get_run(self, run_id: str) -> RunRow:
        """One run."""
        return self.call("GET", f"/v1/runs/{part(run_id)}", None, "palyra.store.runs:RunRow")

    def cancel(self, run_id: str, *, reason: str = "") -> RunRow:
        """End a run, in whatever state it is."""
        return self.call(
            "POST",
            f"/v1/runs/{part(run_id)}/cancel",
            sent({"reason": reason}, {"reason": ""}),
            "palyra.store.runs:RunRow",
        )

    def stop(self) -> Stopped:
        """STOP: end everything that runs or waits."""
        return self.call("POST", "/v1/stop", {}, "palyra.agent.gateway:Stopped")

    def list_approvals(
        self,
        *,
        pending: Literal["any", "false", "true"] = "true",
        before: str = "",
        limit: int = 100,
    ) -> ApprovalPage:
        """What waits for an answer, and what was answered."""
        return self.call(
            "GET",
            "/v1/approvals",
            sent(
                {"pending": pending, "before": before, "limit": limit},
                {"pending": "true", "before": "", "limit": 100},
            ),
            "palyra.api.runs:ApprovalPage",
        )

    def get_approval(self, approval_id: str) -> Approval:
        """One approval."""
        return self.call(
            "GET", f"/v1/approvals/{part(approval_id)}", None, "palyra.store.approvals:Approval"
        )

    def answer(
        self,
        approval_id: str,
        *,
        decision: Literal["again", "allow", "deny", "expired", "happened", "skip", "withdrawn"],
        scope: Literal["always", "once", "session", "timed"] = "once",
        subject: Subject | None = None,
        for_ms: int = 0,
        arguments: dict[str, Any] | None = None,
        reason: str = "",
        seen: str = "",
    ) -> Approval:
        """Answer; the first answer wins."""
        return self.call(
            "POST",
            f"/v1/approvals/{part(approval_id)}/answer",
            sent(
                {
                    "decision": decision,
                    "scope": scope,
                    "subject": subject,
                    "for_ms": for_ms,
                    "arguments": arguments,
                    "reason": reason,
                    "seen": seen,
                },
                {
                    "scope": "once",
                    "subject": None,
                    "for_ms": 0,
                    "arguments": None,
                    "reason": "",
                    "seen": "",
                },
            ),
            "palyra.store.approvals:Approval",
        )

    def list_grants(self) -> GrantList:
        """What was allowed more widely than once."""
        return self.call("GET", "/v1/grants", None, "palyra.api.runs:GrantList")

    def remove_grant(self, approval_id: str) -> None:
        """Take such a permission back."""
        self.call("DELETE", f"/v1/grants/{part(approval_id)}", None, "")

    def list_memory(
        self,
        *,
        state: Literal["active", "all", "forgotten", "rejected", "review", "superseded"] = "active",
        before: str = "",
        limit: int = 100,
    ) -> ItemPage:
        """What is remembered, newest first."""
        return self.call(
            "GET",
            "/v1/memory",
            sent(
                {"state": state, "before": before, "limit": limit},
                {"state": "active", "before": "", "limit": 100},
            ),
            "palyra.features.memory.http:ItemPage",
        )

    def add_memory(
        self,
        *,
        text: str,
        kind: Literal["constraint", "decision", "fact", "preference", "procedure"] = "fact",
        scope: Literal["channel", "principal", "session", "workspace"] = "principal",
        source: str = "",
        place: int = 0,
        confidence_bps: int = 10000,
        valid_from_ms: int = 0,
        valid_until_ms: int = 0,
        ttl_ms: int = 0,
        pinned: bool = False,
        session_id: str = "",
    ) -> Item:
        """Remember something."""
        return self.call(
            "POST",
            "/v1/memory",
            sent(
                {
                    "text": text,
                    "kind": kind,
                    "scope": scope,
                    "source": source,
                    "place": place,
                    "confidence_bps": confidence_bps,
                    "valid_from_ms": valid_from_ms,
                    "valid_until_ms": valid_until_ms,
                    "ttl_ms": ttl_ms,
                    "pinned": pinned,
                    "session_id": session_id,
                },
                {
                    "kind": "fact",
                    "scope": "principal",
                    "source": "",
                    "place": 0,
                    "confidence_bps": 10000,
                    "valid_from_ms": 0,
                    "valid_until_ms": 0,
                    "ttl_ms": 0,
                    "pinned": False,
                    "session_id": "",
                },
            ),
            "palyra.features.memory.model:Item",
        )

    def search_memory(self, *, text: str, session_id: str = "", limit: int = 10) -> Searched:
        """Search by words and meaning, with explained scores."""
        return self.call(
            "GET",
            "/v1/memory/search",
            sent(
                {"text": text, "session_id": session_id, "limit": limit},
                {"session_id": "", "limit": 10},
            ),
            "palyra.features.memory.service:Searched",
        )

    def list_schedules(self) -> ScheduleList:
        """Schedules, with their next times and what they may cost."""
        return self.call(
            "GET", "/v1/schedules", None, "palyra.features.schedules.http:ScheduleList"
        )

    def usage(
        self,
        *,
        by: Literal[
            "call",
            "day",
            "hour",
            "model",
            "month",
            "origin",
            "principal",
            "run",
            "schedule",
            "session",
            "task",
        ] = "day",
        since_ms: int = 0,
        until_ms: int = 9007199254740991,
        session_id: str = "",
        run_id: str = "",
        schedule_id: str = "",
        everybody: bool = False,
        limit: int = 100,
    ) -> UsageList:
        """What models were asked, and what it cost."""
        return self.call(
            "GET",
            "/v1/usage",
            sent(
                {
                    "by": by,
                    "since_ms": since_ms,
                    "until_ms": until_ms,
                    "session_id": session_id,
                    "run_id": run_id,
                    "schedule_id": schedule_id,
                    "everybody": everybody,
                    "limit": limit,
                },
                {
                    "by": "day",
                    "since_ms": 0,
                    "until_ms": 9007199254740991,
                    "session_id": "",
                    "run_id": "",
                    "schedule_id": "",
                    "everybody": False,
                    "limit": 100,
                },
            ),
            "palyra.features.budgets.http:UsageList",
        )

    def list_models(self) -> ModelList:
        """Models that can be asked for."""
        return self.call("GET", "/v1/models", None, "palyra.features.openai_api.models:ModelList")

    def list_tools(self) -> ToolList:
        """Tools the agent has."""
        return self.call("GET", "/v1/tools", None, "palyra.api.about:ToolList")

    def status(self) -> Status:
        """What the daemon is and does."""
        return self.call("GET", "/v1/status", None, "palyra.api.about:Status")

    def verify_journal(self) -> Verified:
        """Check every entry; names the first bad one."""
        return self.call("GET", "/v1/journal/verify", None, "palyra.api.journal:Verified")
