"""`palyra sessions compact` and its relatives, and `/compact` in a chat: the daemon's answers, and
how they are told in words.
"""

from collections.abc import Iterator

from palyra.cli.safe_text import clean
from palyra.client import Client
from palyra.client.types.sessions import Compaction, Uncompacted
from palyra.core.errors import NotFound
from palyra.core.events import SessionCompacted, SessionUncompacted


def undo(api: Client, session_id: str, seq: int | None = None) -> Uncompacted:
    """Take back a compaction; the newest that stands, if none is named."""
    if seq is None:
        standing = [
            each.seq for each in api.list_compactions(session_id).compactions if each.stands
        ]
        if not standing:
            raise NotFound("no compaction stands in this session")
        seq = standing[-1]
    return api.undo_compaction(session_id, seq)


def notice(event: SessionCompacted | SessionUncompacted) -> str:
    """Return what readers of the conversation are told when it happens."""
    if isinstance(event, SessionUncompacted):
        return "compaction undone: the model sees the full conversation again"
    by = (
        f"by {clean(event.provider)}/{clean(event.model)}"
        if event.written_by == "model"
        else "by rules"
    )
    return (
        f"{event.turns} older turns were condensed, {event.tokens_before} to {event.tokens_after}"
        f" tokens ({by}); nothing is lost: /uncompact undoes it"
    )


def told(made: Compaction, *, summary: bool) -> Iterator[str]:
    if not made.turns:
        yield f"nothing was condensed: {clean(made.why)}"
        return
    done = f"entry {made.seq}: condensed" if made.applied else "would condense"
    yield (
        f"{done} {made.turns} turns up to entry {made.upto_seq}, {made.tokens_before} to"
        f" {made.tokens_after} tokens"
    )
    if made.fallback:
        yield f"written by rules, because {clean(made.fallback)}"
    if summary:
        yield ""
        yield from clean(made.summary).split("\n")
