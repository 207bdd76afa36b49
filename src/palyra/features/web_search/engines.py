"""Search engines: how each is asked, and how its answer is read.

The rule: an engine's answer is foreign text. What is no list of pages is an error that says so, and
nothing of it is believed but titles, addresses and extracts.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from palyra.core.errors import InvalidInput
from palyra.features.web_search.model import Engine, Newest, SearchHit, SearchQuery
from palyra.tools.net import urls
from palyra.tools.net.http_request import HttpRequest
from palyra.tools.net.urls import Url

_DAYS: Mapping[Newest, int] = {"day": 1, "week": 7, "month": 31, "year": 365}
_LONGEST_TITLE = 200
_LONGEST_TEXT = 600
_LONGEST_DATE = 40

Fields = Mapping[str, Any]


class EngineDialect(NamedTuple):
    """`url` is where the service is; nobody else's place is known. `ask` makes the parts of a
    request: method, path, parameters or body. `pages` finds the pages in an answer.
    """

    url: str
    needs_key: bool
    header: Callable[[str], tuple[str, str]]
    ask: Callable[[SearchQuery, datetime], tuple[str, dict[str, Any], bool]]
    pages: Callable[[Any], Iterator[Fields]]
    # Names of what a page is told by: its extract and its date.
    text: tuple[str, ...]
    date: tuple[str, ...]


def request(
    engine: Engine, base: str, key: str, query: SearchQuery, now: datetime | None = None
) -> HttpRequest:
    """Return the request that asks an engine. Raise InvalidInput if its address is no web
    address.
    """
    known = ENGINES[engine]
    path, fields, posts = known.ask(query, now or datetime.now(UTC))
    url = place(engine, base)
    target = msgspec.structs.replace(url, path=url.path.rstrip("/") + path, query=None)
    headers = [("Accept", "application/json")]
    if key:
        headers.append(known.header(key))
    if posts:
        headers.append(("Content-Type", "application/json"))
        return HttpRequest(
            method="POST", url=target, headers=tuple(headers), body=msgspec.json.encode(fields)
        )
    asked = urlencode({name: value for name, value in fields.items() if value != ""})
    return HttpRequest(
        method="GET",
        url=msgspec.structs.replace(target, query=asked),
        headers=tuple(headers),
    )


def place(engine: Engine, base: str) -> Url:
    """Return where an engine is."""
    wanted = base or ENGINES[engine].url
    if not wanted:
        raise InvalidInput(
            f"web_search.url does not say where your {engine} is: set it, for instance to"
            " http://127.0.0.1:8888"
        )
    return urls.parse(wanted)


def read(engine: Engine, body: bytes, most: int) -> list[SearchHit]:
    """Return the pages in an engine's answer, best first, each once."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput(f"{engine} answered with something that is no JSON") from None
    known = ENGINES[engine]
    found: dict[str, SearchHit] = {}
    try:
        for each in known.pages(told):
            hit = _hit(each, known)
            if hit is not None:
                found.setdefault(hit.url, hit)
            if len(found) == most:
                break
    except (AttributeError, TypeError, KeyError):
        raise InvalidInput(f"{engine} answered with something that is no list of pages") from None
    return list(found.values())


def _hit(page: Fields, known: EngineDialect) -> SearchHit | None:
    """Return a page; None for one without an address that can be fetched."""
    url = page.get("url")
    try:
        address = str(urls.parse(url)) if isinstance(url, str) else ""
    except Exception:  # noqa: BLE001  whatever is wrong with it, it cannot be fetched
        address = ""
    if not address:
        return None
    return SearchHit(
        title=_line(page.get("title"), _LONGEST_TITLE) or address[:_LONGEST_TITLE],
        url=address,
        text=_first(page, known.text, _LONGEST_TEXT),
        date=_first(page, known.date, _LONGEST_DATE),
    )


def _first(page: Fields, names: tuple[str, ...], most: int) -> str:
    for name in names:
        value = page.get(name)
        if isinstance(value, list):
            value = " … ".join(each for each in value if isinstance(each, str))
        if line := _line(value, most):
            return line
    return ""


def _line(value: object, most: int) -> str:
    """Return a text as one line, without marks of what was found in it."""
    if not isinstance(value, str):
        return ""
    for mark in ("<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"):
        value = value.replace(mark, "")
    line = " ".join(value[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _worded(query: SearchQuery) -> str:
    return f"{query.words} site:{query.site}" if query.site else query.words


def _searxng(query: SearchQuery, _: datetime) -> tuple[str, dict[str, Any], bool]:
    fields = {"q": _worded(query), "format": "json", "time_range": query.newest}
    return "/search", fields, False


def _brave(query: SearchQuery, _: datetime) -> tuple[str, dict[str, Any], bool]:
    fresh = f"p{query.newest[0]}" if query.newest else ""
    fields = {"q": _worded(query), "count": min(query.results, 20), "freshness": fresh}
    return "/res/v1/web/search", fields, False


def _tavily(query: SearchQuery, _: datetime) -> tuple[str, dict[str, Any], bool]:
    fields: dict[str, Any] = {"query": query.words, "max_results": query.results}
    if query.newest:
        fields["time_range"] = query.newest
    if query.site:
        fields["include_domains"] = [query.site]
    return "/search", fields, True


def _exa(query: SearchQuery, now: datetime) -> tuple[str, dict[str, Any], bool]:
    fields: dict[str, Any] = {
        "query": query.words,
        "numResults": query.results,
        "contents": {"text": {"maxCharacters": _LONGEST_TEXT}},
    }
    if query.newest:
        since = now - timedelta(days=_DAYS[query.newest])
        fields["startPublishedDate"] = since.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if query.site:
        fields["includeDomains"] = [query.site]
    return "/search", fields, True


def _kagi(query: SearchQuery, now: datetime) -> tuple[str, dict[str, Any], bool]:
    words = _worded(query)
    if query.newest:
        since = now - timedelta(days=_DAYS[query.newest])
        words = f"{words} after:{since:%Y-%m-%d}"
    return "/api/v0/search", {"q": words, "limit": query.results}, False


def _results(told: Any) -> Iterator[Fields]:
    yield from told["results"]


def _web_results(told: Any) -> Iterator[Fields]:
    # Nothing found is an answer without this part.
    yield from told.get("web", {}).get("results", ())


def _kagi_data(told: Any) -> Iterator[Fields]:
    # Beside pages (0) there are related searches (1).
    yield from (each for each in told["data"] if each.get("t", 0) == 0)


ENGINES: Mapping[Engine, EngineDialect] = {
    "searxng": EngineDialect(
        "",
        False,
        lambda key: ("Authorization", f"Bearer {key}"),
        _searxng,
        _results,
        ("content",),
        ("publishedDate",),
    ),
    "brave": EngineDialect(
        "https://api.search.brave.com",
        True,
        lambda key: ("X-Subscription-Token", key),
        _brave,
        _web_results,
        ("description", "extra_snippets"),
        ("page_age", "age"),
    ),
    "tavily": EngineDialect(
        "https://api.tavily.com",
        True,
        lambda key: ("Authorization", f"Bearer {key}"),
        _tavily,
        _results,
        ("content",),
        ("published_date",),
    ),
    "exa": EngineDialect(
        "https://api.exa.ai",
        True,
        lambda key: ("x-api-key", key),
        _exa,
        _results,
        ("highlights", "summary", "text"),
        ("publishedDate",),
    ),
    "kagi": EngineDialect(
        "https://kagi.com",
        True,
        lambda key: ("Authorization", f"Bot {key}"),
        _kagi,
        _kagi_data,
        ("snippet",),
        ("published",),
    ),
}
