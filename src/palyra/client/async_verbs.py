"""Written by scripts/clients.py from the route table: the daemon's verbs, to be awaited.

A verb decodes its answer into a type of palyra.client.types when it is called: importing this costs
nothing.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from palyra.client.calling import AsyncCalling, new_id, part, sent

if TYPE_CHECKING:
    from palyra.client.http import ServerSentEvent
    from palyra.client.types.admin import (
        ConfigReloaded,
        FoundProvider,
        FoundProviders,
        LoginLink,
        MadeToken,
        Nothing,
        ProviderList,
        Token,
        TokenList,
        Trial,
    )
    from palyra.client.types.approvals import (
        AnsweredGroup,
        Approval,
        ApprovalGroup,
        ApprovalPage,
        ApprovalPreview,
        GrantList,
        PastCalls,
        Subject,
    )
    from palyra.client.types.backups import CheckedBackup, HomeBackupList, MadeBackup
    from palyra.client.types.channels import (
        ChannelList,
        ChannelsKindList,
        ChannelStatus,
        DeadLetters,
        Invitation,
        MessagePage,
        PairingList,
        People,
        Person,
        Settled,
        ShapesPreview,
        Tested,
        Trace,
    )
    from palyra.client.types.conversations import ApiConversation, DeletedConversation
    from palyra.client.types.health import (
        Diagnosis,
        Incident,
        IncidentList,
        MarkedRead,
        NoticeList,
        Repaired,
        Watching,
    )
    from palyra.client.types.journal import (
        Archived,
        BackedUp,
        BackupList,
        CheckpointState,
        CleanedUp,
        ConsistencyProof,
        InclusionProof,
        ProofBundle,
        RotatedKey,
        SegmentList,
        StoredCheckpoint,
        Verified,
        WhyAnswer,
    )
    from palyra.client.types.learning import CandidateList, LearningSettings, ShownCandidate
    from palyra.client.types.load import Load
    from palyra.client.types.mcp import RpcAnswer, SavedMcpServer, ServerList, ServerStatus, ToolUse
    from palyra.client.types.memory import (
        Imported,
        Item,
        ItemPage,
        MemoryStatus,
        NewMemory,
        Purged,
        Searched,
    )
    from palyra.client.types.nodes import NodeInfo, NodeList
    from palyra.client.types.notes import Note, NoteList
    from palyra.client.types.openai import (
        ChatCompletion,
        ChatMessage,
        ChatTool,
        Deleted,
        EmbeddingList,
        ItemList,
        ModelList,
        OpenAIModel,
        Reasoning,
        Response,
        ResponseItem,
        ResponseTool,
        StreamOptions,
    )
    from palyra.client.types.policy import (
        ExplainedCall,
        Explanation,
        PolicyFiles,
        PolicyInForce,
        Reloaded,
        Report,
        Saved,
        Shadowed,
        Suggestion,
        Validated,
        WhoCan,
    )
    from palyra.client.types.runs import (
        Candidate,
        Forked,
        Reflected,
        RunPlans,
        RunReplay,
        Stopped,
        TokenBill,
    )
    from palyra.client.types.schedules import (
        Called,
        Firing,
        Quiet,
        Schedule,
        ScheduleList,
        ShownSchedule,
    )
    from palyra.client.types.security import LabelledFiles, SecurityScore
    from palyra.client.types.sessions import (
        Agents,
        Attaching,
        CallOptions,
        Compaction,
        CompactionPage,
        DeletedSession,
        Entry,
        EntryPage,
        Moment,
        PathList,
        Pinned,
        ReferencesPreview,
        Rewound,
        RuleList,
        RunPage,
        RunRow,
        SaidPage,
        Session,
        SessionPage,
        ShownRule,
        StoredFile,
        Submitted,
        Uncompacted,
        Undone,
    )
    from palyra.client.types.skills import Proposal, Publisher, PublisherList, ShownSkill, SkillList
    from palyra.client.types.status import Health, PolicyState, Ready, Status, ToolList
    from palyra.client.types.tasks import KindCount, KindList, Task, TaskPage
    from palyra.client.types.tls import Certificate, Listening, Shown
    from palyra.client.types.usage import BudgetList, Forecast, Limit, RunForecast, UsageList
    from palyra.client.types.vault import KeyRotated, Secret, VaultState
    from palyra.client.types.workers import Enrolment, WorkerDetail, WorkerList, WorkerShown


class AsyncVerbs(AsyncCalling):
    async def console_page(self) -> bytes:
        """The console, or a page that says how to build it."""
        return await self.fetch("GET", "/", None)

    async def console_asset(self, asset: str) -> bytes:
        """A file of the console."""
        return await self.fetch("GET", f"/assets/{part(asset)}", None)

    async def console_diagram(self) -> bytes:
        """The frame without rights in which the console draws diagrams."""
        return await self.fetch("GET", "/diagram.html", None)

    async def console_manifest(self) -> bytes:
        """The console as an app to install."""
        return await self.fetch("GET", "/manifest.webmanifest", None)

    async def console_worker(self) -> bytes:
        """Keeps the console's own files for when the daemon is away."""
        return await self.fetch("GET", "/worker.js", None)

    async def console_verifier(self) -> bytes:
        """A page that checks proof bundles in the browser, for anybody."""
        return await self.fetch("GET", "/verify", None)

    async def health(self) -> Health:
        """Whether the process is alive."""
        return await self.call("GET", "/healthz", None, "status:Health")

    async def ready(self) -> Ready:
        """Whether the daemon can do its work."""
        return await self.call("GET", "/readyz", None, "status:Ready")

    async def login(self, *, code: str) -> None:
        """Open a browser session with a one-time code."""
        await self.call("GET", "/login", {"code": code}, "")

    async def resolve_session(
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
        return await self.call(
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
            "sessions:Session",
        )

    async def list_sessions(
        self, *, archived: bool = False, before: str = "", limit: int = 50
    ) -> SessionPage:
        """Sessions, last used first."""
        return await self.call(
            "GET",
            "/v1/sessions",
            sent(
                {"archived": archived, "before": before, "limit": limit},
                {"archived": False, "before": "", "limit": 50},
            ),
            "sessions:SessionPage",
        )

    async def get_session(self, session_id: str) -> Session:
        """One session."""
        return await self.call("GET", f"/v1/sessions/{part(session_id)}", None, "sessions:Session")

    async def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        kept: bool | None = None,
        model: str | None = None,
    ) -> Session:
        """Rename, archive, unarchive."""
        return await self.call(
            "PATCH",
            f"/v1/sessions/{part(session_id)}",
            sent(
                {"title": title, "archived": archived, "kept": kept, "model": model},
                {"title": None, "archived": None, "kept": None, "model": None},
            ),
            "sessions:Session",
        )

    async def reset_session(self, session_id: str) -> Session:
        """Start the conversation over; the tape stays."""
        return await self.call(
            "POST", f"/v1/sessions/{part(session_id)}/reset", {}, "sessions:Session"
        )

    async def branch_session(
        self, session_id: str, *, at: int | None = None, title: str = ""
    ) -> Session:
        """A new session that continues from an entry of this one."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/branch",
            sent({"at": at, "title": title}, {"at": None, "title": ""}),
            "sessions:Session",
        )

    async def list_entries(self, session_id: str, *, after: int = 0, limit: int = 200) -> EntryPage:
        """Entries of the tape behind a cursor."""
        return await self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/entries",
            sent({"after": after, "limit": limit}, {"after": 0, "limit": 200}),
            "sessions:EntryPage",
        )

    def session_events(
        self, session_id: str, *, after: int = 0, until: str = ""
    ) -> AsyncIterator[ServerSentEvent]:
        """Watch: stored entries behind a cursor, then everything as it happens: the events as they come."""
        return self.events(
            "GET",
            f"/v1/sessions/{part(session_id)}/events",
            sent({"after": after, "until": until}, {"after": 0, "until": ""}),
        )

    async def submit(
        self,
        session_id: str,
        *,
        text: str,
        run_id: str = "",
        mode: Literal["collect", "followup", "interrupt", "steer"] = "followup",
        model: str = "",
        attended: bool = True,
        attachments: Sequence[Attaching] = (),
        options: CallOptions | None = None,
    ) -> Submitted:
        """Submit an input; a run answers it."""
        return await self.call(
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
                    "options": options,
                },
                {
                    "run_id": "",
                    "mode": "followup",
                    "model": "",
                    "attended": True,
                    "attachments": (),
                    "options": None,
                },
            ),
            "sessions:Submitted",
        )

    async def list_runs(self, session_id: str, *, before: str = "", limit: int = 50) -> RunPage:
        """Runs of a session, newest first."""
        return await self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/runs",
            sent({"before": before, "limit": limit}, {"before": "", "limit": 50}),
            "sessions:RunPage",
        )

    async def get_artifact(self, session_id: str, artifact_id: str, *, name: str = "") -> bytes:
        """A large result, as it was stored."""
        return await self.fetch(
            "GET",
            f"/v1/sessions/{part(session_id)}/artifacts/{part(artifact_id)}",
            sent({"name": name}, {"name": ""}),
        )

    def all_events(self, *, after: int = 0) -> AsyncIterator[ServerSentEvent]:
        """Watch all of the caller's sessions, and that something else has changed: the events as they come."""
        return self.events("GET", "/v1/events", sent({"after": after}, {"after": 0}))

    async def recent_runs(self, *, before: str = "", limit: int = 50) -> RunPage:
        """Runs of all sessions of the caller, newest first."""
        return await self.call(
            "GET",
            "/v1/runs",
            sent({"before": before, "limit": limit}, {"before": "", "limit": 50}),
            "sessions:RunPage",
        )

    async def get_run(self, run_id: str) -> RunRow:
        """One run."""
        return await self.call("GET", f"/v1/runs/{part(run_id)}", None, "sessions:RunRow")

    async def run_tokens(self, run_id: str) -> TokenBill:
        """What the prompts of a run were made of."""
        return await self.call("GET", f"/v1/runs/{part(run_id)}/tokens", None, "runs:TokenBill")

    async def cancel(self, run_id: str, *, reason: str = "") -> RunRow:
        """End a run, in whatever state it is."""
        return await self.call(
            "POST",
            f"/v1/runs/{part(run_id)}/cancel",
            sent({"reason": reason}, {"reason": ""}),
            "sessions:RunRow",
        )

    async def retry(self, run_id: str, *, model: str = "") -> RunRow:
        """Ask again now for a run that waits for its provider, with another model if named."""
        return await self.call(
            "POST",
            f"/v1/runs/{part(run_id)}/retry",
            sent({"model": model}, {"model": ""}),
            "sessions:RunRow",
        )

    async def stop(self) -> Stopped:
        """STOP: end everything that runs or waits."""
        return await self.call("POST", "/v1/stop", {}, "runs:Stopped")

    async def list_approvals(
        self,
        *,
        pending: Literal["any", "false", "true"] = "true",
        before: str = "",
        limit: int = 100,
    ) -> ApprovalPage:
        """Pending approvals, and answered ones."""
        return await self.call(
            "GET",
            "/v1/approvals",
            sent(
                {"pending": pending, "before": before, "limit": limit},
                {"pending": "true", "before": "", "limit": 100},
            ),
            "approvals:ApprovalPage",
        )

    async def get_approval(self, approval_id: str) -> Approval:
        """One approval."""
        return await self.call(
            "GET", f"/v1/approvals/{part(approval_id)}", None, "approvals:Approval"
        )

    async def preview_approval(
        self, approval_id: str, *, arguments: dict[str, Any] | None = None
    ) -> ApprovalPreview:
        """All of what a pending call would do, as proposed or with edited arguments."""
        return await self.call(
            "POST",
            f"/v1/approvals/{part(approval_id)}/preview",
            sent({"arguments": arguments}, {"arguments": None}),
            "approvals:ApprovalPreview",
        )

    async def answer(
        self,
        approval_id: str,
        *,
        decision: Literal["again", "allow", "deny", "expired", "happened", "skip", "withdrawn"],
        scope: Literal["always", "once", "session", "timed"] = "once",
        subject: Subject | None = None,
        for_ms: int = 0,
        rate: str = "",
        upto: str = "",
        arguments: dict[str, Any] | None = None,
        reason: str = "",
        seen: str = "",
    ) -> Approval:
        """Answer; the first answer wins."""
        return await self.call(
            "POST",
            f"/v1/approvals/{part(approval_id)}/answer",
            sent(
                {
                    "decision": decision,
                    "scope": scope,
                    "subject": subject,
                    "for_ms": for_ms,
                    "rate": rate,
                    "upto": upto,
                    "arguments": arguments,
                    "reason": reason,
                    "seen": seen,
                },
                {
                    "scope": "once",
                    "subject": None,
                    "for_ms": 0,
                    "rate": "",
                    "upto": "",
                    "arguments": None,
                    "reason": "",
                    "seen": "",
                },
            ),
            "approvals:Approval",
        )

    async def past_of_approval(
        self, approval_id: str, *, subject: int = 1, days: int = 30
    ) -> PastCalls:
        """What a wider approval would have let run in the recorded past."""
        return await self.call(
            "GET",
            f"/v1/approvals/{part(approval_id)}/past",
            sent({"subject": subject, "days": days}, {"subject": 1, "days": 30}),
            "approvals:PastCalls",
        )

    async def get_approval_group(self, approval_id: str) -> ApprovalGroup:
        """The pending lines of the question that an approval belongs to."""
        return await self.call(
            "GET", f"/v1/approvals/{part(approval_id)}/group", None, "approvals:ApprovalGroup"
        )

    async def answer_group(
        self,
        approval_id: str,
        *,
        decision: Literal["allow", "deny"],
        only: Sequence[str] = (),
        others: Literal["", "allow", "deny"] = "",
        scope: Literal["always", "once", "session", "timed"] = "once",
        for_ms: int = 0,
        reason: str = "",
        seen: dict[str, str] | None = None,
    ) -> AnsweredGroup:
        """Answer all lines of a question together, each allowed or denied."""
        return await self.call(
            "POST",
            f"/v1/approvals/{part(approval_id)}/group/answer",
            sent(
                {
                    "decision": decision,
                    "only": only,
                    "others": others,
                    "scope": scope,
                    "for_ms": for_ms,
                    "reason": reason,
                    "seen": seen,
                },
                {
                    "only": (),
                    "others": "",
                    "scope": "once",
                    "for_ms": 0,
                    "reason": "",
                    "seen": None,
                },
            ),
            "approvals:AnsweredGroup",
        )

    async def list_grants(self) -> GrantList:
        """What was allowed more widely than once."""
        return await self.call("GET", "/v1/grants", None, "approvals:GrantList")

    async def remove_grant(self, approval_id: str) -> None:
        """Take such a permission back."""
        await self.call("DELETE", f"/v1/grants/{part(approval_id)}", None, "")

    async def get_entry(self, position: int) -> Entry:
        """One entry by its place in the journal."""
        return await self.call(
            "GET", f"/v1/journal/entries/{part(position)}", None, "sessions:Entry"
        )

    async def verify_journal(self, *, deep: bool = False) -> Verified:
        """Check every entry; names the first bad one."""
        return await self.call(
            "GET", "/v1/journal/verify", sent({"deep": deep}, {"deep": False}), "journal:Verified"
        )

    def verify_journal_events(self, *, deep: bool = False) -> AsyncIterator[ServerSentEvent]:
        """Check every entry; names the first bad one: the events as they come."""
        return self.events("GET", "/v1/journal/verify", sent({"deep": deep}, {"deep": False}))

    def export_journal(self, *, session_id: str = "", after: int = 0) -> AsyncIterator[bytes]:
        """Entries, one a line."""
        return self.pieces(
            "GET",
            "/v1/journal/export",
            sent({"session_id": session_id, "after": after}, {"session_id": "", "after": 0}),
        )

    async def back_up_journal(self, *, name: str = "", folder: str = "") -> BackedUp:
        """A verified copy in the backups folder, or in another one."""
        return await self.call(
            "POST",
            "/v1/journal/backup",
            sent({"name": name, "folder": folder}, {"name": "", "folder": ""}),
            "journal:BackedUp",
        )

    async def list_backups(self) -> BackupList:
        """The copies in the backups folder, newest first."""
        return await self.call("GET", "/v1/journal/backups", None, "journal:BackupList")

    def download_backup(self, backup: str) -> AsyncIterator[bytes]:
        """One of them, as it is."""
        return self.pieces("GET", f"/v1/journal/backups/{part(backup)}", None)

    async def metrics(self) -> bytes:
        """Metrics as Prometheus text."""
        return await self.fetch("GET", "/metrics", None)

    async def status(self) -> Status:
        """What the daemon is and does."""
        return await self.call("GET", "/v1/status", None, "status:Status")

    async def list_tools(self) -> ToolList:
        """Tools the agent has."""
        return await self.call("GET", "/v1/tools", None, "status:ToolList")

    async def get_policy(self) -> PolicyInForce:
        """The policies in force."""
        return await self.call("GET", "/v1/policy", None, "policy:PolicyInForce")

    async def explain_policy(
        self,
        *,
        tool: str,
        arguments: dict[str, Any],
        session_id: str | None = None,
        origin: Literal["api", "channel", "child", "interactive", "scheduled"] = "interactive",
    ) -> Explanation:
        """How a call would be decided, and why."""
        return await self.call(
            "POST",
            "/v1/policy/explain",
            sent(
                {"tool": tool, "arguments": arguments, "session_id": session_id, "origin": origin},
                {"session_id": None, "origin": "interactive"},
            ),
            "policy:Explanation",
        )

    async def reload_policy(self) -> Reloaded:
        """Read the policy folder again."""
        return await self.call("POST", "/v1/policy/reload", {}, "policy:Reloaded")

    async def reload_config(self) -> ConfigReloaded:
        """Read the config file again and apply what can be applied."""
        return await self.call("POST", "/v1/config/reload", {}, "admin:ConfigReloaded")

    async def list_tokens(self) -> TokenList:
        """Tokens, also revoked ones."""
        return await self.call("GET", "/v1/tokens", None, "admin:TokenList")

    async def create_token(
        self,
        *,
        name: str,
        scope: Literal["client", "connector", "operator", "owner", "viewer", "worker"],
        expires_ms: int = 0,
        workspace: str = "",
    ) -> MadeToken:
        """Make a token."""
        return await self.call(
            "POST",
            "/v1/tokens",
            sent(
                {"name": name, "scope": scope, "expires_ms": expires_ms, "workspace": workspace},
                {"expires_ms": 0, "workspace": ""},
            ),
            "admin:MadeToken",
        )

    async def revoke_token(self, token_id: str) -> Token:
        """Revoke a token, at once."""
        return await self.call("DELETE", f"/v1/tokens/{part(token_id)}", None, "admin:Token")

    async def create_login_link(self) -> LoginLink:
        """A link that logs a browser in, once, within ten minutes."""
        return await self.call("POST", "/v1/login-links", {}, "admin:LoginLink")

    async def logout(self) -> None:
        """End the browser's session."""
        await self.call("POST", "/v1/logout", {}, "")

    async def test_policy(self, *, preset: str = "", folder: str = "", since_ms: int = 0) -> Report:
        """Decide every recorded call again under other policies."""
        return await self.call(
            "GET",
            "/v1/policy/test",
            sent(
                {"preset": preset, "folder": folder, "since_ms": since_ms},
                {"preset": "", "folder": "", "since_ms": 0},
            ),
            "policy:Report",
        )

    def test_policy_events(
        self, *, preset: str = "", folder: str = "", since_ms: int = 0
    ) -> AsyncIterator[ServerSentEvent]:
        """Decide every recorded call again under other policies: the events as they come."""
        return self.events(
            "GET",
            "/v1/policy/test",
            sent(
                {"preset": preset, "folder": folder, "since_ms": since_ms},
                {"preset": "", "folder": "", "since_ms": 0},
            ),
        )

    async def suggest_policy(self, *, since_ms: int = 0) -> Suggestion:
        """Permits that would have spared approvals."""
        return await self.call(
            "GET",
            "/v1/policy/suggest",
            sent({"since_ms": since_ms}, {"since_ms": 0}),
            "policy:Suggestion",
        )

    async def shadow_policy(self, *, since_ms: int = 0) -> Shadowed:
        """What the shadow policies would have decided otherwise."""
        return await self.call(
            "GET",
            "/v1/policy/shadow",
            sent({"since_ms": since_ms}, {"since_ms": 0}),
            "policy:Shadowed",
        )

    async def explain_call(self, *, call_id: str) -> ExplainedCall:
        """How a recorded call was decided, and how it would be now."""
        return await self.call(
            "GET", "/v1/policy/explain", {"call_id": call_id}, "policy:ExplainedCall"
        )

    async def list_policy_files(self) -> PolicyFiles:
        """The policy files, with their texts."""
        return await self.call("GET", "/v1/policy/files", None, "policy:PolicyFiles")

    async def save_policy_file(self, *, name: str, text: str, was: str = "") -> Saved:
        """Save a policy file, if everything loads with it."""
        return await self.call(
            "POST",
            "/v1/policy/files",
            sent({"name": name, "text": text, "was": was}, {"was": ""}),
            "policy:Saved",
        )

    async def remove_policy_file(self, *, name: str, was: str) -> Saved:
        """Remove a policy file, if everything loads without it."""
        return await self.call(
            "DELETE", "/v1/policy/files", {"name": name, "was": was}, "policy:Saved"
        )

    async def validate_policy(
        self,
        *,
        name: str,
        text: str,
        preset: Literal["coding", "default", "locked", "research"] | None = None,
    ) -> Validated:
        """Whether a text would load as a policy file; nothing is saved."""
        return await self.call(
            "POST",
            "/v1/policy/validate",
            sent({"name": name, "text": text, "preset": preset}, {"preset": None}),
            "policy:Validated",
        )

    async def test_policy_draft(
        self,
        *,
        name: str | None = None,
        text: str = "",
        preset: Literal["coding", "default", "locked", "research"] | None = None,
        since_ms: int = 0,
    ) -> Report:
        """Decide every recorded call again with a text that is not saved."""
        return await self.call(
            "POST",
            "/v1/policy/test",
            sent(
                {"name": name, "text": text, "preset": preset, "since_ms": since_ms},
                {"name": None, "text": "", "preset": None, "since_ms": 0},
            ),
            "policy:Report",
        )

    def test_policy_draft_events(
        self,
        *,
        name: str | None = None,
        text: str = "",
        preset: Literal["coding", "default", "locked", "research"] | None = None,
        since_ms: int = 0,
    ) -> AsyncIterator[ServerSentEvent]:
        """Decide every recorded call again with a text that is not saved: the events as they come."""
        return self.events(
            "POST",
            "/v1/policy/test",
            sent(
                {"name": name, "text": text, "preset": preset, "since_ms": since_ms},
                {"name": None, "text": "", "preset": None, "since_ms": 0},
            ),
        )

    async def who_can(
        self,
        *,
        principal: str = "user:owner",
        origin: Literal["api", "channel", "child", "interactive", "scheduled"] = "interactive",
    ) -> WhoCan:
        """Who can do what: every tool in a few plain situations."""
        return await self.call(
            "GET",
            "/v1/policy/who",
            sent(
                {"principal": principal, "origin": origin},
                {"principal": "user:owner", "origin": "interactive"},
            ),
            "policy:WhoCan",
        )

    async def list_rules(self, session_id: str) -> RuleList:
        """The rules of a session."""
        return await self.call(
            "GET", f"/v1/sessions/{part(session_id)}/rules", None, "sessions:RuleList"
        )

    async def add_rule(self, session_id: str, *, words: str) -> ShownRule:
        """Add a rule, in plain words."""
        return await self.call(
            "POST", f"/v1/sessions/{part(session_id)}/rules", {"words": words}, "sessions:ShownRule"
        )

    async def remove_rule(self, session_id: str, *, rule_id: str) -> ShownRule:
        """Remove a rule."""
        return await self.call(
            "DELETE",
            f"/v1/sessions/{part(session_id)}/rules",
            {"rule_id": rule_id},
            "sessions:ShownRule",
        )

    async def restart(self, *, started_ms: int) -> Nothing:
        """End at once, as in a power cut, and start again; what runs goes on."""
        return await self.call("POST", "/v1/restart", {"started_ms": started_ms}, "admin:Nothing")

    async def list_secrets(self) -> VaultState:
        """What secrets there are; never their values."""
        return await self.call("GET", "/v1/vault", None, "vault:VaultState")

    async def put_secret(
        self,
        *,
        name: str,
        value: str,
        scope: str = "global",
        hosts: Sequence[str] | None = None,
        tools: Sequence[str] | None = None,
    ) -> Secret:
        """Store a secret, also in place of the one that has its name."""
        return await self.call(
            "POST",
            "/v1/vault",
            sent(
                {"name": name, "value": value, "scope": scope, "hosts": hosts, "tools": tools},
                {"scope": "global", "hosts": None, "tools": None},
            ),
            "vault:Secret",
        )

    async def remove_secret(self, *, name: str, scope: str = "global") -> None:
        """Remove a secret."""
        await self.call(
            "DELETE", "/v1/vault", sent({"name": name, "scope": scope}, {"scope": "global"}), ""
        )

    async def rotate_secret(self, *, name: str, value: str, scope: str = "global") -> Secret:
        """Give a secret another value."""
        return await self.call(
            "POST",
            "/v1/vault/rotate",
            sent({"name": name, "value": value, "scope": scope}, {"scope": "global"}),
            "vault:Secret",
        )

    async def rotate_vault_key(self) -> KeyRotated:
        """Re-encrypt every secret under a new master key."""
        return await self.call("POST", "/v1/vault/rotate-key", {}, "vault:KeyRotated")

    async def get_checkpoint(self) -> CheckpointState:
        """The newest signed checkpoint, and the keys that sign."""
        return await self.call("GET", "/v1/journal/checkpoint", None, "journal:CheckpointState")

    async def make_checkpoint(self) -> StoredCheckpoint:
        """Sign a checkpoint over the journal as it is now."""
        return await self.call("POST", "/v1/journal/checkpoint", None, "journal:StoredCheckpoint")

    async def prove_entry(self, position: int, *, size: int = 0) -> InclusionProof:
        """Prove that an entry stands in the journal at its position."""
        return await self.call(
            "GET",
            f"/v1/journal/proof/{part(position)}",
            sent({"size": size}, {"size": 0}),
            "journal:InclusionProof",
        )

    async def prove_consistency(self, *, old: int, size: int = 0) -> ConsistencyProof:
        """Prove that the journal has only grown between two sizes."""
        return await self.call(
            "GET",
            "/v1/journal/consistency",
            sent({"old": old, "size": size}, {"size": 0}),
            "journal:ConsistencyProof",
        )

    async def export_proof(
        self,
        *,
        session_id: str = "",
        run_id: str = "",
        first: int = 0,
        last: int = 0,
        bodies: bool = True,
        without: str = "",
    ) -> ProofBundle:
        """Entries with their proofs, for somebody without the product."""
        return await self.call(
            "GET",
            "/v1/journal/bundle",
            sent(
                {
                    "session_id": session_id,
                    "run_id": run_id,
                    "first": first,
                    "last": last,
                    "bodies": bodies,
                    "without": without,
                },
                {
                    "session_id": "",
                    "run_id": "",
                    "first": 0,
                    "last": 0,
                    "bodies": True,
                    "without": "",
                },
            ),
            "journal:ProofBundle",
        )

    async def rotate_journal_key(self) -> RotatedKey:
        """Replace the key that signs checkpoints."""
        return await self.call("POST", "/v1/journal/key/rotate", None, "journal:RotatedKey")

    async def cosign_checkpoint(self, data: bytes, media: str = "application/json") -> None:
        """Cosign a checkpoint of a journal that this daemon is a witness of (C2SP)."""
        await self.upload("POST", "/v1/witness/add-checkpoint", None, data, media, "")

    async def tls_status(self) -> Listening:
        """Where the daemon listens, and its certificates."""
        return await self.call("GET", "/v1/tls", None, "tls:Listening")

    async def renew_certificate(self) -> Shown:
        """A new certificate, or your own files read again."""
        return await self.call("POST", "/v1/tls/renew", {}, "tls:Shown")

    async def get_certificate_authority(self) -> bytes:
        """The certificate of the daemon's own authority, for others to trust."""
        return await self.fetch("GET", "/v1/tls/authority", None)

    async def revoke_worker_certificate(self, fingerprint: str) -> Certificate:
        """Revoke a worker's certificate, at once."""
        return await self.call(
            "DELETE", f"/v1/tls/workers/{part(fingerprint)}", None, "tls:Certificate"
        )

    async def list_tasks(
        self,
        *,
        kind: str = "",
        state: Literal[
            "", "cancelled", "done", "expired", "failed", "paused", "queued", "running"
        ] = "",
        before: str = "",
        limit: int = 100,
    ) -> TaskPage:
        """Background tasks, newest first."""
        return await self.call(
            "GET",
            "/v1/tasks",
            sent(
                {"kind": kind, "state": state, "before": before, "limit": limit},
                {"kind": "", "state": "", "before": "", "limit": 100},
            ),
            "tasks:TaskPage",
        )

    async def list_task_kinds(self) -> KindList:
        """Kinds of tasks, and how many are in which state."""
        return await self.call("GET", "/v1/tasks/kinds", None, "tasks:KindList")

    async def change_task_kind(self, task_kind: str, *, paused: bool) -> KindCount:
        """Begin no more tasks of a kind, or begin them again."""
        return await self.call(
            "POST", f"/v1/tasks/kinds/{part(task_kind)}", {"paused": paused}, "tasks:KindCount"
        )

    async def get_task(self, task_id: str) -> Task:
        """One task."""
        return await self.call("GET", f"/v1/tasks/{part(task_id)}", None, "tasks:Task")

    async def change_task(
        self, task_id: str, *, verb: Literal["cancel", "pause", "resume", "retry"]
    ) -> Task:
        """Pause, resume, retry or cancel a task."""
        return await self.call("POST", f"/v1/tasks/{part(task_id)}", {"verb": verb}, "tasks:Task")

    async def usage(
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
        return await self.call(
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
            "usage:UsageList",
        )

    async def forecast_usage(self, *, everybody: bool = False) -> Forecast:
        """What the month will have cost, by the trend."""
        return await self.call(
            "GET",
            "/v1/usage/forecast",
            sent({"everybody": everybody}, {"everybody": False}),
            "usage:Forecast",
        )

    async def forecast_schedule(self, *, schedule_id: str = "", times: int = 30) -> RunForecast:
        """What so many firings of a schedule will use."""
        return await self.call(
            "GET",
            "/v1/usage/forecast/schedule",
            sent({"schedule_id": schedule_id, "times": times}, {"schedule_id": "", "times": 30}),
            "usage:RunForecast",
        )

    async def list_run_plans(self, run_id: str) -> RunPlans:
        """Who was asked in a run, why, and what came of it."""
        return await self.call("GET", f"/v1/runs/{part(run_id)}/plans", None, "runs:RunPlans")

    async def list_budgets(self) -> BudgetList:
        """Limits on what models may cost, and what is left of them."""
        return await self.call("GET", "/v1/budgets", None, "usage:BudgetList")

    async def put_budget(
        self,
        budget: str,
        *,
        per: Literal["all", "principal", "run", "schedule", "session"] = "all",
        every: Literal["day", "ever", "month"] = "ever",
        tokens: int = 0,
        microusd: int = 0,
        warn_bps: int = 8000,
        then: Literal["ask", "block"] = "block",
        who: str = "",
    ) -> Limit:
        """Set a limit, also in place of the one that has its name."""
        return await self.call(
            "PUT",
            f"/v1/budgets/{part(budget)}",
            {
                "per": per,
                "every": every,
                "tokens": tokens,
                "microusd": microusd,
                "warn_bps": warn_bps,
                "then": then,
                "who": who,
            },
            "usage:Limit",
        )

    async def remove_budget(self, budget: str) -> None:
        """Remove a limit."""
        await self.call("DELETE", f"/v1/budgets/{part(budget)}", None, "")

    async def store_file(self, session_id: str, data: bytes, *, name: str) -> StoredFile:
        """Store a file that a message can then have as an attachment."""
        return await self.upload(
            "POST",
            f"/v1/sessions/{part(session_id)}/files",
            {"name": name},
            data,
            "application/octet-stream",
            "sessions:StoredFile",
        )

    async def preview_references(self, session_id: str, *, text: str) -> ReferencesPreview:
        """What the references of a message would bring."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/references/preview",
            {"text": text},
            "sessions:ReferencesPreview",
        )

    async def list_paths(self, session_id: str, *, prefix: str = "", limit: int = 20) -> PathList:
        """Paths of the workspace that begin so, for completing a reference."""
        return await self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/paths",
            sent({"prefix": prefix, "limit": limit}, {"prefix": "", "limit": 20}),
            "sessions:PathList",
        )

    async def create_chat_completion(
        self,
        *,
        messages: Sequence[ChatMessage],
        model: str = "",
        stream: bool | None = False,
        stream_options: StreamOptions | None = None,
        tools: Sequence[ChatTool] | None = None,
        tool_choice: Any = None,
        user: str | None = None,
        n: int | None = None,
        logprobs: bool | None = None,
        modalities: Sequence[str] | None = None,
        response_format: dict[str, Any] | None = None,
        functions: Sequence[Any] | None = None,
        reasoning_effort: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        service_tier: str | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        verbosity: str | None = None,
        parallel_tool_calls: bool | None = None,
        logit_bias: dict[str, float] | None = None,
        web_search_options: dict[str, Any] | None = None,
    ) -> ChatCompletion:
        """The agent answers a chat, for programs that know OpenAI's."""
        return await self.call(
            "POST",
            "/v1/chat/completions",
            sent(
                {
                    "messages": messages,
                    "model": model,
                    "stream": stream,
                    "stream_options": stream_options,
                    "tools": tools,
                    "tool_choice": tool_choice,
                    "user": user,
                    "n": n,
                    "logprobs": logprobs,
                    "modalities": modalities,
                    "response_format": response_format,
                    "functions": functions,
                    "reasoning_effort": reasoning_effort,
                    "temperature": temperature,
                    "top_p": top_p,
                    "max_tokens": max_tokens,
                    "max_completion_tokens": max_completion_tokens,
                    "stop": stop,
                    "seed": seed,
                    "service_tier": service_tier,
                    "frequency_penalty": frequency_penalty,
                    "presence_penalty": presence_penalty,
                    "verbosity": verbosity,
                    "parallel_tool_calls": parallel_tool_calls,
                    "logit_bias": logit_bias,
                    "web_search_options": web_search_options,
                },
                {
                    "model": "",
                    "stream": False,
                    "stream_options": None,
                    "tools": None,
                    "tool_choice": None,
                    "user": None,
                    "n": None,
                    "logprobs": None,
                    "modalities": None,
                    "response_format": None,
                    "functions": None,
                    "reasoning_effort": None,
                    "temperature": None,
                    "top_p": None,
                    "max_tokens": None,
                    "max_completion_tokens": None,
                    "stop": None,
                    "seed": None,
                    "service_tier": None,
                    "frequency_penalty": None,
                    "presence_penalty": None,
                    "verbosity": None,
                    "parallel_tool_calls": None,
                    "logit_bias": None,
                    "web_search_options": None,
                },
            ),
            "openai:ChatCompletion",
        )

    def create_chat_completion_events(
        self,
        *,
        messages: Sequence[ChatMessage],
        model: str = "",
        stream: bool | None = False,
        stream_options: StreamOptions | None = None,
        tools: Sequence[ChatTool] | None = None,
        tool_choice: Any = None,
        user: str | None = None,
        n: int | None = None,
        logprobs: bool | None = None,
        modalities: Sequence[str] | None = None,
        response_format: dict[str, Any] | None = None,
        functions: Sequence[Any] | None = None,
        reasoning_effort: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        service_tier: str | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        verbosity: str | None = None,
        parallel_tool_calls: bool | None = None,
        logit_bias: dict[str, float] | None = None,
        web_search_options: dict[str, Any] | None = None,
    ) -> AsyncIterator[ServerSentEvent]:
        """The agent answers a chat, for programs that know OpenAI's: the events as they come."""
        return self.events(
            "POST",
            "/v1/chat/completions",
            sent(
                {
                    "messages": messages,
                    "model": model,
                    "stream": stream,
                    "stream_options": stream_options,
                    "tools": tools,
                    "tool_choice": tool_choice,
                    "user": user,
                    "n": n,
                    "logprobs": logprobs,
                    "modalities": modalities,
                    "response_format": response_format,
                    "functions": functions,
                    "reasoning_effort": reasoning_effort,
                    "temperature": temperature,
                    "top_p": top_p,
                    "max_tokens": max_tokens,
                    "max_completion_tokens": max_completion_tokens,
                    "stop": stop,
                    "seed": seed,
                    "service_tier": service_tier,
                    "frequency_penalty": frequency_penalty,
                    "presence_penalty": presence_penalty,
                    "verbosity": verbosity,
                    "parallel_tool_calls": parallel_tool_calls,
                    "logit_bias": logit_bias,
                    "web_search_options": web_search_options,
                },
                {
                    "model": "",
                    "stream": False,
                    "stream_options": None,
                    "tools": None,
                    "tool_choice": None,
                    "user": None,
                    "n": None,
                    "logprobs": None,
                    "modalities": None,
                    "response_format": None,
                    "functions": None,
                    "reasoning_effort": None,
                    "temperature": None,
                    "top_p": None,
                    "max_tokens": None,
                    "max_completion_tokens": None,
                    "stop": None,
                    "seed": None,
                    "service_tier": None,
                    "frequency_penalty": None,
                    "presence_penalty": None,
                    "verbosity": None,
                    "parallel_tool_calls": None,
                    "logit_bias": None,
                    "web_search_options": None,
                },
            ),
        )

    async def create_response(
        self,
        *,
        input: str | Sequence[ResponseItem],
        model: str = "",
        instructions: str | None = None,
        previous_response_id: str | None = None,
        stream: bool | None = False,
        tools: Sequence[ResponseTool] | None = None,
        tool_choice: Any = None,
        user: str | None = None,
        text: dict[str, Any] | None = None,
        background: bool | None = None,
        conversation: Any = None,
        reasoning: Reasoning | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_output_tokens: int | None = None,
        service_tier: str | None = None,
        parallel_tool_calls: bool | None = None,
        include: Sequence[str] | None = None,
    ) -> Response:
        """The same as a response that the next one can name."""
        return await self.call(
            "POST",
            "/v1/responses",
            sent(
                {
                    "input": input,
                    "model": model,
                    "instructions": instructions,
                    "previous_response_id": previous_response_id,
                    "stream": stream,
                    "tools": tools,
                    "tool_choice": tool_choice,
                    "user": user,
                    "text": text,
                    "background": background,
                    "conversation": conversation,
                    "reasoning": reasoning,
                    "temperature": temperature,
                    "top_p": top_p,
                    "max_output_tokens": max_output_tokens,
                    "service_tier": service_tier,
                    "parallel_tool_calls": parallel_tool_calls,
                    "include": include,
                },
                {
                    "model": "",
                    "instructions": None,
                    "previous_response_id": None,
                    "stream": False,
                    "tools": None,
                    "tool_choice": None,
                    "user": None,
                    "text": None,
                    "background": None,
                    "conversation": None,
                    "reasoning": None,
                    "temperature": None,
                    "top_p": None,
                    "max_output_tokens": None,
                    "service_tier": None,
                    "parallel_tool_calls": None,
                    "include": None,
                },
            ),
            "openai:Response",
        )

    def create_response_events(
        self,
        *,
        input: str | Sequence[ResponseItem],
        model: str = "",
        instructions: str | None = None,
        previous_response_id: str | None = None,
        stream: bool | None = False,
        tools: Sequence[ResponseTool] | None = None,
        tool_choice: Any = None,
        user: str | None = None,
        text: dict[str, Any] | None = None,
        background: bool | None = None,
        conversation: Any = None,
        reasoning: Reasoning | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_output_tokens: int | None = None,
        service_tier: str | None = None,
        parallel_tool_calls: bool | None = None,
        include: Sequence[str] | None = None,
    ) -> AsyncIterator[ServerSentEvent]:
        """The same as a response that the next one can name: the events as they come."""
        return self.events(
            "POST",
            "/v1/responses",
            sent(
                {
                    "input": input,
                    "model": model,
                    "instructions": instructions,
                    "previous_response_id": previous_response_id,
                    "stream": stream,
                    "tools": tools,
                    "tool_choice": tool_choice,
                    "user": user,
                    "text": text,
                    "background": background,
                    "conversation": conversation,
                    "reasoning": reasoning,
                    "temperature": temperature,
                    "top_p": top_p,
                    "max_output_tokens": max_output_tokens,
                    "service_tier": service_tier,
                    "parallel_tool_calls": parallel_tool_calls,
                    "include": include,
                },
                {
                    "model": "",
                    "instructions": None,
                    "previous_response_id": None,
                    "stream": False,
                    "tools": None,
                    "tool_choice": None,
                    "user": None,
                    "text": None,
                    "background": None,
                    "conversation": None,
                    "reasoning": None,
                    "temperature": None,
                    "top_p": None,
                    "max_output_tokens": None,
                    "service_tier": None,
                    "parallel_tool_calls": None,
                    "include": None,
                },
            ),
        )

    async def get_response(self, response: str) -> Response:
        """A response that was given before, as far as it has come."""
        return await self.call("GET", f"/v1/responses/{part(response)}", None, "openai:Response")

    async def cancel_response(self, response: str) -> Response:
        """Cancel the run that is working on a response."""
        return await self.call(
            "POST", f"/v1/responses/{part(response)}/cancel", None, "openai:Response"
        )

    async def delete_response(self, response: str) -> Deleted:
        """Put the session of a response away, if it has no other."""
        return await self.call("DELETE", f"/v1/responses/{part(response)}", None, "openai:Deleted")

    async def list_response_items(
        self,
        response: str,
        *,
        order: Literal["asc", "desc"] = "desc",
        limit: int = 100,
        after: str = "",
    ) -> ItemList:
        """What a response answered."""
        return await self.call(
            "GET",
            f"/v1/responses/{part(response)}/input_items",
            sent(
                {"order": order, "limit": limit, "after": after},
                {"order": "desc", "limit": 100, "after": ""},
            ),
            "openai:ItemList",
        )

    async def create_conversation(self, *, items: Sequence[Any] | None = None) -> ApiConversation:
        """A conversation that responses can name: a session."""
        return await self.call(
            "POST",
            "/v1/conversations",
            sent({"items": items}, {"items": None}),
            "conversations:ApiConversation",
        )

    async def get_conversation(self, conversation: str) -> ApiConversation:
        """One of them."""
        return await self.call(
            "GET", f"/v1/conversations/{part(conversation)}", None, "conversations:ApiConversation"
        )

    async def delete_conversation(self, conversation: str) -> DeletedConversation:
        """Archive the session of a conversation."""
        return await self.call(
            "DELETE",
            f"/v1/conversations/{part(conversation)}",
            None,
            "conversations:DeletedConversation",
        )

    async def list_conversation_items(
        self,
        conversation: str,
        *,
        order: Literal["asc", "desc"] = "desc",
        limit: int = 100,
        after: str = "",
    ) -> ItemList:
        """What was said in a conversation."""
        return await self.call(
            "GET",
            f"/v1/conversations/{part(conversation)}/items",
            sent(
                {"order": order, "limit": limit, "after": after},
                {"order": "desc", "limit": 100, "after": ""},
            ),
            "openai:ItemList",
        )

    async def list_models(self) -> ModelList:
        """Models that can be asked for."""
        return await self.call("GET", "/v1/models", None, "openai:ModelList")

    async def get_model(self, model: str) -> OpenAIModel:
        """One of them."""
        return await self.call("GET", f"/v1/models/{part(model)}", None, "openai:OpenAIModel")

    async def create_embeddings(
        self,
        *,
        input: str | Sequence[str | int | Sequence[int]],
        model: str = "",
        user: str | None = None,
        encoding_format: Literal["base64", "float"] = "float",
        dimensions: int | None = None,
    ) -> EmbeddingList:
        """Texts as vectors, by the daemon's own embedding model."""
        return await self.call(
            "POST",
            "/v1/embeddings",
            sent(
                {
                    "input": input,
                    "model": model,
                    "user": user,
                    "encoding_format": encoding_format,
                    "dimensions": dimensions,
                },
                {"model": "", "user": None, "encoding_format": "float", "dimensions": None},
            ),
            "openai:EmbeddingList",
        )

    async def list_memory(
        self,
        *,
        state: Literal["active", "all", "forgotten", "rejected", "review", "superseded"] = "active",
        before: str = "",
        limit: int = 100,
    ) -> ItemPage:
        """What is remembered, newest first."""
        return await self.call(
            "GET",
            "/v1/memory",
            sent(
                {"state": state, "before": before, "limit": limit},
                {"state": "active", "before": "", "limit": 100},
            ),
            "memory:ItemPage",
        )

    async def add_memory(
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
        return await self.call(
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
            "memory:Item",
        )

    async def search_memory(self, *, text: str, session_id: str = "", limit: int = 10) -> Searched:
        """Search by words and meaning, with explained scores."""
        return await self.call(
            "GET",
            "/v1/memory/search",
            sent(
                {"text": text, "session_id": session_id, "limit": limit},
                {"session_id": "", "limit": 10},
            ),
            "memory:Searched",
        )

    async def memory_status(self) -> MemoryStatus:
        """How much is remembered, and how it is searched."""
        return await self.call("GET", "/v1/memory/status", None, "memory:MemoryStatus")

    def export_memory(self) -> AsyncIterator[bytes]:
        """Everything, also history, one item a line."""
        return self.pieces("GET", "/v1/memory/export", None)

    async def import_memory(
        self, *, new: Sequence[NewMemory] = (), items: Sequence[Item] = (), session_id: str = ""
    ) -> Imported:
        """Remember many at once."""
        return await self.call(
            "POST",
            "/v1/memory/import",
            sent(
                {"new": new, "items": items, "session_id": session_id},
                {"new": (), "items": (), "session_id": ""},
            ),
            "memory:Imported",
        )

    async def purge_memory(
        self, *, memory_ids: Sequence[str] = (), everything: bool = False
    ) -> Purged:
        """Remove items permanently, with all their versions."""
        return await self.call(
            "POST",
            "/v1/memory/purge",
            sent(
                {"memory_ids": memory_ids, "everything": everything},
                {"memory_ids": (), "everything": False},
            ),
            "memory:Purged",
        )

    async def get_memory(self, memory_id: str) -> Item:
        """One item."""
        return await self.call("GET", f"/v1/memory/{part(memory_id)}", None, "memory:Item")

    async def change_memory(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        kind: Literal["constraint", "decision", "fact", "preference", "procedure"] | None = None,
        confidence_bps: int | None = None,
        valid_until_ms: int | None = None,
        pinned: bool | None = None,
    ) -> Item:
        """Correct or pin an item."""
        return await self.call(
            "PATCH",
            f"/v1/memory/{part(memory_id)}",
            sent(
                {
                    "text": text,
                    "kind": kind,
                    "confidence_bps": confidence_bps,
                    "valid_until_ms": valid_until_ms,
                    "pinned": pinned,
                },
                {
                    "text": None,
                    "kind": None,
                    "confidence_bps": None,
                    "valid_until_ms": None,
                    "pinned": None,
                },
            ),
            "memory:Item",
        )

    async def forget_memory(self, memory_id: str) -> Item:
        """Forget an item; it can be brought back until it is purged."""
        return await self.call("DELETE", f"/v1/memory/{part(memory_id)}", None, "memory:Item")

    async def memory_history(self, memory_id: str) -> ItemPage:
        """All versions of what an item says, newest first."""
        return await self.call(
            "GET", f"/v1/memory/{part(memory_id)}/history", None, "memory:ItemPage"
        )

    async def review_memory(self, memory_id: str, *, decision: Literal["accept", "reject"]) -> Item:
        """Accept or reject an item that needs review, or was forgotten."""
        return await self.call(
            "POST", f"/v1/memory/{part(memory_id)}/review", {"decision": decision}, "memory:Item"
        )

    async def search_sessions(self, *, q: str, semantic: bool = True, limit: int = 20) -> SaidPage:
        """What was said in sessions, by words and meaning."""
        return await self.call(
            "GET",
            "/v1/sessions/search",
            sent({"q": q, "semantic": semantic, "limit": limit}, {"semantic": True, "limit": 20}),
            "sessions:SaidPage",
        )

    async def list_mcp_servers(self) -> ServerList:
        """MCP servers: their state, their tools, what needs to be accepted."""
        return await self.call("GET", "/v1/mcp", None, "mcp:ServerList")

    async def accept_mcp_server(
        self, server: str, *, fingerprint: str, uses: dict[str, ToolUse] | None = None
    ) -> ServerStatus:
        """Offer what a server says of its tools now."""
        return await self.call(
            "POST",
            f"/v1/mcp/{part(server)}/accept",
            sent({"fingerprint": fingerprint, "uses": uses}, {"uses": None}),
            "mcp:ServerStatus",
        )

    async def set_mcp_arguments(self, server: str, *, tool: str, use: ToolUse) -> ServerStatus:
        """Say what the arguments of an accepted tool are for."""
        return await self.call(
            "POST",
            f"/v1/mcp/{part(server)}/arguments",
            {"tool": tool, "use": use},
            "mcp:ServerStatus",
        )

    async def restart_mcp_server(self, server: str) -> ServerStatus:
        """Restart a server."""
        return await self.call("POST", f"/v1/mcp/{part(server)}/restart", {}, "mcp:ServerStatus")

    async def list_skills(self) -> SkillList:
        """Installed skills."""
        return await self.call("GET", "/v1/skills", None, "skills:SkillList")

    async def install_skill(self, *, path: str, confirm: str = "") -> Proposal | ShownSkill:
        """Install or update a skill from a folder or zip file on the daemon's machine."""
        return await self.call(
            "POST",
            "/v1/skills",
            sent({"path": path, "confirm": confirm}, {"confirm": ""}),
            {200: "skills:Proposal", 201: "skills:ShownSkill"},
        )

    async def install_skill_archive(
        self, data: bytes, *, confirm: str = ""
    ) -> Proposal | ShownSkill:
        """Install or update a skill from a zip file that is sent."""
        return await self.upload(
            "POST",
            "/v1/skill-archives",
            sent({"confirm": confirm}, {"confirm": ""}),
            data,
            "application/zip",
            {200: "skills:Proposal", 201: "skills:ShownSkill"},
        )

    async def get_skill(self, skill: str) -> ShownSkill:
        """One skill: what it may do, its tools, its instructions."""
        return await self.call("GET", f"/v1/skills/{part(skill)}", None, "skills:ShownSkill")

    async def remove_skill(self, skill: str) -> None:
        """Remove a skill."""
        await self.call("DELETE", f"/v1/skills/{part(skill)}", None, "")

    async def set_skill_state(
        self, skill: str, *, state: Literal["enabled", "quarantined", "trusted"]
    ) -> ShownSkill:
        """Put a skill in quarantine, enable it or trust it."""
        return await self.call(
            "POST", f"/v1/skills/{part(skill)}/state", {"state": state}, "skills:ShownSkill"
        )

    async def export_skill(self, skill: str) -> bytes:
        """The skill as a zip file."""
        return await self.fetch("GET", f"/v1/skills/{part(skill)}/export", None)

    async def list_publishers(self) -> PublisherList:
        """Whose signed skills are trusted."""
        return await self.call("GET", "/v1/publishers", None, "skills:PublisherList")

    async def add_publisher(self, *, name: str, key: str) -> Publisher:
        """Trust the signed skills of a publisher."""
        return await self.call(
            "POST", "/v1/publishers", {"name": name, "key": key}, "skills:Publisher"
        )

    async def remove_publisher(self, *, name: str) -> None:
        """Trust a publisher no longer; their skills go back into quarantine."""
        await self.call("DELETE", "/v1/publishers", {"name": name}, "")

    async def list_workers(self) -> WorkerList:
        """Workers on other machines, and what runs there."""
        return await self.call("GET", "/v1/workers", None, "workers:WorkerList")

    async def enrol_worker(self, *, name: str) -> Enrolment:
        """A one-time code by which a machine becomes a worker."""
        return await self.call("POST", "/v1/workers", {"name": name}, "workers:Enrolment")

    async def get_worker(self, worker: str) -> WorkerDetail:
        """One worker, with the calls that it was given last."""
        return await self.call("GET", f"/v1/workers/{part(worker)}", None, "workers:WorkerDetail")

    async def drain_worker(self, worker: str, *, on: bool = True) -> WorkerShown:
        """Give it nothing new, or use it again."""
        return await self.call(
            "POST",
            f"/v1/workers/{part(worker)}/drain",
            sent({"on": on}, {"on": True}),
            "workers:WorkerShown",
        )

    async def revoke_worker(self, worker: str) -> WorkerShown:
        """Revoke a worker: its certificate is no longer good."""
        return await self.call("DELETE", f"/v1/workers/{part(worker)}", None, "workers:WorkerShown")

    async def list_notes(
        self, *, session_id: str | None = None, workspace: str | None = None
    ) -> NoteList:
        """Notes for agents: what they say, and what has changed since they were accepted."""
        return await self.call(
            "GET",
            "/v1/notes",
            sent(
                {"session_id": session_id, "workspace": workspace},
                {"session_id": None, "workspace": None},
            ),
            "notes:NoteList",
        )

    async def accept_note(self, *, workspace: str, file: str, sha256: str) -> Note:
        """Accept the content of a note that was shown."""
        return await self.call(
            "POST",
            "/v1/notes/accept",
            {"workspace": workspace, "file": file, "sha256": sha256},
            "notes:Note",
        )

    async def reject_note(self, *, workspace: str, file: str) -> None:
        """Reject a note that was accepted; runs go without it."""
        await self.call("DELETE", "/v1/notes", {"workspace": workspace, "file": file}, "")

    async def list_providers(self) -> ProviderList:
        """Model providers: where they are, what they offer, where their keys are."""
        return await self.call("GET", "/v1/providers", None, "admin:ProviderList")

    async def save_provider(
        self,
        *,
        name: str,
        kind: Literal["anthropic", "gemini", "openai-chat", "openai-responses"],
        base_url: str = "",
        models: Sequence[str] = (),
        key: str = "",
        key_from: str = "",
        first: bool = False,
        windows: Sequence[str] | None = None,
        vision: bool | None = None,
    ) -> ProviderList:
        """Add or change a provider, at once."""
        return await self.call(
            "POST",
            "/v1/providers",
            sent(
                {
                    "name": name,
                    "kind": kind,
                    "base_url": base_url,
                    "models": models,
                    "key": key,
                    "key_from": key_from,
                    "first": first,
                    "windows": windows,
                    "vision": vision,
                },
                {
                    "base_url": "",
                    "models": (),
                    "key": "",
                    "key_from": "",
                    "first": False,
                    "windows": None,
                    "vision": None,
                },
            ),
            "admin:ProviderList",
        )

    async def remove_provider(self, *, name: str) -> ProviderList:
        """Remove a provider, at once; runs that began with it end with it."""
        return await self.call("DELETE", "/v1/providers", {"name": name}, "admin:ProviderList")

    async def test_provider(
        self,
        *,
        name: str,
        kind: Literal["anthropic", "gemini", "openai-chat", "openai-responses"],
        base_url: str = "",
        models: Sequence[str] = (),
        key: str = "",
        key_from: str = "",
        first: bool = False,
        windows: Sequence[str] | None = None,
        vision: bool | None = None,
    ) -> Trial:
        """One tiny request with a tool to a provider, saved or not."""
        return await self.call(
            "POST",
            "/v1/providers/test",
            sent(
                {
                    "name": name,
                    "kind": kind,
                    "base_url": base_url,
                    "models": models,
                    "key": key,
                    "key_from": key_from,
                    "first": first,
                    "windows": windows,
                    "vision": vision,
                },
                {
                    "base_url": "",
                    "models": (),
                    "key": "",
                    "key_from": "",
                    "first": False,
                    "windows": None,
                    "vision": None,
                },
            ),
            "admin:Trial",
        )

    async def find_providers(self) -> FoundProviders:
        """Providers that could be set up: servers on this machine, keys in the environment."""
        return await self.call("GET", "/v1/providers/found", None, "admin:FoundProviders")

    async def list_provider_models(
        self,
        *,
        name: str,
        kind: Literal["anthropic", "gemini", "openai-chat", "openai-responses"],
        base_url: str = "",
        models: Sequence[str] = (),
        key: str = "",
        key_from: str = "",
        first: bool = False,
        windows: Sequence[str] | None = None,
        vision: bool | None = None,
    ) -> FoundProvider:
        """The models that a provider says it has, saved or not."""
        return await self.call(
            "POST",
            "/v1/providers/models",
            sent(
                {
                    "name": name,
                    "kind": kind,
                    "base_url": base_url,
                    "models": models,
                    "key": key,
                    "key_from": key_from,
                    "first": first,
                    "windows": windows,
                    "vision": vision,
                },
                {
                    "base_url": "",
                    "models": (),
                    "key": "",
                    "key_from": "",
                    "first": False,
                    "windows": None,
                    "vision": None,
                },
            ),
            "admin:FoundProvider",
        )

    async def set_default_model(self, *, model: str) -> ProviderList:
        """Choose the model that is used first, at once."""
        return await self.call(
            "POST", "/v1/providers/default", {"model": model}, "admin:ProviderList"
        )

    async def change_config(self, *, changes: dict[str, bool | int | str]) -> ConfigReloaded:
        """Change settings of learning, healing or backups, at once and permanently."""
        return await self.call("PATCH", "/v1/config", {"changes": changes}, "admin:ConfigReloaded")

    async def change_listeners(
        self,
        *,
        grpc: bool | None = None,
        workers: str | None = None,
        quic: bool | None = None,
        tls: bool | None = None,
        host: str | None = None,
    ) -> ConfigReloaded:
        """Open, close or move listeners, at once."""
        return await self.call(
            "PATCH",
            "/v1/listeners",
            sent(
                {"grpc": grpc, "workers": workers, "quic": quic, "tls": tls, "host": host},
                {"grpc": None, "workers": None, "quic": None, "tls": None, "host": None},
            ),
            "admin:ConfigReloaded",
        )

    async def save_mcp_server(
        self,
        *,
        name: str,
        command: Sequence[str] = (),
        url: str = "",
        headers: Sequence[str] = (),
        env: Sequence[str] = (),
        folder: str = "",
        writable: bool = True,
        hosts: Sequence[str] = (),
    ) -> SavedMcpServer:
        """Add an MCP server or change its settings, at once."""
        return await self.call(
            "POST",
            "/v1/mcp",
            sent(
                {
                    "name": name,
                    "command": command,
                    "url": url,
                    "headers": headers,
                    "env": env,
                    "folder": folder,
                    "writable": writable,
                    "hosts": hosts,
                },
                {
                    "command": (),
                    "url": "",
                    "headers": (),
                    "env": (),
                    "folder": "",
                    "writable": True,
                    "hosts": (),
                },
            ),
            "mcp:SavedMcpServer",
        )

    async def change_mcp_server(self, server: str, *, enabled: bool) -> SavedMcpServer:
        """Enable or disable an MCP server, at once."""
        return await self.call(
            "PATCH", f"/v1/mcp/{part(server)}", {"enabled": enabled}, "mcp:SavedMcpServer"
        )

    async def remove_mcp_server(self, server: str) -> SavedMcpServer:
        """Remove an MCP server, at once; its folder and what was accepted stay."""
        return await self.call("DELETE", f"/v1/mcp/{part(server)}", None, "mcp:SavedMcpServer")

    async def use_shadow_policy(self, *, named: str) -> PolicyState:
        """Try policies beside those in force, at once; their decisions are only recorded."""
        return await self.call("POST", "/v1/policy/shadow", {"named": named}, "status:PolicyState")

    async def set_preset(
        self, *, preset: Literal["coding", "default", "locked", "research"]
    ) -> PolicyState:
        """Go over to another preset, at once."""
        return await self.call(
            "POST", "/v1/policy/preset", {"preset": preset}, "status:PolicyState"
        )

    async def session_at(self, session_id: str, seq: int, *, turns: int = 200) -> Moment:
        """A session as it was after an entry, and what came since."""
        return await self.call(
            "GET",
            f"/v1/sessions/{part(session_id)}/at/{part(seq)}",
            sent({"turns": turns}, {"turns": 200}),
            "sessions:Moment",
        )

    async def rewind_session(
        self,
        session_id: str,
        *,
        to: int,
        files: bool = True,
        conversation: bool = True,
        preview: bool = False,
        stop: bool = False,
        conflicts: Literal["abort", "skip"] = "abort",
    ) -> Rewound:
        """Take files and conversation back to an entry, or preview it."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/rewind",
            sent(
                {
                    "to": to,
                    "files": files,
                    "conversation": conversation,
                    "preview": preview,
                    "stop": stop,
                    "conflicts": conflicts,
                },
                {
                    "files": True,
                    "conversation": True,
                    "preview": False,
                    "stop": False,
                    "conflicts": "abort",
                },
            ),
            "sessions:Rewound",
        )

    async def undo(
        self,
        session_id: str,
        *,
        call_id: str = "",
        run_id: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> Undone:
        """Undo effects."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/undo",
            sent(
                {"call_id": call_id, "run_id": run_id, "dry_run": dry_run, "force": force},
                {"call_id": "", "run_id": "", "dry_run": False, "force": False},
            ),
            "sessions:Undone",
        )

    async def replay_run(self, run_id: str) -> RunReplay:
        """Run the loop again over a recorded run, without any effect."""
        return await self.call("POST", f"/v1/runs/{part(run_id)}/replay", {}, "runs:RunReplay")

    async def get_replay(self, run_id: str, *, wait_ms: int = 0) -> RunReplay:
        """How far the replay of a run is, and where it differs."""
        return await self.call(
            "GET",
            f"/v1/runs/{part(run_id)}/replay",
            sent({"wait_ms": wait_ms}, {"wait_ms": 0}),
            "runs:RunReplay",
        )

    async def fork_run(
        self, run_id: str, *, at: int = 0, model: str = "", policy: str = ""
    ) -> Forked:
        """Take a run up again from an entry, live, with another model or policies."""
        return await self.call(
            "POST",
            f"/v1/runs/{part(run_id)}/fork",
            sent(
                {"at": at, "model": model, "policy": policy}, {"at": 0, "model": "", "policy": ""}
            ),
            "runs:Forked",
        )

    async def why(self, *, about: str, limit: int = 1) -> WhyAnswer:
        """The causes of an entry, a file, a message or a cost, as a tree."""
        return await self.call(
            "GET",
            "/v1/journal/why",
            sent({"about": about, "limit": limit}, {"limit": 1}),
            "journal:WhyAnswer",
        )

    async def security_score(self, *, since_ms: int = 0) -> SecurityScore:
        """Questions, unattended calls, repeated answers and instruction-like sources."""
        return await self.call(
            "GET",
            "/v1/security/score",
            sent({"since_ms": since_ms}, {"since_ms": 0}),
            "security:SecurityScore",
        )

    async def list_labelled_files(self, *, after: str = "", limit: int = 100) -> LabelledFiles:
        """Files that were written after untrusted content was read."""
        return await self.call(
            "GET",
            "/v1/security/files",
            sent({"after": after, "limit": limit}, {"after": "", "limit": 100}),
            "security:LabelledFiles",
        )

    async def clear_file_label(self, *, path: str) -> LabelledFiles:
        """Take the label of a file or a folder away."""
        return await self.call(
            "POST", "/v1/security/files/clear", {"path": path}, "security:LabelledFiles"
        )

    async def list_nodes(self) -> NodeList:
        """Nodes of the journal, the one that leads first."""
        return await self.call("GET", "/v1/nodes", None, "nodes:NodeList")

    async def drain_node(self, *, node: str = "") -> NodeInfo:
        """Have the node that leads hand over between two steps."""
        return await self.call(
            "POST", "/v1/nodes/drain", sent({"node": node}, {"node": ""}), "nodes:NodeInfo"
        )

    async def list_agents(self, session_id: str) -> Agents:
        """The subagents that work or worked for a session, as a tree."""
        return await self.call(
            "GET", f"/v1/sessions/{part(session_id)}/agents", None, "sessions:Agents"
        )

    async def archive_old_sessions(
        self, *, days: int | None = None, dry_run: bool = False
    ) -> Archived:
        """Seal sessions that were not used for long, or list them."""
        return await self.call(
            "POST",
            "/v1/journal/archive",
            sent({"days": days, "dry_run": dry_run}, {"days": None, "dry_run": False}),
            "journal:Archived",
        )

    async def clean_journal(self, *, dry_run: bool = False) -> CleanedUp:
        """Remove artifacts that nothing names, and look after the database file."""
        return await self.call(
            "POST",
            "/v1/journal/clean",
            sent({"dry_run": dry_run}, {"dry_run": False}),
            "journal:CleanedUp",
        )

    async def list_segments(self) -> SegmentList:
        """The segments that hold sealed sessions."""
        return await self.call("GET", "/v1/journal/segments", None, "journal:SegmentList")

    async def delete_session(self, session_id: str) -> DeletedSession:
        """Take a session out of the journal, the lists and search; a sealed copy proves it."""
        return await self.call(
            "DELETE", f"/v1/sessions/{part(session_id)}", None, "sessions:DeletedSession"
        )

    async def restore_session(self, session_id: str) -> Session:
        """Restore a sealed session."""
        return await self.call(
            "POST", f"/v1/sessions/{part(session_id)}/restore", None, "sessions:Session"
        )

    async def list_home_backups(self) -> HomeBackupList:
        """The backups of the home at their target, and how the last ones went."""
        return await self.call("GET", "/v1/backups", None, "backups:HomeBackupList")

    async def make_backup(self) -> MadeBackup:
        """Make a backup of the home now."""
        return await self.call("POST", "/v1/backups", {}, "backups:MadeBackup")

    async def check_backup(self, *, name: str = "") -> CheckedBackup:
        """Restore a backup into a scratch home and verify it."""
        return await self.call(
            "POST", "/v1/backups/check", sent({"name": name}, {"name": ""}), "backups:CheckedBackup"
        )

    async def compact_session(self, session_id: str, *, preview: bool = False) -> Compaction:
        """Condense the older turns of a session, or say what that would be."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/compaction",
            sent({"preview": preview}, {"preview": False}),
            "sessions:Compaction",
        )

    async def list_compactions(self, session_id: str) -> CompactionPage:
        """The compactions of a session, oldest first."""
        return await self.call(
            "GET", f"/v1/sessions/{part(session_id)}/compactions", None, "sessions:CompactionPage"
        )

    async def undo_compaction(self, session_id: str, seq: int) -> Uncompacted:
        """Undo a compaction and those built on it."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/compactions/{part(seq)}/undo",
            None,
            "sessions:Uncompacted",
        )

    async def pin_entry(self, session_id: str, *, seq: int, removed: bool = False) -> Pinned:
        """Keep an exchange whole in every compaction, or no longer."""
        return await self.call(
            "POST",
            f"/v1/sessions/{part(session_id)}/pins",
            sent({"seq": seq, "removed": removed}, {"removed": False}),
            "sessions:Pinned",
        )

    async def list_candidates(
        self,
        *,
        state: Literal["proposed"]
        | Literal[
            "accepted",
            "applied",
            "conflicted",
            "pending_review",
            "rejected",
            "rolled_back",
            "suppressed",
        ]
        | Literal["all", "waiting"] = "waiting",
        kind: Literal["fact", "policy", "preference", "procedure"] | Literal["any"] = "any",
        before: str = "",
        limit: int = 100,
    ) -> CandidateList:
        """What was learned and waits, or is in a state; newest first."""
        return await self.call(
            "GET",
            "/v1/candidates",
            sent(
                {"state": state, "kind": kind, "before": before, "limit": limit},
                {"state": "waiting", "kind": "any", "before": "", "limit": 100},
            ),
            "learning:CandidateList",
        )

    async def learning_settings(self) -> LearningSettings:
        """Thresholds, cooldown and who reads."""
        return await self.call("GET", "/v1/candidates/settings", None, "learning:LearningSettings")

    async def get_candidate(self, candidate_id: str) -> ShownCandidate:
        """One candidate: evidence, and what accepting would do."""
        return await self.call(
            "GET", f"/v1/candidates/{part(candidate_id)}", None, "learning:ShownCandidate"
        )

    async def accept_candidate(self, candidate_id: str, *, text: str = "") -> Candidate:
        """Accept it, which does it."""
        return await self.call(
            "POST",
            f"/v1/candidates/{part(candidate_id)}/accept",
            sent({"text": text}, {"text": ""}),
            "runs:Candidate",
        )

    async def reject_candidate(self, candidate_id: str, *, reason: str = "") -> Candidate:
        """Reject it permanently."""
        return await self.call(
            "POST",
            f"/v1/candidates/{part(candidate_id)}/reject",
            sent({"reason": reason}, {"reason": ""}),
            "runs:Candidate",
        )

    async def roll_back_candidate(self, candidate_id: str) -> Candidate:
        """Roll back what was applied."""
        return await self.call(
            "POST", f"/v1/candidates/{part(candidate_id)}/rollback", {}, "runs:Candidate"
        )

    async def reflect_on_run(self, run_id: str) -> Reflected:
        """Look now for what can be learned from a run."""
        return await self.call("POST", f"/v1/runs/{part(run_id)}/reflect", {}, "runs:Reflected")

    async def list_schedules(self) -> ScheduleList:
        """Schedules, with their next times and what they may cost."""
        return await self.call("GET", "/v1/schedules", None, "schedules:ScheduleList")

    async def add_schedule(
        self,
        *,
        text: str,
        when: str,
        name: str = "",
        zone: str = "",
        overlap: Literal["queue", "replace", "skip"] = "skip",
        missed: Literal["catch_up", "skip"] | None = None,
        quiet: Quiet | None = None,
        scopes: Sequence[Subject] = (),
        ask: Literal["deny", "wait"] = "wait",
        model: str = "",
        workspace: str = "",
        fresh: bool = False,
    ) -> ShownSchedule:
        """Save a schedule; a webhook's secret is shown this once."""
        return await self.call(
            "POST",
            "/v1/schedules",
            sent(
                {
                    "text": text,
                    "when": when,
                    "name": name,
                    "zone": zone,
                    "overlap": overlap,
                    "missed": missed,
                    "quiet": quiet,
                    "scopes": scopes,
                    "ask": ask,
                    "model": model,
                    "workspace": workspace,
                    "fresh": fresh,
                },
                {
                    "name": "",
                    "zone": "",
                    "overlap": "skip",
                    "missed": None,
                    "quiet": None,
                    "scopes": (),
                    "ask": "wait",
                    "model": "",
                    "workspace": "",
                    "fresh": False,
                },
            ),
            "schedules:ShownSchedule",
        )

    async def preview_schedule(
        self,
        *,
        text: str,
        when: str,
        name: str = "",
        zone: str = "",
        overlap: Literal["queue", "replace", "skip"] = "skip",
        missed: Literal["catch_up", "skip"] | None = None,
        quiet: Quiet | None = None,
        scopes: Sequence[Subject] = (),
        ask: Literal["deny", "wait"] = "wait",
        model: str = "",
        workspace: str = "",
        fresh: bool = False,
    ) -> ShownSchedule:
        """What a schedule would be, saving nothing."""
        return await self.call(
            "POST",
            "/v1/schedules/preview",
            sent(
                {
                    "text": text,
                    "when": when,
                    "name": name,
                    "zone": zone,
                    "overlap": overlap,
                    "missed": missed,
                    "quiet": quiet,
                    "scopes": scopes,
                    "ask": ask,
                    "model": model,
                    "workspace": workspace,
                    "fresh": fresh,
                },
                {
                    "name": "",
                    "zone": "",
                    "overlap": "skip",
                    "missed": None,
                    "quiet": None,
                    "scopes": (),
                    "ask": "wait",
                    "model": "",
                    "workspace": "",
                    "fresh": False,
                },
            ),
            "schedules:ShownSchedule",
        )

    async def get_schedule(self, schedule_id: str) -> ShownSchedule:
        """One schedule, with what became of its last firings."""
        return await self.call(
            "GET", f"/v1/schedules/{part(schedule_id)}", None, "schedules:ShownSchedule"
        )

    async def change_schedule(
        self,
        schedule_id: str,
        *,
        text: str,
        when: str,
        name: str = "",
        zone: str = "",
        overlap: Literal["queue", "replace", "skip"] = "skip",
        missed: Literal["catch_up", "skip"] | None = None,
        quiet: Quiet | None = None,
        scopes: Sequence[Subject] = (),
        ask: Literal["deny", "wait"] = "wait",
        model: str = "",
        workspace: str = "",
        fresh: bool = False,
    ) -> ShownSchedule:
        """Give a schedule other words, times or rules; it keeps its history."""
        return await self.call(
            "PUT",
            f"/v1/schedules/{part(schedule_id)}",
            {
                "text": text,
                "when": when,
                "name": name,
                "zone": zone,
                "overlap": overlap,
                "missed": missed,
                "quiet": quiet,
                "scopes": scopes,
                "ask": ask,
                "model": model,
                "workspace": workspace,
                "fresh": fresh,
            },
            "schedules:ShownSchedule",
        )

    async def remove_schedule(self, schedule_id: str) -> Schedule:
        """Remove a schedule; runs that are under way go on."""
        return await self.call(
            "DELETE", f"/v1/schedules/{part(schedule_id)}", None, "schedules:Schedule"
        )

    async def pause_schedule(self, schedule_id: str) -> ShownSchedule:
        """Do not fire until it is resumed."""
        return await self.call(
            "POST", f"/v1/schedules/{part(schedule_id)}/pause", {}, "schedules:ShownSchedule"
        )

    async def resume_schedule(self, schedule_id: str) -> ShownSchedule:
        """Fire again from now on."""
        return await self.call(
            "POST", f"/v1/schedules/{part(schedule_id)}/resume", {}, "schedules:ShownSchedule"
        )

    async def run_schedule(self, schedule_id: str) -> Firing:
        """Fire now."""
        return await self.call(
            "POST", f"/v1/schedules/{part(schedule_id)}/run", {}, "schedules:Firing"
        )

    async def call_schedule_hook(
        self, schedule_id: str, data: bytes, media: str = "application/json"
    ) -> Called:
        """Call a webhook, signed."""
        return await self.upload(
            "POST", f"/v1/hooks/{part(schedule_id)}", None, data, media, "schedules:Called"
        )

    async def list_channels(self) -> ChannelList:
        """Channels: their connections, rules and counts."""
        return await self.call("GET", "/v1/channels", None, "channels:ChannelList")

    async def save_channel(
        self, *, name: str, kind: str, settings: dict[str, str] | None = None
    ) -> ChannelStatus:
        """Add a channel, or change its settings; secrets go into the vault."""
        return await self.call(
            "POST",
            "/v1/channels",
            sent({"name": name, "kind": kind, "settings": settings}, {"settings": None}),
            "channels:ChannelStatus",
        )

    async def remove_channel(self, channel: str) -> ChannelList:
        """Remove a channel; what was said there stays."""
        return await self.call(
            "DELETE", f"/v1/channels/{part(channel)}", None, "channels:ChannelList"
        )

    async def list_channel_kinds(self) -> ChannelsKindList:
        """Kinds of channels and what each needs."""
        return await self.call("GET", "/v1/channels/kinds", None, "channels:ChannelsKindList")

    async def list_channel_messages(
        self,
        *,
        channel: str = "",
        state: Literal["", "answered", "failed", "held", "queued", "received", "refused"] = "",
        before: int = 0,
        limit: int = 100,
    ) -> MessagePage:
        """Messages that came in, newest first."""
        return await self.call(
            "GET",
            "/v1/channels/messages",
            sent(
                {"channel": channel, "state": state, "before": before, "limit": limit},
                {"channel": "", "state": "", "before": 0, "limit": 100},
            ),
            "channels:MessagePage",
        )

    async def trace_message(self, *, of: str) -> Trace:
        """What happened to a message, step by step."""
        return await self.call("GET", "/v1/channels/trace", {"of": of}, "channels:Trace")

    async def list_dead_letters(self, *, channel: str = "") -> DeadLetters:
        """Replies that could not be delivered."""
        return await self.call(
            "GET",
            "/v1/channels/dead",
            sent({"channel": channel}, {"channel": ""}),
            "channels:DeadLetters",
        )

    async def replay_dead_letter(self, reply_id: str) -> DeadLetters:
        """Send such a reply again."""
        return await self.call(
            "POST", f"/v1/channels/dead/{part(reply_id)}/replay", {}, "channels:DeadLetters"
        )

    async def drop_dead_letter(self, reply_id: str) -> DeadLetters:
        """Give such a reply up."""
        return await self.call(
            "POST", f"/v1/channels/dead/{part(reply_id)}/drop", {}, "channels:DeadLetters"
        )

    async def list_pairings(self) -> PairingList:
        """Who waits to be admitted."""
        return await self.call("GET", "/v1/channels/pairings", None, "channels:PairingList")

    async def settle_pairing(
        self, *, which: str, verb: Literal["approve", "deny"], for_ms: int = 0
    ) -> Settled:
        """Admit somebody, or do not."""
        return await self.call(
            "POST",
            "/v1/channels/pairings",
            sent({"which": which, "verb": verb, "for_ms": for_ms}, {"for_ms": 0}),
            "channels:Settled",
        )

    async def invite(self, *, channel: str, for_ms: int = 0) -> Invitation:
        """A code that admits the first person who sends it."""
        return await self.call(
            "POST",
            "/v1/channels/invitations",
            sent({"channel": channel, "for_ms": for_ms}, {"for_ms": 0}),
            "channels:Invitation",
        )

    async def list_people(self, *, channel: str = "") -> People:
        """Who has written, who is paired, whose identity they are."""
        return await self.call(
            "GET",
            "/v1/channels/people",
            sent({"channel": channel}, {"channel": ""}),
            "channels:People",
        )

    async def change_person(
        self, *, channel: str, sender: str, verb: Literal["link", "revoke"], principal: str = ""
    ) -> Person:
        """Take a pairing back, or link an identity to a user."""
        return await self.call(
            "POST",
            "/v1/channels/people",
            sent(
                {"channel": channel, "sender": sender, "verb": verb, "principal": principal},
                {"principal": ""},
            ),
            "channels:Person",
        )

    async def route_approval(
        self, approval_id: str, *, principal: str = "", channel: str = "", conversation: str = ""
    ) -> Approval:
        """Hand an approval on to somebody else."""
        return await self.call(
            "POST",
            f"/v1/channels/approvals/{part(approval_id)}/route",
            sent(
                {"principal": principal, "channel": channel, "conversation": conversation},
                {"principal": "", "channel": "", "conversation": ""},
            ),
            "approvals:Approval",
        )

    async def pause_channels(self, *, paused: bool) -> ChannelList:
        """Refuse everything on all channels, or go on."""
        return await self.call(
            "POST", "/v1/channels/router", {"paused": paused}, "channels:ChannelList"
        )

    async def get_channel(self, channel: str) -> ChannelStatus:
        """One channel."""
        return await self.call(
            "GET", f"/v1/channels/{part(channel)}", None, "channels:ChannelStatus"
        )

    async def change_channel(
        self, channel: str, *, verb: Literal["pause", "reconnect", "resume"]
    ) -> ChannelStatus:
        """Pause, resume or reconnect a channel."""
        return await self.call(
            "POST", f"/v1/channels/{part(channel)}", {"verb": verb}, "channels:ChannelStatus"
        )

    async def change_channel_rules(self, channel: str, *, changes: dict[str, Any]) -> ChannelStatus:
        """Change rules, from now on."""
        return await self.call(
            "PATCH",
            f"/v1/channels/{part(channel)}/rules",
            {"changes": changes},
            "channels:ChannelStatus",
        )

    async def preview_channel_message(
        self,
        channel: str,
        *,
        sender: str,
        text: str = "",
        conversation: str = "preview",
        thread: str = "",
        direct: bool = False,
        everyone: bool = False,
        files: int = 0,
        verified: bool = True,
    ) -> ShapesPreview:
        """What would become of a message, doing nothing."""
        return await self.call(
            "POST",
            f"/v1/channels/{part(channel)}/preview",
            sent(
                {
                    "sender": sender,
                    "text": text,
                    "conversation": conversation,
                    "thread": thread,
                    "direct": direct,
                    "everyone": everyone,
                    "files": files,
                    "verified": verified,
                },
                {
                    "text": "",
                    "conversation": "preview",
                    "thread": "",
                    "direct": False,
                    "everyone": False,
                    "files": 0,
                    "verified": True,
                },
            ),
            "channels:ShapesPreview",
        )

    async def test_channel(
        self, channel: str, *, conversation: str = "", text: str = "This is a test message."
    ) -> Tested:
        """Ask the platform who we are; send a test message."""
        return await self.call(
            "POST",
            f"/v1/channels/{part(channel)}/test",
            sent(
                {"conversation": conversation, "text": text},
                {"conversation": "", "text": "This is a test message."},
            ),
            "channels:Tested",
        )

    async def call_channel_hook(
        self, channel: str, data: bytes, media: str = "application/json"
    ) -> None:
        """The door for a platform that calls; its connector checks who it is."""
        await self.upload("POST", f"/v1/channels/{part(channel)}/hook", None, data, media, "")

    async def diagnose(self, *, deep: bool = False) -> Diagnosis:
        """What is well and what is not, with a fix for each."""
        return await self.call(
            "GET", "/v1/doctor", sent({"deep": deep}, {"deep": False}), "health:Diagnosis"
        )

    async def repair(self, *, id: str = "") -> Repaired:
        """Repair one check, or all that can be."""
        return await self.call(
            "POST", "/v1/doctor/repair", sent({"id": id}, {"id": ""}), "health:Repaired"
        )

    async def watchdog_status(self) -> Watching:
        """How watchful the daemon is, and when it looked last."""
        return await self.call("GET", "/v1/healing", None, "health:Watching")

    async def load_history(self) -> Load:
        """Processor, memory, disk, queue and journal over the last hours."""
        return await self.call("GET", "/v1/load", None, "load:Load")

    async def list_incidents(
        self, *, open: bool | None = None, before: str = "", limit: int = 100
    ) -> IncidentList:
        """What went wrong with the daemon, and what was tried."""
        return await self.call(
            "GET",
            "/v1/incidents",
            sent(
                {"open": open, "before": before, "limit": limit},
                {"open": None, "before": "", "limit": 100},
            ),
            "health:IncidentList",
        )

    async def get_incident(self, incident_id: str) -> Incident:
        """One incident."""
        return await self.call("GET", f"/v1/incidents/{part(incident_id)}", None, "health:Incident")

    async def list_notices(
        self, *, unread: bool | None = None, before: str = "", limit: int = 100
    ) -> NoticeList:
        """What the caller was told without asking, newest first."""
        return await self.call(
            "GET",
            "/v1/notices",
            sent(
                {"unread": unread, "before": before, "limit": limit},
                {"unread": None, "before": "", "limit": 100},
            ),
            "health:NoticeList",
        )

    async def read_notices(self, *, notice_id: str = "") -> MarkedRead:
        """Mark one notice as read, or all."""
        return await self.call(
            "POST",
            "/v1/notices/read",
            sent({"notice_id": notice_id}, {"notice_id": ""}),
            "health:MarkedRead",
        )

    async def send_mcp(self, data: bytes) -> RpcAnswer:
        """MCP: one message of a client (streamable HTTP)."""
        return await self.upload("POST", "/mcp", None, data, "application/json", "mcp:RpcAnswer")

    def mcp_events(self) -> AsyncIterator[ServerSentEvent]:
        """MCP: take up a stream that broke: the events as they come."""
        return self.events("GET", "/mcp", None)

    async def end_mcp_session(self) -> None:
        """MCP: end a session; its runs go on."""
        await self.call("DELETE", "/mcp", None, "")
