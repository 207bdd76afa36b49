"""Every endpoint of the API, in one table."""

from typing import Any

from palyra.agent.gateway import Stopped
from palyra.agent.session_rules import ShownRule
from palyra.agent.sessions import Resolve
from palyra.agent.settings import ConfigReloaded
from palyra.agent.submit import Submission, Submitted
from palyra.api import (
    about,
    admin,
    approval_table,
    journal,
    policy_tools,
    runs,
    sessions,
    watch,
    websocket,
)
from palyra.api.admin import RESTARTING
from palyra.api.backups import BACKUPS
from palyra.api.calls import METRICS, NDJSON, SSE, Nothing
from palyra.api.console import CONSOLE
from palyra.api.policy_files import POLICY_FILES
from palyra.api.routes import Gives, Route, json_of
from palyra.api.run_control import RUN_CONTROL
from palyra.core.events import Entry
from palyra.policy.reports import Explanation, Report, Shadowed, Suggestion
from palyra.policy.store import Reloaded
from palyra.store.runs import RunRow
from palyra.store.sessions import Session
from palyra.store.tokens import Token, TokenScope

# The least any token may do: connectors and workers stand at the bottom.
ANY_TOKEN: TokenScope = "worker"
_ANY_MEDIA = b"*/*"
_SESSION = "/v1/sessions/{session_id}"
_CURSOR = ("Last-Event-ID", "the id of the last event that arrived; wins over `after`")


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
        gives=json_of(about.Health),
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
        gives=json_of(sessions.SessionPage),
    ),
    Route(
        method="GET",
        path=_SESSION,
        summary="one session",
        handler=sessions.get,
        client=True,
        gives=json_of(Session),
    ),
    Route(
        method="PATCH",
        path=_SESSION,
        summary="rename, archive, unarchive",
        handler=sessions.change,
        client=True,
        scope="operator",
        body=sessions.SessionChange,
        gives=json_of(Session),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/reset",
        summary="start the conversation over; the tape stays",
        handler=sessions.reset,
        client=True,
        scope="operator",
        body=Nothing,
        gives=json_of(Session),
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
        gives=json_of(Session, 201),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/entries",
        summary="entries of the tape behind a cursor",
        handler=sessions.entries,
        client=True,
        query=sessions.EntriesQuery,
        gives=json_of(sessions.EntryPage),
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
        gives=json_of(Submitted, 202),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/runs",
        summary="runs of a session, newest first",
        handler=sessions.runs_of,
        client=True,
        query=sessions.RunsQuery,
        gives=json_of(sessions.RunPage),
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
        path="/v1/runs",
        summary="runs of all sessions of the caller, newest first",
        handler=runs.recent,
        query=sessions.RunsQuery,
        gives=json_of(sessions.RunPage),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run_id}",
        summary="one run",
        handler=runs.get,
        client=True,
        gives=json_of(RunRow),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run_id}/tokens",
        summary="what the prompts of a run were made of",
        handler=runs.tokens,
        client=True,
        gives=json_of(runs.TokenBill),
    ),
    *RUN_CONTROL,
    Route(
        method="POST",
        path="/v1/stop",
        summary="STOP: end everything that runs or waits",
        handler=runs.stop,
        scope="operator",
        body=Nothing,
        gives=json_of(Stopped),
        errors=(409,),
    ),
    *approval_table.ROUTES,
)
_JOURNAL: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/journal/entries/{position}",
        summary="one entry by its place in the journal",
        handler=journal.entry,
        scope="owner",
        gives=json_of(Entry),
    ),
    Route(
        method="GET",
        path="/v1/journal/verify",
        summary="check every entry; names the first bad one",
        handler=journal.verify,
        query=journal.WantedVerify,
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
        gives=json_of(about.Status),
    ),
    Route(
        method="GET",
        path="/v1/tools",
        summary="tools the agent has",
        handler=about.tools,
        gives=json_of(about.ToolList),
    ),
)
_ADMIN: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/policy",
        summary="the policies in force",
        handler=admin.policy,
        gives=json_of(admin.PolicyInForce),
    ),
    Route(
        method="POST",
        path="/v1/policy/explain",
        summary="how a call would be decided, and why",
        handler=admin.explain,
        body=admin.Explain,
        gives=json_of(Explanation),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/policy/reload",
        summary="read the policy folder again",
        handler=admin.reload,
        scope="owner",
        body=Nothing,
        gives=json_of(Reloaded),
    ),
    Route(
        method="POST",
        path="/v1/config/reload",
        summary="read the config file again and apply what can be applied",
        handler=admin.reload_config,
        scope="owner",
        body=Nothing,
        gives=json_of(ConfigReloaded),
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        summary="tokens, also revoked ones",
        handler=admin.list_tokens,
        scope="owner",
        gives=json_of(admin.TokenList),
    ),
    Route(
        method="POST",
        path="/v1/tokens",
        summary="make a token",
        handler=admin.create_token,
        scope="owner",
        body=admin.NewToken,
        gives=json_of(admin.MadeToken, 201),
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{token_id}",
        summary="revoke a token, at once",
        handler=admin.revoke_token,
        scope="owner",
        gives=json_of(Token),
    ),
    Route(
        method="POST",
        path="/v1/login-links",
        summary="a link that logs a browser in, once, within ten minutes",
        handler=admin.login_link,
        scope="owner",
        body=Nothing,
        gives=json_of(admin.LoginLink),
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
        gives=json_of(Suggestion),
    ),
    Route(
        method="GET",
        path="/v1/policy/shadow",
        summary="what the shadow policies would have decided otherwise",
        scope="owner",
        handler=policy_tools.shadowed,
        query=policy_tools.Since,
        gives=json_of(Shadowed),
    ),
    Route(
        method="GET",
        path="/v1/policy/explain",
        summary="how a recorded call was decided, and how it would be now",
        handler=policy_tools.explain_call,
        query=policy_tools.WhichCall,
        gives=json_of(policy_tools.ExplainedCall),
        errors=(404,),
    ),
)
_RULES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path=f"{_SESSION}/rules",
        summary="the rules of a session",
        handler=policy_tools.list_rules,
        gives=json_of(policy_tools.RuleList),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/rules",
        summary="add a rule, in plain words",
        handler=policy_tools.add_rule,
        scope="operator",
        body=policy_tools.NewRule,
        gives=json_of(ShownRule, 201),
    ),
    Route(
        method="DELETE",
        path=f"{_SESSION}/rules",
        summary="remove a rule",
        handler=policy_tools.remove_rule,
        scope="operator",
        query=policy_tools.WhichRule,
        gives=json_of(ShownRule),
    ),
)

ROUTES: tuple[Route[Any, Any], ...] = (
    *CONSOLE,
    *_OPEN,
    *_SESSIONS,
    *_RUNS,
    *_JOURNAL,
    *BACKUPS,
    *_ABOUT,
    *_ADMIN,
    *_DECISIONS,
    *POLICY_FILES,
    *_RULES,
    *RESTARTING,
)
