"""Every endpoint of the API, in one table."""

from typing import Any

from palyra.agent.approvals import Answer as ApprovalAnswer
from palyra.agent.approvals import ApprovalDraft, ApprovalPreview
from palyra.agent.gateway import Stopped, Submission, Submitted
from palyra.agent.session_rules import ShownRule
from palyra.agent.sessions import Resolve
from palyra.agent.settings import ConfigReloaded
from palyra.api import about, admin, journal, policy_tools, runs, sessions, watch, websocket
from palyra.api.backups import BACKUPS
from palyra.api.calls import METRICS, NDJSON, SSE, Nothing
from palyra.api.console import CONSOLE
from palyra.api.policy_files import POLICY_FILES
from palyra.api.restart import RESTARTING
from palyra.api.routes import Gives, Route
from palyra.core.events import Entry
from palyra.features.budgets.routes import USAGE
from palyra.features.channels.http import CHANNELS
from palyra.features.compaction.routes import COMPACTION
from palyra.features.health.routes import HEALTH
from palyra.features.learning.routes import LEARNING
from palyra.features.mcp import http as mcp_http
from palyra.features.mcp.model import ServerStatus
from palyra.features.mcp_server import endpoint as mcp_door
from palyra.features.memory.routes import MEMORY
from palyra.features.memory.transcripts import SaidPage
from palyra.features.openai_api.http import OPENAI
from palyra.features.project_notes.http import NOTES
from palyra.features.references.http import ENCLOSURES
from palyra.features.retention.http import RETENTION
from palyra.features.schedules.http import SCHEDULES
from palyra.features.setup.http import SETUP
from palyra.features.skills.routes import SKILLS
from palyra.features.subagents.http import AGENTS
from palyra.features.tasks.http import TASKS
from palyra.features.time_travel.replay_routes import REPLAY
from palyra.features.time_travel.routes import TRAVEL
from palyra.features.time_travel.undo import Undo, Undone
from palyra.features.tls.http import TLS
from palyra.features.vault import http as vault_http
from palyra.features.vault.rows import Secret
from palyra.features.vault.rules import NewSecret
from palyra.features.vault.service import VaultState
from palyra.features.workers.http import WORKERS
from palyra.policy.explain import Explanation
from palyra.policy.reports import Report, Shadowed, Suggestion
from palyra.policy.store import Reloaded
from palyra.store.approvals import Approval
from palyra.store.runs import RunRow
from palyra.store.sessions import Session
from palyra.store.tokens import Token, TokenScope

# The least any token may do: connectors and workers stand at the bottom.
ANY_TOKEN: TokenScope = "worker"
_ANY_MEDIA = b"*/*"
_SESSION = "/v1/sessions/{session_id}"
_CURSOR = ("Last-Event-ID", "the id of the last event that arrived; wins over `after`")


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


_OPEN: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/healthz",
        summary="whether the process is alive",
        handler=about.healthz,
        scope=None,
        # Whoever else calls from the same address must not make a probe believe that the daemon is
        # dead.
        counted=False,
        gives=_json(about.Health),
    ),
    Route(
        method="GET",
        path="/readyz",
        summary="whether the daemon can do its work",
        handler=about.readyz,
        scope=None,
        gives=(Gives(200, about.Ready), Gives(503, about.Ready)),
    ),
    Route(
        method="GET",
        path="/login",
        summary="open a browser session with a one-time code",
        handler=admin.login,
        once=True,
        scope=None,
        query=admin.Login,
        gives=(Gives(303),),
        errors=(401,),
    ),
)
_SESSIONS: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/sessions",
        summary="find a session, or make one",
        handler=sessions.resolve,
        client=True,
        scope="operator",
        body=Resolve,
        gives=(Gives(201, Session), Gives(200, Session)),
        errors=(404, 409),
    ),
    Route(
        method="GET",
        path="/v1/sessions",
        summary="sessions, last used first",
        handler=sessions.listing,
        client=True,
        query=sessions.SessionListQuery,
        gives=_json(sessions.SessionPage),
    ),
    Route(
        method="GET",
        path="/v1/sessions/search",
        summary="what was said in sessions, by words and meaning",
        handler=sessions.search,
        query=sessions.SessionSearchQuery,
        gives=_json(SaidPage),
    ),
    Route(
        method="GET",
        path=_SESSION,
        summary="one session",
        handler=sessions.get,
        client=True,
        gives=_json(Session),
    ),
    Route(
        method="PATCH",
        path=_SESSION,
        summary="rename, archive, unarchive",
        handler=sessions.change,
        client=True,
        scope="operator",
        body=sessions.SessionChange,
        gives=_json(Session),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/reset",
        summary="begin the conversation anew; the tape stays",
        handler=sessions.reset,
        client=True,
        scope="operator",
        body=Nothing,
        gives=_json(Session),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/branch",
        summary="a new session that continues from an entry of this one",
        handler=sessions.branch,
        client=True,
        scope="operator",
        body=sessions.Branch,
        gives=_json(Session, 201),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/entries",
        summary="entries of the tape behind a cursor",
        handler=sessions.entries,
        client=True,
        query=sessions.EntriesQuery,
        gives=_json(sessions.EntryPage),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/events",
        summary="watch: stored entries behind a cursor, then everything as it happens",
        handler=watch.session_events,
        client=True,
        query=watch.Watch,
        gives=(Gives(200, media=SSE),),
        headers=(_CURSOR,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/ws",
        summary="watch and act over a WebSocket",
        handler=websocket.not_upgraded,
        client=True,
        query=watch.WatchAll,
        gives=(Gives(101),),
        errors=(426,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/messages",
        summary="submit an input; a run answers it",
        handler=sessions.messages,
        client=True,
        scope="operator",
        body=Submission,
        gives=_json(Submitted, 202),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/runs",
        summary="runs of a session, newest first",
        handler=sessions.runs_of,
        client=True,
        query=sessions.RunsQuery,
        gives=_json(sessions.RunPage),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/undo",
        summary="take effects back",
        handler=sessions.undo,
        scope="operator",
        body=Undo,
        gives=_json(Undone),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/artifacts/{{artifact_id}}",
        summary="a large result, as it was stored",
        handler=sessions.artifact,
        client=True,
        query=sessions.ArtifactName,
        gives=(Gives(200, media=_ANY_MEDIA),),
    ),
    Route(
        method="GET",
        path="/v1/events",
        summary="watch all of the caller's sessions, and that something else has changed",
        handler=watch.all_events,
        query=watch.WatchAll,
        gives=(Gives(200, media=SSE),),
        headers=(_CURSOR,),
    ),
)
_RUNS: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/runs/{run_id}",
        summary="one run",
        handler=runs.get,
        client=True,
        gives=_json(RunRow),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run_id}/tokens",
        summary="what the prompts of a run were made of",
        handler=runs.tokens,
        client=True,
        gives=_json(runs.TokenBill),
    ),
    Route(
        method="POST",
        path="/v1/runs/{run_id}/cancel",
        summary="end a run, in whatever state it is",
        handler=runs.cancel,
        client=True,
        scope="operator",
        body=runs.Cancel,
        gives=_json(RunRow),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/stop",
        summary="STOP: end everything that runs or waits",
        handler=runs.stop,
        scope="operator",
        body=Nothing,
        gives=_json(Stopped),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/approvals",
        summary="what waits for an answer, and what was answered",
        handler=runs.listing,
        query=runs.ApprovalsQuery,
        gives=_json(runs.ApprovalPage),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/approvals/{approval_id}",
        summary="one approval",
        handler=runs.approval,
        gives=_json(Approval),
    ),
    Route(
        method="POST",
        path="/v1/approvals/{approval_id}/preview",
        summary="all of what a pending call would do, as proposed or with edited arguments",
        handler=runs.preview,
        scope="operator",
        body=ApprovalDraft,
        gives=_json(ApprovalPreview),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/approvals/{approval_id}/answer",
        summary="answer; the first answer wins",
        handler=runs.answer,
        scope="operator",
        body=ApprovalAnswer,
        gives=_json(Approval),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/grants",
        summary="what was allowed more widely than once",
        handler=runs.grants,
        gives=_json(runs.GrantList),
    ),
    Route(
        method="DELETE",
        path="/v1/grants/{approval_id}",
        summary="take such a permission back",
        handler=runs.remove_grant,
        scope="operator",
        gives=(Gives(204),),
    ),
)
_JOURNAL: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/journal/entries/{position}",
        summary="one entry by its place in the journal",
        handler=journal.entry,
        scope="owner",
        gives=_json(Entry),
    ),
    Route(
        method="GET",
        path="/v1/journal/verify",
        summary="check every entry; names the first bad one",
        handler=journal.verify,
        gives=(Gives(200, journal.Verified), Gives(200, media=SSE)),
        headers=(
            ("Accept", "`text/event-stream` for events `progress` and, at the end, `report`"),
        ),
    ),
    Route(
        method="GET",
        path="/v1/journal/export",
        summary="entries, one a line",
        handler=journal.export,
        scope="owner",
        query=journal.Export,
        gives=(Gives(200, media=NDJSON),),
        errors=(404,),
    ),
)
_ABOUT: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/metrics",
        summary="metrics as Prometheus text",
        handler=about.metrics,
        gives=(Gives(200, media=METRICS),),
    ),
    Route(
        method="GET",
        path="/v1/status",
        summary="what the daemon is and does",
        handler=about.status,
        client=True,
        gives=_json(about.Status),
    ),
    Route(
        method="GET",
        path="/v1/tools",
        summary="tools the agent has",
        handler=about.tools,
        gives=_json(about.ToolList),
    ),
)
_ADMIN: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/policy",
        summary="the policies in force",
        handler=admin.policy,
        gives=_json(admin.PolicyInForce),
    ),
    Route(
        method="POST",
        path="/v1/policy/explain",
        summary="how a call would be decided, and why",
        handler=admin.explain,
        body=admin.Explain,
        gives=_json(Explanation),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/policy/reload",
        summary="read the policy folder again",
        handler=admin.reload,
        scope="owner",
        body=Nothing,
        gives=_json(Reloaded),
    ),
    Route(
        method="POST",
        path="/v1/config/reload",
        summary="read the config file again and apply what can be applied",
        handler=admin.reload_config,
        scope="owner",
        body=Nothing,
        gives=_json(ConfigReloaded),
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        summary="tokens, also revoked ones",
        handler=admin.list_tokens,
        scope="owner",
        gives=_json(admin.TokenList),
    ),
    Route(
        method="POST",
        path="/v1/tokens",
        summary="make a token",
        handler=admin.create_token,
        scope="owner",
        body=admin.NewToken,
        gives=_json(admin.MadeToken, 201),
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{token_id}",
        summary="revoke a token, at once",
        handler=admin.revoke_token,
        scope="owner",
        gives=_json(Token),
    ),
    Route(
        method="POST",
        path="/v1/login-links",
        summary="a link that logs a browser in, once, within ten minutes",
        handler=admin.login_link,
        scope="owner",
        body=Nothing,
        gives=_json(admin.LoginLink),
    ),
    Route(
        method="POST",
        path="/v1/logout",
        summary="end the browser's session",
        handler=admin.logout,
        scope=ANY_TOKEN,
        body=Nothing,
        gives=(Gives(204),),
    ),
)
_VAULT: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/vault",
        summary="what secrets there are; never their values",
        handler=vault_http.look,
        scope="owner",
        gives=_json(VaultState),
    ),
    Route(
        method="POST",
        path="/v1/vault",
        summary="store a secret, also in place of the one that has its name",
        handler=vault_http.put,
        scope="owner",
        body=NewSecret,
        gives=_json(Secret),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/vault",
        summary="remove a secret",
        handler=vault_http.remove,
        scope="owner",
        query=vault_http.Which,
        gives=(Gives(204),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/vault/rotate",
        summary="give a secret another value",
        handler=vault_http.rotate,
        scope="owner",
        body=vault_http.NewValue,
        gives=_json(Secret),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/vault/rotate-key",
        summary="seal every secret anew under a new master key",
        handler=vault_http.rotate_key,
        scope="owner",
        body=Nothing,
        gives=_json(vault_http.KeyRotated),
        errors=(409,),
    ),
)
_MCP: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/mcp",
        summary="MCP servers: their state, their tools, what waits for a yes",
        handler=mcp_http.listing,
        gives=_json(mcp_http.ServerList),
    ),
    Route(
        method="POST",
        path="/v1/mcp/{server}/accept",
        summary="offer what a server says of its tools now",
        handler=mcp_http.accept,
        scope="owner",
        body=mcp_http.Accept,
        gives=_json(ServerStatus),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/mcp/{server}/restart",
        summary="end a server and begin anew",
        handler=mcp_http.restart,
        scope="owner",
        body=Nothing,
        gives=_json(ServerStatus),
        errors=(409,),
    ),
)
_DECISIONS: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/policy/test",
        summary="decide every recorded call again under other policies",
        handler=policy_tools.test,
        scope="owner",
        query=policy_tools.Against,
        gives=(Gives(200, Report), Gives(200, media=SSE)),
        headers=(
            ("Accept", "`text/event-stream` for events `progress` and, at the end, `report`"),
        ),
    ),
    Route(
        method="GET",
        path="/v1/policy/suggest",
        summary="permits that would have spared approvals",
        scope="owner",
        handler=policy_tools.suggested,
        query=policy_tools.Since,
        gives=_json(Suggestion),
    ),
    Route(
        method="GET",
        path="/v1/policy/shadow",
        summary="what the shadow policies would have decided otherwise",
        scope="owner",
        handler=policy_tools.shadowed,
        query=policy_tools.Since,
        gives=_json(Shadowed),
    ),
    Route(
        method="GET",
        path="/v1/policy/explain",
        summary="how a recorded call was decided, and how it would be now",
        handler=policy_tools.explain_call,
        query=policy_tools.WhichCall,
        gives=_json(policy_tools.ExplainedCall),
        errors=(404,),
    ),
)
_RULES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path=f"{_SESSION}/rules",
        summary="the rules of a session",
        handler=policy_tools.list_rules,
        gives=_json(policy_tools.RuleList),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/rules",
        summary="lay a rule down, in plain words",
        handler=policy_tools.add_rule,
        scope="operator",
        body=policy_tools.NewRule,
        gives=_json(ShownRule, 201),
    ),
    Route(
        method="DELETE",
        path=f"{_SESSION}/rules",
        summary="remove a rule",
        handler=policy_tools.remove_rule,
        scope="operator",
        query=policy_tools.WhichRule,
        gives=_json(ShownRule),
    ),
)

_ROWS: tuple[Route[Any, Any], ...] = (
    *CONSOLE,
    *_OPEN,
    *_SESSIONS,
    *_RUNS,
    *_JOURNAL,
    *BACKUPS,
    *_ABOUT,
    *OPENAI,
    *USAGE,
    *WORKERS,
    *_ADMIN,
    *_VAULT,
    *ENCLOSURES,
    *MEMORY,
    *LEARNING,
    *SKILLS,
    *NOTES,
    *_MCP,
    *_DECISIONS,
    *POLICY_FILES,
    *SETUP,
    *_RULES,
    *TRAVEL,
    *AGENTS,
    *RETENTION,
    *REPLAY,
    *COMPACTION,
    *TASKS,
    *SCHEDULES,
    *HEALTH,
    *CHANNELS,
    *RESTARTING,
    *TLS,
)
# What the tools of the MCP server need is what the rows above need.
ROUTES: tuple[Route[Any, Any], ...] = (*_ROWS, *mcp_door.rows(_ROWS))
