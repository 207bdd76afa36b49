"""`session.search`: what was said and what tools returned, in the user's conversations.

The rule: a quotation is as untrusted and as private as what it quotes, and what was said in another
session is private here.
"""

from datetime import UTC, datetime
from typing import Annotated, Protocol

from msgspec import Meta

from palyra.core import labels
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.features.memory.model import Said
from palyra.tools.catalogue import Arguments, Placeless, TypedTool, declare

_LIMITS = Limits(time_ms=60_000, input_bytes=16 << 10, output_bytes=64 << 10)


class Quotes(Protocol):
    """The principal's own sessions, searched from inside a call."""

    async def quote(self, context: CallContext, text: str, limit: int) -> tuple[list[Said], str]:
        """Return what was found, best first, and why meanings were not searched, if so."""
        ...


class SessionSearchArguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=2_000)]
    limit: Annotated[int, Meta(ge=1, le=20)] = 5


class SessionSearch(Placeless):
    argument_type = SessionSearchArguments
    spec = declare(
        "session.search",
        "Search past messages and tool results.",
        SessionSearchArguments,
        effect="pure",
        capabilities=("memory",),
        limits=_LIMITS,
    )

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, SessionSearchArguments)
        return Preview("text", "search earlier conversations", arguments.query)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, SessionSearchArguments)
        found, words_only = await self._quotes.quote(context, arguments.query, arguments.limit)
        lines = [
            f"{each.session_id} entry {each.seq}, {_day(each.time_ms)}, {each.speaker}:"
            f" {each.snippet}"
            for each in found
        ]
        if words_only:
            lines.append(f"(searched by words only: {words_only})")
        data = {
            "found": [
                {"session_id": each.session_id, "seq": each.seq, "score": each.score}
                for each in found
            ]
        }
        # What was said for one conversation was not said for whoever can be reached from another.
        elsewhere = labels.private(
            *dict.fromkeys(
                f"session:{each.session_id}"
                for each in found
                if each.session_id != context.session_id
            )
        )
        label = labels.join(
            [
                *(each.label for each in found),
                elsewhere if elsewhere.private_sources else labels.CLEAN,
            ]
        )
        return ToolResult(
            outcome="ok",
            text="\n".join(lines) or "nothing like that was said or returned",
            data=data,
            label=label,
        )


def _day(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def tools(quotes: Quotes) -> tuple[TypedTool, ...]:
    return (SessionSearch(quotes),)
