"""Input and output of a handler. A handler translates: it calls one verb of the core and names the
status.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from palyra.core.services import Services
from palyra.store.tokens import Token

if TYPE_CHECKING:
    from palyra.agent.settings import ConfigReloaded
    from palyra.api.exposure import Exposure, Listener
    from palyra.api.limits import StreamEnd

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

# In the scope of a request that another node of the same journal passes on.
FROM_NODE = "palyra.from_node"

ANYBODY = Token("", "anybody", "", "worker", 0)


@dataclass
class DaemonInfo:
    """The process that answers: where it is, how it is reached, and what its owner may do to it."""

    home: Path
    journal_path: Path
    url: str
    notes: tuple[str, ...]
    started_ms: int
    version: str
    exposure: "Exposure"
    listeners: "list[Listener]"
    reload_config: "Callable[[], Awaitable[ConfigReloaded]]"
    restart: Callable[[], None]


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

    services: Services
    token: Token
    path: dict[str, str]
    query: Q
    body: B
    headers: dict[bytes, bytes]
    address: str
    by_cookie: bool = False
    # Where the client's going away is heard of; nowhere, if what calls is no connection.
    receive: Receive = _stays
    # Names in the body that its type does not have, where the route wants to know.
    unread: tuple[str, ...] = ()

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
