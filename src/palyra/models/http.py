"""The one HTTP client under every adapter. What goes wrong on the wire leaves here as a
ModelFailure, and no key ever does.

Timeouts are of two kinds: making the connection, and silence. There is no limit on how long a model
may talk.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from palyra.core.messages import ModelFailure

if TYPE_CHECKING:
    import aiohttp

_CONNECTIONS: Final = 1024
_HEADER_BYTES: Final = 64 * 1024
_STREAMED_UPLOAD_BYTES: Final = 512 * 1024
_ERROR_BODY_BYTES: Final = 64 * 1024
# After the reply is complete: how long to wait for the server to say so, before the connection is
# dropped instead of reused.
_FAREWELL_S: Final = 0.25
# After the last piece that matters: how long trailing usage may take.
_TRAILER_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """Where a provider is and how to speak to it. Headers may hold secrets too, so neither they nor
    the key are ever printed.

    `extra_body` goes into every request as it is (reasoning effort, thinking budget, routing wishes
    of a gateway).
    """

    name: str
    base_url: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    # The longest silence on a call before it counts as failed.
    idle_s: float = 120.0
    # Sends the session's cache key to hosts that are not known to take it.
    send_cache_key: bool = False

    @property
    def host(self) -> str:
        """Empty for an address that is none: the first request says so."""
        try:
            return (urlsplit(self.base_url).hostname or "").lower()
        except ValueError:
            return ""

    def url(self, path: str) -> str:
        """The base with this path; a base may carry its own query, as Azure's does."""
        base, question, query = self.base_url.partition("?")
        return f"{base.rstrip('/')}{path}{question}{query}"

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
    ) -> None:
        self._response = response
        self._endpoint = endpoint
        self._idle_s = endpoint.idle_s
        self._broken: tuple[type[BaseException], ...] = broken
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._timer = self._loop.call_at(self._heard + self._idle_s, self._check)

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

    def only_trailers_left(self) -> None:
        """What matters has been said: from now on silence ends sooner."""
        if self._idle_s > _TRAILER_S:
            self._idle_s = _TRAILER_S
            self._timer.cancel()
            self._timer = self._loop.call_at(self._heard + self._idle_s, self._check)

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
        self._timer.cancel()

    def _check(self) -> None:
        due = self._heard + self._idle_s
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._check)
            return
        self._response.content.set_exception(
            ModelFailure(
                "timeout",
                f"{self._endpoint.name} sent nothing for {self._idle_s:g} s; try again or another"
                " provider",
                sent=True,
            )
        )


class HttpClient:
    """A pool of connections, opened in the loop that first uses it. One for all providers."""

    def __init__(self, *, connect_s: float = 15.0) -> None:
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def post(
        self, endpoint: ProviderEndpoint, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[ProviderResponse]:
        """One request. Leaving the block before the end of the response closes the connection."""
        import aiohttp

        broken = (aiohttp.ClientError, OSError)
        data = io.BytesIO(body) if len(body) > _STREAMED_UPLOAD_BYTES else body
        session = self._open()
        try:
            async with asyncio.timeout(endpoint.idle_s):
                response = await session.post(
                    url, data=data, headers=headers, allow_redirects=False
                )
            answer = ProviderResponse(response, endpoint, broken)
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
            sent = not isinstance(error, aiohttp.ConnectionTimeoutError)
            message = f"{endpoint.name} did not answer in time; try again or another provider"
            raise ModelFailure("timeout", message, sent=sent) from error
        except aiohttp.InvalidURL as error:
            raise ModelFailure(
                "bad_request",
                f"{endpoint.name} has an invalid address; check providers.{endpoint.name}.base_url",
            ) from error
        except broken as error:
            raise unreachable(
                endpoint, error, sent=not isinstance(error, aiohttp.ClientConnectorError)
            ) from error

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
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
            )
            self._loop = loop
        return self._session


def unreachable(endpoint: ProviderEndpoint, error: BaseException, *, sent: bool) -> ModelFailure:
    reason = endpoint.without_secrets(str(error) or type(error).__name__)[:200]
    return ModelFailure(
        "network", f"{endpoint.name} cannot be reached or broke off: {reason}", sent=sent
    )


def sendable(secret: str) -> bool:
    """Whether a header can carry it: a pasted line break would otherwise surface as an error that
    quotes the key.
    """
    return secret.isprintable()
