"""`web.search`: what an engine finds for words. Whatever comes back was written by others."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from palyra.core import labels
from palyra.core.argument_roles import uses
from palyra.core.errors import Forbidden, PalyraError, Unavailable
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult
from palyra.features.web_search.model import Newest, SearchHit, SearchQuery
from palyra.features.web_search.service import SECONDS, TOOL, WebSearch
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.net import hosts

_MOST = 20


class WebSearchArguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=400)]
    site: Annotated[str, Meta(description="Only pages of this host", max_length=253)] = ""
    newest: Annotated[Newest, Meta(description="Only pages of the last")] = ""
    results: Annotated[int, Meta(ge=0, le=_MOST, description="At most; 0: as set up")] = 0


class Search:
    argument_type = WebSearchArguments
    spec = declare(
        TOOL,
        "Search the web; read what is found with http.fetch.",
        WebSearchArguments,
        effect="pure",
        capabilities=("network",),
        use=uses(reads_only=True, high_impact=False, query="content", site="content"),
        limits=Limits(
            time_ms=int(SECONDS * 1000) + 1000, input_bytes=4 << 10, output_bytes=64 << 10
        ),
    )

    def __init__(self, search: WebSearch) -> None:
        self._search = search

    def scope(self, arguments: object, workspace: str) -> Scope:
        query = self._query(arguments)
        where = self._search.place.authority
        return Scope(program="GET", command=f"search {where}: {query.words}", hosts=(where,))

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return (Subject(TOOL, "host", scope.hosts[0]), Subject(TOOL, "tool"))

    def preview(self, arguments: object, workspace: str) -> Preview:
        query = self._query(arguments)
        limits = [f"only {query.site}"] if query.site else []
        limits += [f"of the last {query.newest}"] if query.newest else []
        where = f"{self._search.engine} at {self._search.place.authority}"
        return Preview("text", f"search the web: {query.words}", "\n".join([where, *limits]))

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        query = self._query(arguments)
        try:
            found, known = await self._search.find(query, context)
        except TimeoutError:
            return ToolResult(
                outcome="timeout",
                text=f"{self._search.engine} took longer than {SECONDS:g} s",
            )
        except PalyraError as error:
            outcome: Literal["denied", "error"] = (
                "denied" if isinstance(error, Forbidden) else "error"
            )
            return ToolResult(
                outcome=outcome,
                text=error.message,
                data={"code": error.code, "again": isinstance(error, Unavailable)},
            )
        where = self._search.place.authority
        return ToolResult(
            outcome="ok",
            text=_text(query, found, known=known),
            data={"results": msgspec.to_builtins(found), "engine": self._search.engine},
            label=labels.untrusted(f"search:{where}"),
        )

    def _query(self, arguments: object) -> SearchQuery:
        assert isinstance(arguments, WebSearchArguments)
        most = arguments.results or self._search.settings.results
        site = hosts.parse(arguments.site) if arguments.site else ""
        words = " ".join(arguments.query.split())
        return SearchQuery(words=words, site=site, newest=arguments.newest, results=most)


def _text(query: SearchQuery, found: list[SearchHit], *, known: bool) -> str:
    if not found:
        return f"nothing was found for {query.words!r}"
    pages = "1 page" if len(found) == 1 else f"{len(found)} pages"
    lines = [f"{pages} for {query.words!r}{' (asked before)' if known else ''}"]
    for number, hit in enumerate(found, 1):
        dated = f" ({hit.date})" if hit.date else ""
        lines += ["", f"{number}. {hit.title}{dated}", f"   {hit.url}"]
        if hit.text:
            lines.append(f"   {hit.text}")
    return "\n".join(lines)
