"""The one HTTP client under every adapter. What goes wrong on the wire leaves here as a
ModelFailure, and no key ever does.

How long each part of a call may take is in `call_limits`.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from palyra.core.messages import ModelFailure
from palyra.core.trace_context import handed_on, turn_at_work
from palyra.models import call_limits
from palyra.models.call_limits import CallLimits, Part

if TYPE_CHECKING:
    import aiohttp

_CONNECTIONS: Final = 1024
_HEADER_BYTES: Final = 64 * 1024
_STREAMED_UPLOAD_BYTES: Final = 512 * 1024
_ERROR_BODY_BYTES: Final = 64 * 1024
_FETCHED_BYTES: Final = 8 * 1024 * 1024
# After the reply is complete: how long to wait for the server to say so, before the connection is
# dropped instead of reused.
_FAREWELL_S: Final = 0.25
# After the last piece that matters: how long trailing usage may take.
_TRAILER_S: Final = 5.0


@dataclass(frozen=True)
class ProviderEndpoint:
    """Address of a provider and how to speak to it. Headers may hold secrets too, so neither they
    nor the key are ever printed.

    `extra_body` goes into every request as it is (reasoning effort, thinking budget, routing wishes
    of a gateway).
    """

    name: str
    base_url: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    limits: CallLimits = field(default_factory=CallLimits)
    # Asks the server to say how much of the prompt it has read.
    reports_progress: bool = False
    # Sends the session's cache key to hosts that are not known to take it.
    send_cache_key: bool = False
    # What the provider is told about caching prompts; `auto`: what its kind and host take.
    prompt_cache: Literal["auto", "off", "5m", "1h", "24h"] = "auto"
    # Azure's dated version of its API; set, the deployment stands in the path.
    api_version: str = ""

    @cached_property
    def host(self) -> str:
        """Empty for an address that is none: the first request says so."""
        try:
            return (urlsplit(self.base_url).hostname or "").lower()
        except ValueError:
            return ""

    def url(self, path: str) -> str:
        """The base with this path; a base may carry its own query, as Azure's does."""
        base, _, given = self.base_url.partition("?")
        path, _, more = path.partition("?")
        query = "&".join(filter(None, (more, given)))
        return f"{base.rstrip('/')}{path}{'?' if query else ''}{query}"

    def without_secrets(self, text: str) -> str:
        for secret in (self.api_key, *self.headers.values()):
            if len(secret) >= 6:
                text = text.replace(secret, "[hidden]")
        return text


class ProviderResponse:
    """A response whose headers have come. Reading it notices silence without a timer per chunk."""

    def __init__(
        self,
        response: "aiohttp.ClientResponse",
        endpoint: ProviderEndpoint,
        broken: tuple[type[BaseException], ...],
        began: float,
    ) -> None:
        self._response = response
        # aiohttp asks its parser to go on after every piece that is taken out of its buffer while
        # less than this is left in it. All of it is taken out at once here, so once is enough.
        response.content._low_water = 1
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._broken: tuple[type[BaseException], ...] = broken
        self._loop = asyncio.get_running_loop()
        self._began = began
        self._heard = self._loop.time()
        self._spoke = False
        self._timer: asyncio.TimerHandle | None = None
        self._wait()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunk(self) -> bytes:
        """The next bytes, or none at the end."""
        try:
            data = await self._response.content.readany()
        except self._broken as error:
            raise unreachable(self._endpoint, error, sent=True) from error
        self._heard = self._loop.time()
        return data

    def first_token(self) -> None:
        """The model speaks: from now on the limit is that of a stall."""
        self._spoke = True
        self._wait()

    def only_trailers_left(self) -> None:
        """Shorten the timeout for silence: everything that matters has arrived."""
        self._spoke = True
        stall_s = self._limits.stall_s
        if stall_s is None or stall_s > _TRAILER_S:
            self._limits = replace(self._limits, stall_s=_TRAILER_S)
        self._wait()

    async def body(self, limit: int = _ERROR_BODY_BYTES) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < limit and (data := await self.chunk()):
            parts.append(data)
            size += len(data)
        return b"".join(parts)[:limit]

    async def farewell(self) -> None:
        """Lets the server end the response, so that its connection can serve the next request."""
        if self._response.content.at_eof():
            return
        try:
            async with asyncio.timeout(_FAREWELL_S):
                if await self._response.content.readany():
                    self._response.close()
        except self._broken:
            self._response.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self.close()
        due = self._limits.due(began=self._began, heard=self._heard, spoke=self._spoke)
        if due is not None:
            self._timer = self._loop.call_at(due[0], self._check)

    def _check(self) -> None:
        due = self._limits.due(began=self._began, heard=self._heard, spoke=self._spoke)
        if due is None or self._loop.time() < due[0]:
            self._wait()
            return
        self._response.content.set_exception(timed_out(self._endpoint, due[2], due[1]))


class HttpClient:
    """A pool of connections, opened in the loop that first uses it. One for all providers."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Whether providers are told which trace a request belongs to.
        self.tells_trace = False

    @asynccontextmanager
    async def post(
        self,
        endpoint: ProviderEndpoint,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        method: str = "POST",
    ) -> AsyncIterator[ProviderResponse]:
        """One request. Leaving the block before the end of the response closes the connection."""
        import aiohttp

        broken = (aiohttp.ClientError, OSError)
        data = io.BytesIO(body) if len(body) > _STREAMED_UPLOAD_BYTES else body
        if self.tells_trace and (turn := turn_at_work.get()) is not None:
            headers = {**headers, "traceparent": handed_on(turn)}
        session = self._open()
        loop = asyncio.get_running_loop()
        began = loop.time()
        due = endpoint.limits.due(began=began, heard=began, spoke=False)
        connect_s = endpoint.limits.connect_s
        try:
            async with asyncio.timeout_at(due[0] if due else None):
                response = await session.request(
                    method,
                    url,
                    data=data or None,
                    headers=headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s),
                )
            answer = ProviderResponse(response, endpoint, broken, began)
            try:
                yield answer
            except BaseException:
                response.close()
                raise
            finally:
                answer.close()
                response.release()
        except ModelFailure:
            raise
        except TimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError) or due is None:
                raise timed_out(endpoint, "connect_ms", connect_s, sent=False) from error
            raise timed_out(endpoint, due[2], due[1]) from error
        except aiohttp.InvalidURL as error:
            raise ModelFailure(
                "bad_request",
                f"{endpoint.name} has an invalid address; check providers.{endpoint.name}.base_url",
            ) from error
        except broken as error:
            raise unreachable(
                endpoint, error, sent=not isinstance(error, aiohttp.ClientConnectorError)
            ) from error

    async def fetch(
        self, url: str, *, headers: Mapping[str, str], body: bytes | None = None, limit_s: float
    ) -> tuple[int, bytes]:
        """A small answer as a whole: its status and its body. Raise OSError or TimeoutError if
        none comes.
        """
        import aiohttp

        try:
            async with (
                asyncio.timeout(limit_s),
                self._open().request(
                    "GET" if body is None else "POST",
                    url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                ) as response,
            ):
                return response.status, await response.content.read(_FETCHED_BYTES)
        except (aiohttp.ClientError, ValueError) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    def _open(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
            )
            self._loop = loop
        return self._session


def timed_out(
    endpoint: ProviderEndpoint, part: Part, limit_s: float, *, sent: bool = True
) -> ModelFailure:
    return ModelFailure("timeout", call_limits.exceeded(endpoint.name, part, limit_s), sent=sent)


def unreachable(endpoint: ProviderEndpoint, error: BaseException, *, sent: bool) -> ModelFailure:
    import aiohttp

    if isinstance(error, aiohttp.ClientResponseError):
        return ModelFailure(
            "not_a_model_server",
            f"this is not a model server: {endpoint.without_secrets(endpoint.base_url)} does not"
            f" speak HTTP; check providers.{endpoint.name}.base_url",
            sent=sent,
        )
    reason = endpoint.without_secrets(str(error) or type(error).__name__)[:200]
    return ModelFailure(
        "network", f"{endpoint.name} cannot be reached or broke off: {reason}", sent=sent
    )


def sendable(secret: str) -> bool:
    """Return whether a header can carry it: a pasted line break would otherwise surface as an error
    that quotes the key.
    """
    return secret.isprintable()
