"""Untrusted content that was read, from the tapes."""

from collections.abc import Callable, Iterator
from functools import partial

from palyra.core import events
from palyra.core.events import ToolFinished
from palyra.store.database import Tx

_PAGE = 500
Row = tuple[int, int, str, int, bytes]
# How a thread reads the journal: `Database.read_from_thread`.
Read = Callable[[Callable[[Tx], list[Row]]], list[Row]]


def _page(tx: Tx, after: int, since_ms: int) -> list[Row]:
    return tx.all(
        """SELECT position, time_ms, tape, seq, body FROM entries
        WHERE kind = 'tool.finished' AND position > :after AND time_ms >= :since_ms
        ORDER BY position LIMIT :limit""",
        after=after,
        since_ms=since_ms,
        limit=_PAGE,
    )


def untrusted_results(read: Read, since_ms: int) -> Iterator[tuple[int, str, int, ToolFinished]]:
    """Results with an untrusted label, oldest first: time, session, number, event."""
    after = 0
    while rows := read(partial(_page, after=after, since_ms=since_ms)):
        for position, time_ms, tape, seq, body in rows:
            after = position
            if b'"untrusted"' not in body:
                continue
            event = events.decode(body)
            if isinstance(event, ToolFinished) and event.label.integrity == "untrusted":
                yield time_ms, tape, seq, event
