"""Facts about the daemon: health, status, models, tools, metrics, and the page at its address.

What the status page counts for features. A daemon without the feature counts nothing.
"""

import asyncio
from base64 import b64encode
from hashlib import sha256
from typing import Literal, Protocol

from msgspec import Struct

from palyra.agent.broadcast import Broadcast
from palyra.agent.runs import Runs
from palyra.agent.sessions import Sessions
from palyra.api.calls import HTML, METRICS, ApiCall, DaemonInfo, HttpResponse, Nothing, ok
from palyra.api.metrics import Metrics
from palyra.core.errors import PalyraError
from palyra.core.services import Services
from palyra.core.tools import ToolSpec
from palyra.models.routing import Models, Target
from palyra.models.text_tools.provider import mode_of
from palyra.policy.store import PolicyStore
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue


class OpenIncidents(Protocol):
    """Incidents that are not over."""

    @property
    def unrecorded(self) -> int:
        """Return how many the journal could not take yet."""

    def open_by_domain(self, tx: Tx) -> dict[str, int]: ...


class UnreadNotices(Protocol):
    """Notices that their reader has not seen."""

    def unread(self, tx: Tx, principal: str) -> int: ...


_LONGEST_READ_S = 3.0


class Health(Struct, frozen=True):
    status: Literal["ok"]
    version: str


class Ready(Struct, frozen=True):
    status: Literal["ready", "unavailable"]
    reason: str = ""


class ModelInfo(Struct, frozen=True):
    """Prices are in dollars for a million tokens; None: no price is known."""

    name: str
    provider: str
    model: str
    context_tokens: int
    default: bool
    healthy: bool
    vision: bool = True
    private: bool = True
    input_price: float | None = None
    output_price: float | None = None
    # How it gets its tools: native, text, none, or auto as long as nothing was found out.
    tools: str = "native"


class ToolList(Struct, frozen=True):
    tools: list[ToolSpec]


class PolicyState(Struct, frozen=True):
    version: str
    preset: str


class Status(Struct, frozen=True, kw_only=True):
    version: str
    url: str
    home: str
    workspace: str
    models: list[ModelInfo]
    policy: PolicyState
    tools: list[str]
    runs_working: int
    watchers: int
    entries: int
    # Incidents that are not over, and what the caller was told and has not read.
    incidents: int
    unread: int
    notes: tuple[str, ...]
    started_ms: int
    uptime_ms: int


async def healthz(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(Health("ok", call.services.get(DaemonInfo).version))


async def readyz(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    try:
        async with asyncio.timeout(_LONGEST_READ_S):
            await call.services.get(Database).read(tape.last_position)
        problem = await call.services.get(Database).problem()
    except PalyraError as error:
        problem = error.message
    except TimeoutError:
        problem = f"the journal could not be read within {_LONGEST_READ_S:g} s"
    return ok(Ready("unavailable", problem), 503) if problem else ok(Ready("ready"))


async def metrics(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return HttpResponse(200, await call.services.get(Metrics).text(), METRICS)


async def status(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    services = call.services

    incidents, notices = services.find(OpenIncidents), services.find(UnreadNotices)

    def query(tx: Tx) -> tuple[int, int, int]:
        return (
            tape.last_position(tx),
            sum(incidents.open_by_domain(tx).values()) if incidents else 0,
            notices.unread(tx, call.principal) if notices else 0,
        )

    entries, wrong, unread = await services.get(Database).read(query)
    return ok(
        Status(
            version=services.get(DaemonInfo).version,
            url=services.get(DaemonInfo).url,
            # A program has no use for where the daemon lives.
            home=str(services.get(DaemonInfo).home) if call.token.scope != "client" else "",
            workspace=call.token.workspace or services.get(Sessions).default_workspace,
            models=models_of(services),
            policy=PolicyState(services.get(PolicyStore).version, services.get(PolicyStore).preset),
            tools=[spec.name for spec in services.get(Catalogue).specs()],
            runs_working=services.get(Runs).working,
            watchers=services.get(Broadcast).watchers,
            entries=entries,
            incidents=wrong + (incidents.unrecorded if incidents else 0),
            unread=unread,
            notes=services.get(DaemonInfo).notes if call.token.scope != "client" else (),
            started_ms=services.get(DaemonInfo).started_ms,
            uptime_ms=services.get(Clock).now_ms() - services.get(DaemonInfo).started_ms,
        )
    )


def models_of(services: Services) -> list[ModelInfo]:
    models = services.get(Models)
    now_ms = services.get(Clock).now_ms()
    return [
        _about(target, models, default=at == 0, healthy=models.healthy(target, now_ms))
        for at, target in enumerate(models.targets)
    ]


def _about(target: Target, models: Models, *, default: bool, healthy: bool) -> ModelInfo:
    price = models.prices.of(target.provider, target.model).price
    return ModelInfo(
        target.name,
        target.provider,
        target.model,
        target.context_tokens,
        default,
        healthy,
        target.vision,
        target.private,
        # Prices are kept in billionths of a dollar for a token.
        price.input / 1_000 if price is not None else None,
        price.output / 1_000 if price is not None else None,
        mode_of(models.provider(target), target.model),
    )


async def tools(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ToolList(list(call.services.get(Catalogue).specs())))


_STYLE = """:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}
code{font:0.95em ui-monospace,monospace;padding:0.1em 0.3em;border-radius:0.3em;background:rgba(127,127,127,0.15)}"""  # noqa: E501
_PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Palyra</title><style>{_STYLE}</style></head>
<body><main><h1>Palyra is running</h1>
<p>Talk to it from a terminal: <code>palyra chat</code>, or <code>palyra ask "what is in this folder?"</code></p>
<p>What it is doing: <code>palyra status</code>. What waits for you: <code>palyra approvals</code>. Stop everything:
<code>palyra stop</code>.</p>
<p>The console is not built: <code>make run</code> or <code>python scripts/console.py</code> does that where npm can be
reached; then load this page again.</p>
<p>Programs use the <a href="/openapi.json">HTTP API</a> with a token from <code>palyra token create</code>.</p>
</main></body></html>
""".encode()  # noqa: E501
_CSP = (
    "default-src 'none'; style-src"
    f" 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'none'"
).encode()


async def page(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return HttpResponse(200, _PAGE, HTML, ((b"content-security-policy", _CSP),))
