"""What a handler gets and what it gives back. A handler translates: it calls one verb of the core and names the status."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from palyra.journal.tokens import Token

if TYPE_CHECKING:
    from palyra.journal.database import Database
    from palyra.policy.store import PolicyStore
    from palyra.runtime.answers import Answers
    from palyra.runtime.budgets import Budgets
    from palyra.runtime.callers import Callers
    from palyra.runtime.channels.late import LateChannels
    from palyra.runtime.clock import Clock
    from palyra.runtime.compacting import Compacting
    from palyra.runtime.doctor import Doctor
    from palyra.runtime.enclosures import Enclosures
    from palyra.runtime.forecasts import Forecasts
    from palyra.runtime.forking import Forking
    from palyra.runtime.gateway import Gateway
    from palyra.runtime.hub import Hub
    from palyra.runtime.incidents import Incidents
    from palyra.runtime.learning.learning import Learning
    from palyra.runtime.mcp import Mcp
    from palyra.runtime.memory import Memory
    from palyra.runtime.moments import Moments
    from palyra.runtime.notices import Notices
    from palyra.runtime.project_notes import ProjectNotes
    from palyra.runtime.replay.replays import Replays
    from palyra.runtime.retention import Retention
    from palyra.runtime.rewind import Rewinding
    from palyra.runtime.routing import Models
    from palyra.runtime.rules import Rules
    from palyra.runtime.runs import Runs
    from palyra.runtime.schedule_hooks import Hooks
    from palyra.runtime.schedule_verbs import Schedules
    from palyra.runtime.session_verbs import Sessions
    from palyra.runtime.settings import ConfigReloaded
    from palyra.runtime.setup import Setup
    from palyra.runtime.shelf import Shelf
    from palyra.runtime.task_verbs import TaskVerbs
    from palyra.runtime.tls.certificates import Certificates
    from palyra.runtime.transcripts import Transcripts
    from palyra.runtime.undo import Undoing
    from palyra.runtime.vault import Vault
    from palyra.runtime.watchdog import Watchdog
    from palyra.runtime.workers.workers import Workers
    from palyra.tools.catalogue import Catalogue
    from palyra.transports.auth import Access
    from palyra.transports.exposure import Exposure, Listener
    from palyra.transports.limits import Ending, Limits, Streams
    from palyra.transports.metrics import Metrics

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
    hub: "Hub"
    runs: "Runs"
    gateway: "Gateway"
    callers: "Callers"
    enclosures: "Enclosures"
    sessions: "Sessions"
    rules: "Rules"
    answers: "Answers"
    undoing: "Undoing"
    compacting: "Compacting"
    rewinding: "Rewinding"
    replays: "Replays"
    forking: "Forking"
    moments: "Moments"
    models: "Models"
    budgets: "Budgets"
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
    shelf: "Shelf"
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
    streams: "Streams"
    limits: "Limits"
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
class Call(Generic[Q, B]):
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
class Answer:
    status: int
    body: bytes = b""
    media: bytes = JSON
    headers: Headers = ()


@dataclass(slots=True)
class Streaming:
    """An answer that comes in pieces until its end or the client's. `heartbeat` is sent when there was nothing else for a while."""

    media: bytes
    chunks: AsyncGenerator[bytes, None]
    heartbeat: bytes = b""
    headers: Headers = field(default=())
    # Told when the client goes away before the end.
    left: Callable[[], Awaitable[object]] | None = None
    # The place that is held for it already; else it gets one when it begins.
    place: "AbstractContextManager[Ending] | None" = None


encode = msgspec.json.Encoder().encode


def ok(value: Any, status: int = 200) -> Answer:
    return Answer(status, encode(value))
