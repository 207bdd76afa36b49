"""A request and the redirects it leads through. Every hop is judged as if it were the first.

A call goes only to hosts it was permitted for. A redirect elsewhere is not followed: the result
says where it wanted to go, so that going there can be a call of its own, which policy judges.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.tools.net import urls
from palyra.tools.net.hosts import HostRefused, shown
from palyra.tools.net.http_request import FetchedResponse, Http, HttpRequest
from palyra.tools.net.urls import Url
from palyra.tools.web.cache import Cache

MOST_BYTES = 2 << 20
MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS = frozenset({"content-type"})


class Credential(Struct, frozen=True):
    """A header that only this place may see, and only through TLS."""

    authority: str
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Credential({self.authority!r}, {self.name!r})"


class Fetched(Struct, frozen=True, kw_only=True):
    """End of a request. `wanted` is a redirect that was not followed, and `why` says why not."""

    url: Url
    response: FetchedResponse
    hops: tuple[str, ...] = ()
    cached: bool = False
    wanted: Url | None = None
    why: Literal["", "another host", "from https to http"] = ""


class Follower:
    def __init__(self, http: Http, cache: Cache) -> None:
        self._http = http
        self._cache = cache

    async def fetch(
        self, request: HttpRequest, permitted: frozenset[str], credential: Credential | None = None
    ) -> Fetched:
        """Sends a request and follows redirects to permitted hosts. Raises what `Http.send` raises,
        for any hop.
        """
        hops: list[str] = []
        plain = request.method == "GET" and not request.headers and credential is None
        while True:
            response, cached = await self._once(request, credential, plain)
            url = request.url
            wanted = _redirect(response, url)
            if wanted is None:
                return Fetched(url=url, response=response, hops=tuple(hops), cached=cached)
            self._http.resolver.check(wanted.host, wanted.port)
            downgraded = url.scheme == "https" and wanted.scheme == "http"
            if downgraded or wanted.authority not in permitted:
                why: Literal["another host", "from https to http"] = (
                    "from https to http" if downgraded else "another host"
                )
                return Fetched(url=url, response=response, hops=tuple(hops), wanted=wanted, why=why)
            if len(hops) == MOST_REDIRECTS:
                raise InvalidInput(f"{hops[0]} was redirected more than {MOST_REDIRECTS} times")
            hops.append(str(url))
            request = _next_request(request, response.status, wanted)

    async def _once(
        self, request: HttpRequest, credential: Credential | None, plain: bool
    ) -> tuple[FetchedResponse, bool]:
        if plain and (known := self._cache.get(request.url)) is not None:
            return known, True
        if (
            credential
            and request.url.scheme == "https"
            and request.url.authority == credential.authority
        ):
            headers = (*request.headers, (credential.name, credential.value))
            return (
                await self._http.send(
                    msgspec.structs.replace(request, headers=headers), MOST_BYTES
                ),
                False,
            )
        response = await self._http.send(request, MOST_BYTES)
        if plain:
            self._cache.put(request.url, response)
        return response, False


def _redirect(response: FetchedResponse, url: Url) -> Url | None:
    """Return where the answer sends us. Raises Refused if nobody may go there."""
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or location is None:
        return None
    try:
        # Headers are bytes; servers that write a Location in UTF-8 mean UTF-8.
        location = location.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise HostRefused(f"{url.authority} redirects to an address that cannot be read") from None
    try:
        return urls.parse(location, url)
    except (HostRefused, InvalidInput) as error:
        raise HostRefused(
            f"{url.authority} redirects to {shown(location)}: {error.message}"
        ) from None


def _next_request(request: HttpRequest, status: int, url: Url) -> HttpRequest:
    """Return the next request as browsers do: after 303, and after 301 or 302 to a POST, it is a
    GET without a body.
    """
    if request.method == "POST" and status in (301, 302, 303):
        headers = tuple(
            (name, value) for name, value in request.headers if name.lower() not in _BODY_HEADERS
        )
        return HttpRequest(method="GET", url=url, headers=headers)
    return msgspec.structs.replace(request, url=url)
