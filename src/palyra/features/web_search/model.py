"""Settings of the search engine, what is asked of it, and what it finds."""

from typing import Literal

from msgspec import Struct

Engine = Literal["searxng", "brave", "tavily", "exa", "kagi"]
Newest = Literal["", "day", "week", "month", "year"]


class SearchSettings(Struct, frozen=True, kw_only=True):
    """`url` is where the engine is; `key` a reference to its key, never the key itself."""

    engine: Engine | Literal[""] = ""
    url: str = ""
    key: str = ""
    results: int = 8
    cache_minutes: int = 10


class SearchQuery(Struct, frozen=True, kw_only=True):
    """`site` limits the search to a host; `newest` to pages of that long."""

    words: str
    site: str = ""
    newest: Newest = ""
    results: int = 8


class SearchHit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page that was found, as the engine tells of it."""

    title: str
    url: str
    text: str = ""
    date: str = ""
