"""How each search engine is asked, and what of its answer is taken."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.features.web_search import engines
from palyra.features.web_search.engines import ENGINES
from palyra.features.web_search.model import Engine, SearchHit, SearchQuery

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAGE = {"title": "Fees of <strong>harbours</strong>", "url": "https://example.org/fees"}
ANSWERS: dict[Engine, Any] = {
    "searxng": {
        "query": "fees",
        "results": [{**PAGE, "content": "40 crowns", "publishedDate": "2026-02-01T00:00:00"}],
    },
    "brave": {
        "type": "search",
        "web": {"results": [{**PAGE, "description": "40 <b>crowns</b>", "page_age": "2026-02-01"}]},
    },
    "tavily": {"results": [{**PAGE, "content": "40 crowns", "score": 0.9}], "answer": None},
    "exa": {
        "results": [{**PAGE, "publishedDate": "2026-02-01", "highlights": ["40", "crowns"]}],
    },
    "kagi": {
        "meta": {"ms": 3},
        "data": [
            {"t": 1, "list": ["harbour fees"]},
            {"t": 0, **PAGE, "snippet": "40 crowns", "published": "2026-02-01"},
        ],
    },
}


def _asked(engine: Engine, **wanted: Any) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Return the address, the headers, and what is asked, of a request."""
    base = "http://127.0.0.1:8888/base/" if engine == "searxng" else ""
    query = SearchQuery(words="harbour fees", **wanted)
    request = engines.request(engine, base, "k3y", query, NOW)
    if request.body is not None:
        fields = json.loads(request.body)
    else:
        fields = {name: value for name, (value,) in parse_qs(request.url.query).items()}
    where = f"{request.method} {request.url.scheme}://{request.url.authority}{request.url.path}"
    return where, dict(request.headers), fields


def test_each_engine_is_asked_in_its_own_words() -> None:
    assert _asked("searxng", site="example.org", newest="week")[::2] == (
        "GET http://127.0.0.1:8888/base/search",
        {"q": "harbour fees site:example.org", "format": "json", "time_range": "week"},
    )
    where, headers, fields = _asked("brave", newest="day")
    assert where == "GET https://api.search.brave.com/res/v1/web/search"
    assert headers["X-Subscription-Token"] == "k3y"
    assert fields == {"q": "harbour fees", "count": "8", "freshness": "pd"}
    where, headers, fields = _asked("tavily", site="example.org", newest="year")
    assert (where, headers["Authorization"]) == (
        "POST https://api.tavily.com/search",
        "Bearer k3y",
    )
    assert fields["include_domains"] == ["example.org"]
    assert fields["time_range"] == "year"
    where, headers, fields = _asked("exa", newest="week")
    assert (where, headers["x-api-key"]) == ("POST https://api.exa.ai/search", "k3y")
    assert fields["startPublishedDate"] == "2026-02-23T12:00:00.000Z"
    where, headers, fields = _asked("kagi", newest="day")
    assert (where, headers["Authorization"]) == ("GET https://kagi.com/api/v0/search", "Bot k3y")
    assert fields == {"q": "harbour fees after:2026-03-01", "limit": "8"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pages_of_an_answer_are_read(engine: Engine) -> None:
    (hit,) = engines.read(engine, json.dumps(ANSWERS[engine]).encode(), 8)
    assert hit.title == "Fees of harbours"
    assert hit.url == "https://example.org/fees"
    assert hit.text in ("40 crowns", "40 … crowns")
    assert hit.date.startswith("2026-02-01") or engine == "tavily"


def _read(pages: list[Any], most: int = 8) -> list[SearchHit]:
    return engines.read("searxng", json.dumps({"results": pages}).encode(), most)


def test_a_page_counts_once_and_only_with_an_address_that_can_be_fetched() -> None:
    pages = [
        {"url": "javascript:alert(1)", "title": "no"},
        {"url": "http://user:secret@example.org/", "title": "no"},
        {"url": "file:///etc/passwd"},
        {"title": "no address"},
        PAGE,
        PAGE,
        {"url": "https://example.org/other"},
        {"url": "https://example.org/third"},
    ]
    found = _read(pages, most=2)
    assert [each.url for each in found] == ["https://example.org/fees", "https://example.org/other"]
    assert found[1].title == "https://example.org/other"


def test_what_an_engine_tells_is_cut_and_stays_one_line() -> None:
    (hit,) = _read([{**PAGE, "title": "t\n" * 9_999, "content": "x " * 99_999}])
    assert len(hit.title) <= 200
    assert len(hit.text) <= 600
    assert "\n" not in hit.title + hit.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b"[]",
        b"7",
        b"{}",
        b'{"results":7}',
        b'{"results":[7]}',
        b'{"results":{"a":1}}',
        b"[" * 200_000,
    ],
)
def test_what_is_no_list_of_pages_is_an_error(body: bytes) -> None:
    with pytest.raises(InvalidInput, match="searxng answered with something that is no"):
        engines.read("searxng", body, 8)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["results", "web", "data", "t", "url", "title", "content"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(told=_JSON, engine=st.sampled_from(sorted(ENGINES)))
def test_whatever_comes_is_pages_or_an_error(told: Any, engine: Engine) -> None:
    try:
        found = engines.read(engine, json.dumps(told).encode(), 8)
    except InvalidInput:
        return
    assert all(each.url.startswith(("http://", "https://")) for each in found)
