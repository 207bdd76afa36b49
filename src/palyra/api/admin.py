"""Tokens, browser sessions and policy over HTTP: what changes who may do what. Every change is on
the system tape.

Restarting the daemon over HTTP, the hard way: it ends at once, as in a power cut, and starts
again in the same place.

What was under way goes on from the journal. That it was asked for is recorded before.
"""

import asyncio
from typing import Any

from msgspec import Struct

from palyra.agent.authorize import complete
from palyra.agent.gateway import Gateway
from palyra.agent.ports import SkillIndex
from palyra.agent.sessions import Sessions
from palyra.api.auth import BROWSER_MS, Access
from palyra.api.calls import ApiCall, Count, DaemonInfo, HttpResponse, Input, Nothing, Ulid, ok
from palyra.api.guard import COOKIE, split
from palyra.api.routes import Gives, Route
from palyra.core.call_values import NO_VALUES
from palyra.core.errors import Conflict, InvalidInput, Unauthenticated
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.labels import CLEAN
from palyra.core.services import Services
from palyra.core.verdicts import Origin, Question, SessionRule
from palyra.policy import store as change_log
from palyra.policy.sources import PolicyProblem
from palyra.policy.store import PolicyStore, ShadowSlot
from palyra.store import session_rules, tape
from palyra.store.database import Database
from palyra.store.tokens import Token, TokenScope
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue


class Restart(Input, frozen=True, kw_only=True):
    """`started_ms`: when the daemon that shall end was started, as its status says. Asking twice
    then restarts it once.
    """

    started_ms: Count


async def restart(call: ApiCall[Nothing, Restart]) -> HttpResponse:
    if call.body.started_ms != call.services.get(DaemonInfo).started_ms:
        raise Conflict(
            "this is not the daemon that was to be restarted: look at its status again",
            started_ms=call.services.get(DaemonInfo).started_ms,
        )
    asked = AdminChanged(what="config", action="restarted", details={"hard": True})
    await call.services.get(Database).write(
        lambda tx: tape.append(tx, SYSTEM_TAPE, call.principal, [asked])
    )
    call.services.get(DaemonInfo).restart()
    return HttpResponse(202, b"{}")


RESTARTING: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/restart",
        summary="end at once, as in a power cut, and start again; what runs goes on",
        handler=restart,
        scope="owner",
        body=Restart,
        gives=(Gives(202, Nothing),),
        errors=(409,),
    ),
)


class NewToken(Input, frozen=True, kw_only=True):
    """`expires_ms`: a time, 0 for never. `workspace`: the only folder of a client; empty for the
    daemon's default workspace.
    """

    name: str
    scope: TokenScope
    expires_ms: Count = 0
    workspace: str = ""


class MadeToken(Struct, frozen=True):
    """`token` is shown this once and kept nowhere."""

    token: str
    info: Token


class TokenList(Struct, frozen=True):
    tokens: list[Token]


class LoginLink(Struct, frozen=True):
    url: str


class Login(Input, frozen=True, kw_only=True):
    code: str


class Rule(Struct, frozen=True):
    id: str
    effect: str
    reason: str
    file: str
    line: int


class PolicyInForce(Struct, frozen=True):
    version: str
    preset: str
    folder: str
    policies: list[Rule]
    problems: list[PolicyProblem]


class Explain(Input, frozen=True, kw_only=True):
    """A call that nobody makes, to see how it would be decided."""

    tool: str
    arguments: dict[str, Any]
    session_id: Ulid | None = None
    origin: Origin = "interactive"


async def list_tokens(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(TokenList(await call.services.get(Access).listing()))


async def create_token(call: ApiCall[Nothing, NewToken]) -> HttpResponse:
    body = call.body
    if body.workspace and body.scope != "client":
        raise InvalidInput(
            "only a token of scope client is bound to a workspace, and this one is to be"
            f" {body.scope}"
        )
    workspace = await asyncio.to_thread(call.services.get(Sessions).workspace, body.workspace)
    secret, token = await call.services.get(Access).mint(
        call.principal,
        body.name,
        body.scope,
        principal=call.principal,
        expires_ms=body.expires_ms,
        workspace=workspace,
    )
    return ok(MadeToken(secret, token), 201)


async def revoke_token(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Access).revoke(call.principal, call.path["token_id"]))


async def login_link(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    code = call.services.get(Access).login_code(call.principal)
    return ok(LoginLink(f"{_base(call)}/login?code={code}"))


async def login(call: ApiCall[Login, Nothing]) -> HttpResponse:
    try:
        secret, _ = await call.services.get(Access).redeem(call.query.code, call.address)
    except Unauthenticated:
        if b"text/html" in call.headers.get(b"accept", b""):
            # A person is shown what to do by the console; a program gets the error.
            return HttpResponse(303, headers=((b"location", b"/#/login/used"),))
        raise
    cookie, key = split(secret)
    # What stands behind a # is for the page: it is never sent to a server.
    location = f"/#key={key}".encode()
    return HttpResponse(
        303,
        headers=(
            (b"location", location),
            (b"set-cookie", _cookie(call, cookie, BROWSER_MS // 1000)),
        ),
    )


async def logout(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    """End the browser's session. A token that was made for a program stays good: it is revoked by
    its id.
    """
    if call.by_cookie:
        await call.services.get(Access).revoke(call.principal, call.token.token_id)
    return HttpResponse(204, headers=((b"set-cookie", _cookie(call, "", 0)),))


def _cookie(call: ApiCall[Any, Any], value: str, seconds: int) -> bytes:
    secure = "; Secure" if _has_tls(call) else ""
    return (
        f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}".encode()
    )


def _base(call: ApiCall[Any, Any]) -> str:
    """Return where the caller reaches us. With TLS of our own they may be elsewhere: then by the
    name that they used, on HTTP's port.
    """
    if not _has_tls(call):
        return call.services.get(DaemonInfo).url
    name = call.headers[b"host"].decode("latin-1")
    if not name.endswith("]"):
        name = name.rpartition(":")[0] or name
    return f"https://{name}:{call.services.get(DaemonInfo).url.rpartition(':')[2]}"


def _has_tls(call: ApiCall[Any, Any]) -> bool:
    return call.services.get(DaemonInfo).url.startswith("https:")


async def policy(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    from palyra.policy.store import check

    store = call.services.get(PolicyStore)
    problems = await asyncio.to_thread(check, store.folder, store.preset)
    rules = [
        Rule(rule.id, rule.effect, rule.reason, rule.file, rule.line)
        for rule in store.current.rules
    ]
    return ok(PolicyInForce(store.version, store.preset, str(store.folder or ""), rules, problems))


async def explain(call: ApiCall[Nothing, Explain]) -> HttpResponse:
    question = await question_of(call.services, call.principal, call.body)
    return ok(call.services.get(PolicyStore).explain(question))


async def question_of(services: Services, principal: str, body: Explain) -> Question:
    """Return what policy would be asked about a call that nobody makes."""
    tool, arguments, normal = services.get(Catalogue).parse(body.tool, body.arguments)
    workspace, channel, laid_down = (
        services.get(Sessions).default_workspace,
        "",
        tuple[SessionRule, ...](),
    )
    if body.session_id is not None:
        session = await services.get(Sessions).get(principal, body.session_id)
        workspace, channel = session.workspace, session.channel
        laid_down = await services.get(Database).read(
            lambda tx: session_rules.laid_down(tx, session.session_id)
        )
    if not workspace:
        raise InvalidInput("there is no workspace to judge this in: name a session that has one")
    scope = await asyncio.to_thread(tool.scope, arguments, workspace)
    label, values = CLEAN, NO_VALUES
    if body.session_id is not None:
        label, values = await services.get(Gateway).would_ask(
            body.session_id, tool.spec, normal, workspace, scope
        )
    if label == CLEAN and (skills := services.find(SkillIndex)) is not None:
        # What the model would be shown before it proposes anything.
        label = skills.index().label
    question = Question(
        principal=principal,
        session_id=body.session_id or services.get(Clock).new_id(),
        tool=tool.spec,
        scope=scope,
        origin=body.origin,
        now_ms=services.get(Clock).now_ms(),
        label=label,
        channel=channel,
        rules=laid_down,
        values=values,
    )
    return complete(question)


async def reload(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    services = call.services
    reloaded = await asyncio.to_thread(services.get(PolicyStore).reload)
    texts = services.get(PolicyStore).current.texts
    await change_log.record(services.get(Database), call.principal, reloaded, texts)
    if (shadow := services.get(ShadowSlot).current) is not None:
        tried = await asyncio.to_thread(shadow.reload)
        await change_log.record(services.get(Database), call.principal, tried)
    return ok(reloaded)


async def reload_config(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(DaemonInfo).reload_config())
