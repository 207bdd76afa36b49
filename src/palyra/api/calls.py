"""What a handler gets and what it gives back. A handler translates: it calls one verb of the core
and names the status.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from palyra.store.tokens import Token

if TYPE_CHECKING:
    from palyra.agent.approvals import ApprovalService
    from palyra.agent.broadcast import Broadcast
    from palyra.agent.gateway import Gateway
    from palyra.agent.runs import Runs
    from palyra.agent.session_rules import SessionRules
    from palyra.agent.sessions import Sessions
    from palyra.agent.settings import ConfigReloaded
    from palyra.api.auth import Access
    from palyra.api.exposure import Exposure, Listener
    from palyra.api.limits import ApiLimits, OpenStreams, StreamEnd
    from palyra.api.metrics import Metrics
    from palyra.features.budgets.forecasts import Forecasts
    from palyra.features.budgets.service import BudgetService
    from palyra.features.channels.lazy import LateChannels
    from palyra.features.compaction.service import Compacting
    from palyra.features.health.doctor import Doctor
    from palyra.features.health.incidents import Incidents
    from palyra.features.health.watchdog import Watchdog
    from palyra.features.learning.service import Learning
    from palyra.features.mcp.service import Mcp
    from palyra.features.memory.service import Memory
    from palyra.features.memory.transcripts import Transcripts
    from palyra.features.notices.service import Notices
    from palyra.features.openai_api.sessions import Callers
    from palyra.features.project_notes.service import ProjectNotes
    from palyra.features.references.message_inputs import Enclosures
    from palyra.features.retention.service import Retention
    from palyra.features.schedules.service import Schedules
    from palyra.features.schedules.webhooks import Hooks
    from palyra.features.setup.model import Setup
    from palyra.features.skills.registry import SkillRegistry
    from palyra.features.tasks.service import TaskVerbs
    from palyra.features.time_travel.fork import Forking
    from palyra.features.time_travel.replay.service import Replays
    from palyra.features.time_travel.rewind import Rewinding
    from palyra.features.time_travel.session_snapshot import Moments
    from palyra.features.time_travel.undo import Undoing
    from palyra.features.tls.service import Certificates
    from palyra.features.vault.service import Vault
    from palyra.features.workers.service import Workers
    from palyra.models.routing import Models
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.tools.catalogue import Catalogue

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
SSE = b"text/event-stream"
NDJSON = b"application/x-ndjson"
HTML = b"text/html; charset=utf-8"
METRICS = b"text/plain; version=0.0.4; charset=utf-8"

ULID_PATTERN = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
# The greatest whole number that every JSON reader keeps exact, and that fits every column.
Count = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Limit = Annotated[int, Meta(ge=1, le=500)]
Ulid = Annotated[str, Meta(pattern=ULID_PATTERN)]

ANYBODY = Token("", "anybody", "", "worker", 0)


@dataclass(frozen=True)
class Parts:
    """The running daemon as far as HTTP needs it, filled in by whoever starts it."""

    db: "Database"
    clock: "Clock"
    hub: "Broadcast"
    runs: "Runs"
    gateway: "Gateway"
    callers: "Callers"
    enclosures: "Enclosures"
    sessions: "Sessions"
    rules: "SessionRules"
    answers: "ApprovalService"
    undoing: "Undoing"
    compacting: "Compacting"
    rewinding: "Rewinding"
    replays: "Replays"
    forking: "Forking"
    moments: "Moments"
    models: "Models"
    budgets: "BudgetService"
    forecasts: "Forecasts"
    catalogue: "Catalogue"
    policy: "PolicyStore"
    shadow: "PolicyStore | None"
    vault: "Vault"
    certificates: "Certificates"
    exposure: "Exposure"
    listeners: "list[Listener]"
    memory: "Memory"
    learning: "Learning"
    retention: "Retention"
    transcripts: "Transcripts"
    shelf: "SkillRegistry"
    mcp: "Mcp"
    project_notes: "ProjectNotes"
    workers: "Workers"
    late_channels: "LateChannels"
    notices: "Notices"
    incidents: "Incidents"
    doctor: "Doctor"
    watchdog: "Watchdog"
    task_verbs: "TaskVerbs"
    schedules: "Schedules"
    hooks: "Hooks"
    setup: "Setup"
    reload_config: "Callable[[], Awaitable[ConfigReloaded]]"
    restart: Callable[[], None]
    access: "Access"
    streams: "OpenStreams"
    limits: "ApiLimits"
    metrics: "Metrics"
    home: Path
    journal_path: Path
    url: str
    notes: tuple[str, ...]
    started_ms: int
    version: str


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what comes in: query parameters and bodies. What is not declared is refused."""


class Nothing(Input, frozen=True, kw_only=True):
    """No parameters, or an empty object."""


class Upload(Struct, frozen=True):
    """A body that is not JSON, whole."""

    data: bytes


async def _stays() -> MutableMapping[str, Any]:
    await asyncio.get_running_loop().create_future()
    return {"type": "http.disconnect"}


Q = TypeVar("Q", bound=Struct)
B = TypeVar("B", bound=Struct)


@dataclass(slots=True)
class ApiCall(Generic[Q, B]):
    """One request, checked and decoded."""

    parts: Parts
    token: Token
    path: dict[str, str]
    query: Q
    body: B
    headers: dict[bytes, bytes]
    address: str
    by_cookie: bool = False
    # Where the client's going away is heard of; nowhere, if what calls is no connection.
    receive: Receive = _stays

    @property
    def principal(self) -> str:
        return self.token.principal


@dataclass(slots=True)
class HttpResponse:
    status: int
    body: bytes = b""
    media: bytes = JSON
    headers: Headers = ()


@dataclass(slots=True)
class StreamingResponse:
    """An answer that comes in pieces until its end or the client's. `heartbeat` is sent when there
    was nothing else for a while.
    """

    media: bytes
    chunks: AsyncGenerator[bytes, None]
    heartbeat: bytes = b""
    headers: Headers = field(default=())
    # Told when the client goes away before the end.
    left: Callable[[], Awaitable[object]] | None = None
    # The place that is held for it already; else it gets one when it begins.
    place: "AbstractContextManager[StreamEnd] | None" = None


encode = msgspec.json.Encoder().encode


def ok(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, encode(value))
