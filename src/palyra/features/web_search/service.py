"""A search: asked once, remembered for a while, with the key from where it is kept.

The rule: the key goes to the engine's own place and nowhere else, so redirects are not followed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic

from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, Unavailable
from palyra.core.ports import CallContext
from palyra.features.web_search import engines
from palyra.features.web_search.model import Engine, SearchHit, SearchQuery, SearchSettings
from palyra.tools.net import addresses
from palyra.tools.net.http_request import FetchedResponse, Http
from palyra.tools.net.urls import Url

# The value behind a reference, for this host and this call. Raises Forbidden or NotFound.
Secret = Callable[[str, str, CallContext], Awaitable[str]]

TOOL = "web.search"
SECONDS = 15.0
_MOST_BYTES = 1 << 20
_MOST_REMEMBERED = 200


class WebSearch:
    def __init__(
        self,
        settings: SearchSettings,
        http: Http,
        secret: Secret,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        assert settings.engine
        self.engine: Engine = settings.engine
        self.settings = settings
        self._http = http
        self._secret = secret
        self._clock = clock
        self._known: OrderedDict[tuple[str, SearchQuery], tuple[float, list[SearchHit]]]
        self._known = OrderedDict()

    @property
    def place(self) -> Url:
        return engines.place(self.engine, self.settings.url)

    async def find(self, query: SearchQuery, context: CallContext) -> tuple[list[SearchHit], bool]:
        """Return what the engine finds, and whether it was known from before."""
        asked = (context.principal, query)
        known = self._known.get(asked)
        if known is not None and known[0] > self._clock():
            return known[1], True
        request = engines.request(self.engine, self.settings.url, await self._key(context), query)
        async with asyncio.timeout(SECONDS):
            answer = await self._http.send(request, _MOST_BYTES)
        self._refuse(answer)
        found = engines.read(self.engine, answer.body, query.results)
        self._remember(asked, found)
        return found, False

    def _remember(self, asked: tuple[str, SearchQuery], found: list[SearchHit]) -> None:
        self._known.pop(asked, None)
        if self.settings.cache_minutes:
            self._known[asked] = (self._clock() + 60 * self.settings.cache_minutes, found)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    async def _key(self, context: CallContext) -> str:
        reference = self.settings.key
        if not reference:
            if engines.ENGINES[self.engine].needs_key:
                raise InvalidInput(
                    f"{self.engine} needs a key: put it into the vault with `palyra vault set"
                    f" {self.engine}`, then `palyra config set web_search.key"
                    f" vault:{self.engine}`"
                )
            return ""
        place = self.place
        if place.scheme != "https" and not _is_near(place):
            raise Forbidden(f"the key is not sent to {place.authority} without TLS: use https")
        return await self._secret(reference, place.host, context)

    def _refuse(self, answer: FetchedResponse) -> None:
        """Raise what an answer without pages means, with what to do."""
        where = f"{self.engine} at {self.place.authority}"
        match answer.status:
            case 200 if answer.cut:
                raise InvalidInput(f"{where} sent more than {_MOST_BYTES >> 20} MiB")
            case 200:
                return
            case 403 if self.engine == "searxng" and not self.settings.key:
                raise InvalidInput(
                    f"{where} does not give JSON: add json to search.formats in its settings.yml"
                )
            case 401 | 403:
                raise InvalidInput(f"{where} refuses the key: check web_search.key")
            case 402 | 432 | 433:
                raise LimitExceeded(f"{where} has no searches left for this key")
            case 429:
                wait = answer.headers.get("retry-after", "")
                again = f"; try again in {wait} s" if wait.isdigit() else "; try again later"
                raise LimitExceeded(f"{where} takes no more searches now{again}")
            case status if status in range(300, 400):
                raise InvalidInput(f"{where} redirects: set web_search.url to where it is now")
            case status if status >= 500:
                raise Unavailable(f"{where} fails with {status}: try again later")
            case status:
                raise InvalidInput(f"{where} refuses the search with {status}")


def _is_near(place: Url) -> bool:
    """Return whether a place is on this machine or its network, where no stranger listens."""
    literal = addresses.parse(place.host)
    if literal is None:
        return bool(addresses.name_refusal(place.host))
    return bool(addresses.refusal(literal))
