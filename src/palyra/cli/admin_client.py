"""The daemon's verbs for its owner: status, usage, journal, policy and tokens over HTTP. Shapes as
in `client`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from palyra.cli.client import Model, checked
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.client.http import Api, ServerSentEvent
from palyra.core.errors import Unavailable
from palyra.core.events import Entry
from palyra.store.tokens import Token
from palyra.store.usage import UsageRow
from palyra.store.verify import Bad


class PolicyState(Struct, frozen=True):
    version: str
    preset: str


class Status(Struct, frozen=True, kw_only=True):
    version: str
    url: str = ""
    home: str = ""
    workspace: str = ""
    models: list[Model] = []
    policy: PolicyState | None = None
    tools: list[str] = []
    runs_working: int = 0
    watchers: int = 0
    entries: int = 0
    incidents: int = 0
    unread: int = 0
    notes: tuple[str, ...] = ()
    started_ms: int = 0
    uptime_ms: int = 0


class Verified(Struct, frozen=True, kw_only=True):
    ok: bool
    entries: int
    tapes: int
    bad: Bad | None = None
    pages: list[str] = []
    guards: list[str] = []


class BackedUp(Struct, frozen=True):
    path: str
    entries: int


class Rule(Struct, frozen=True):
    id: str
    effect: str
    reason: str
    file: str
    line: int


class Problem(Struct, frozen=True):
    file: str
    line: int
    message: str


class PolicyInForce(Struct, frozen=True):
    version: str
    preset: str
    folder: str
    policies: list[Rule]
    problems: list[Problem]


class Verdict(Struct, frozen=True):
    type: str
    reason: str
    policies: tuple[str, ...] = ()
    risk: str = ""


class Deciding(Struct, frozen=True):
    id: str
    action: str
    effect: str
    reason: str
    file: str
    line: int


class Explanation(Struct, frozen=True):
    verdict: Verdict
    version: str
    tool: str
    principal: str
    rules: tuple[Deciding, ...]
    errors: tuple[str, ...]
    facts: dict[str, Any]
    asked: tuple[str, ...] = ("run", "run_unattended")


class Reloaded(Struct, frozen=True):
    version: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class MadeToken(Struct, frozen=True):
    token: str
    info: Token


class _Tokens(Struct):
    tokens: list[Token]


class _Usage(Struct):
    usage: list[UsageRow]


class _Link(Struct):
    url: str


class _Progress(Struct):
    entries: int


def status(api: Api) -> Status:
    return api.get("/v1/status", Status)


def usage(
    api: Api, by: str, *, since_ms: int = 0, session_id: str = "", limit: int = 100
) -> list[UsageRow]:
    given = checked(session_id) if session_id else ""
    return api.get(
        "/v1/usage", _Usage, by=by, since_ms=since_ms, session_id=given, limit=limit
    ).usage


def entry(api: Api, position: int) -> Entry:
    return api.get(f"/v1/journal/entries/{position}", Entry)


def verify(api: Api) -> Iterator[int | Verified]:
    """Numbers of entries seen so far, then the report."""
    for message in api.messages("/v1/journal/verify"):
        if not isinstance(message, ServerSentEvent):
            continue
        if message.event == "progress":
            yield msgspec.json.decode(message.data, type=_Progress).entries
        elif message.event == "report":
            yield msgspec.json.decode(message.data, type=Verified)
            return
    raise Unavailable(
        "the daemon ended before the journal was verified: try again, or stop it and verify the"
        " file"
    )


def export(api: Api, session_id: str, after: int) -> Iterator[bytes]:
    """Entries as they stand on the tape, one a line."""
    path = f"/v1/journal/export?after={after}" + (
        f"&session_id={checked(session_id)}" if session_id else ""
    )
    with api.open(path, accept="application/x-ndjson") as response:
        while piece := response.read(1 << 16):
            yield piece


def backup(api: Api, name: str) -> BackedUp:
    return api.post("/v1/journal/backup", BackedUp, {"name": name} if name else {}, timeout_s=3_600)


def policy(api: Api) -> PolicyInForce:
    return api.get("/v1/policy", PolicyInForce)


def explain(
    api: Api, tool: str, arguments: dict[str, Any], *, session_id: str = "", origin: str = ""
) -> Explanation:
    body: dict[str, Any] = {"tool": tool, "arguments": arguments}
    if session_id:
        body["session_id"] = checked(session_id)
    if origin:
        body["origin"] = origin
    return api.post("/v1/policy/explain", Explanation, body)


class ConfigReloaded(Struct, frozen=True):
    live: tuple[str, ...] = ()
    after_restart: tuple[str, ...] = ()


def reload_config(api: Api) -> ConfigReloaded:
    return api.post("/v1/config/reload", ConfigReloaded)


def reload_if_running(state: CliState) -> bool:
    """Make a running daemon read the settings again; whether there is one."""
    if discovery.running(state.home) is None:
        return False
    reload_config(state.api)
    return True


def reload_policy(api: Api) -> Reloaded:
    return api.post("/v1/policy/reload", Reloaded)


def tokens(api: Api) -> list[Token]:
    return api.get("/v1/tokens", _Tokens).tokens


def create_token(
    api: Api, name: str, scope: str, expires_ms: int, workspace: str = ""
) -> MadeToken:
    body = {"name": name, "scope": scope, "expires_ms": expires_ms, "workspace": workspace}
    return api.post("/v1/tokens", MadeToken, {key: value for key, value in body.items() if value})


def revoke_token(api: Api, token_id: str) -> Token:
    return msgspec.json.decode(api.delete(f"/v1/tokens/{checked(token_id)}"), type=Token)


def login_link(api: Api) -> str:
    return api.post("/v1/login-links", _Link).url
