"""Watching over server-sent events. Everything a batch holds goes out as one piece, so that many
deltas cost one write.

The cursor is the client's: `Last-Event-ID`, or `after`. Connecting and reconnecting are the same
thing.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar, cast

import msgspec
from msgspec import Struct

from palyra.agent.gateway import Gateway
from palyra.api.auth import allows
from palyra.api.calls import SSE, ApiCall, Count, Input, Nothing, StreamingResponse, Ulid
from palyra.core.conversation import Conversation
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import Topic
from palyra.core.run_state import TERMINAL
from palyra.core.services import Services
from palyra.store import runs, sessions, tape
from palyra.store.database import Database, Tx
from palyra.store.tokens import TokenScope

HEARTBEAT = b":\n\n"
Batch = Sequence[tuple[int, bytes]]
Batches = AsyncIterator[Batch]
T = TypeVar("T")
_ENDS = ("run.completed", "run.failed", "run.cancelled")
# Who is told that something has changed: whoever may ask what it is now.
NEEDED: dict[Topic, TokenScope] = {
    "certificates": "owner",
    "channels": "viewer",
    "incidents": "viewer",
    "learning": "viewer",
    "schedules": "viewer",
    "settings": "viewer",
    "tasks": "viewer",
    "tokens": "owner",
    "workers": "owner",
}


class Watch(Input, frozen=True, kw_only=True):
    """`until`: the stream ends with this run."""

    after: Count = 0
    until: Ulid = ""


class WatchAll(Input, frozen=True, kw_only=True):
    after: Count = 0


class WatchQuery(Struct, frozen=True):
    """Place where watching begins. `last` is set when the run to wait for has ended already: there
    is nothing to wait for then.
    """

    after: int
    last: int | None = None


async def session_events(call: ApiCall[Watch, Nothing]) -> StreamingResponse:
    return StreamingResponse(SSE, await session_watched(call, _frames), HEARTBEAT)


async def session_watched(
    call: ApiCall[Watch, Nothing], pack: Callable[[Batch], T]
) -> AsyncGenerator[T, None]:
    """Yield what a session's watcher gets, batch by batch, in the shape that a transport makes of
    one.
    """
    session_id, until = call.path["session_id"], call.query.until
    after = last_event_id(call.headers, call.query.after)
    found: list[WatchQuery] = []

    def look(tx: Tx) -> None:
        found.append(_cursor(tx, call.principal, session_id, after, until))

    def glance(conversation: Conversation) -> bool:
        _check_cursor(after, conversation.seq)
        if until and until not in conversation.runs:
            return False  # It has ended, or is none of this session: the store knows.
        found.append(WatchQuery(after))
        return True

    batches = call.services.get(Gateway).watch(call.principal, session_id, after, look, glance)
    # Before the stream begins an error can still be an answer.
    first = await anext(batches)
    return _packed(batches, pack, until, found[0], first)


async def all_events(call: ApiCall[WatchAll, Nothing]) -> StreamingResponse:
    return StreamingResponse(SSE, await all_watched(call, _frames), HEARTBEAT)


async def all_watched(
    call: ApiCall[WatchAll, Nothing], pack: Callable[[Batch], T]
) -> AsyncGenerator[T, None]:
    after = last_event_id(call.headers, call.query.after)
    head = await call.services.get(Database).read(tape.last_position)
    _check_cursor(after, head)
    topics = [topic for topic, needed in NEEDED.items() if allows(call.token.scope, needed)]
    batches = call.services.get(Gateway).watch_all(call.principal, after, topics)
    # Whoever sees the stream begin is told of everything from then on: what they ask for then is
    # not out of date unheard.
    first = await anext(batches)
    return _packed(batches, pack, "", WatchQuery(after), first)


def last_event_id(headers: dict[bytes, bytes], after: int) -> int:
    given = headers.get(b"last-event-id", b"").strip()
    if not given:
        return after
    if not given.isdigit() or len(given) > 15:
        raise InvalidInput(
            "Last-Event-ID is not a number: send the id of the last event that arrived, or none"
        )
    return int(given)


async def cursor_for(
    services: Services, principal: str, session_id: str, after: int, until: str = ""
) -> WatchQuery:
    """Check that the session may be watched from here, before the stream begins and an error has
    nowhere to go.
    """

    return await services.get(Database).read(
        lambda tx: _cursor(tx, principal, session_id, after, until)
    )


def _cursor(tx: Tx, principal: str, session_id: str, after: int, until: str) -> WatchQuery:
    sessions.get(tx, session_id, principal)
    run = runs.get(tx, until, principal) if until else None
    if run is not None and run.session_id != session_id:
        raise NotFound(f"run {until} is not one of this session", run_id=until)
    # Read after the run: if that has ended, its end is not behind this.
    head = tape.head(tx, session_id)
    _check_cursor(after, head)
    return WatchQuery(after, head if run is not None and run.state in TERMINAL else None)


def _check_cursor(after: int, head: int) -> None:
    if after > head:
        raise InvalidInput(
            f"the cursor {after} lies behind the end, which is {head}: start again from an entry"
            " you have",
            head=head,
        )


async def _packed(
    batches: Batches, pack: Callable[[Batch], T], until: str, cursor: WatchQuery, first: Batch = ()
) -> AsyncGenerator[T, None]:
    wanted = until.encode()
    async with aclosing(cast("AsyncGenerator[Batch, None]", batches)) as source:
        if cursor.last is not None and cursor.after >= cursor.last:
            return
        batch: Batch | None = first
        del first
        while batch is not None:
            if wanted and (end := _end(batch, wanted, cursor.last)):
                yield pack(batch[:end])
                return
            if batch:
                yield pack(batch)
            # Nothing that was sent is held while nothing happens.
            batch = None
            batch = await anext(source, None)


def _end(batch: Batch, run_id: bytes, last: int | None) -> int:
    """Return how much of a batch belongs to a stream that ends with a run; 0: it does not end
    here.
    """
    for place, (number, wire) in enumerate(batch, 1):
        if number and (number == last or ends(wire, number, run_id)):
            return place
    return 0


def _frames(batch: Batch) -> bytes:
    return b"".join([frame(number, wire) for number, wire in batch])


def frame(number: int, wire: bytes) -> bytes:
    if number:
        return b"id: %d\nevent: entry\ndata: %b\n\n" % (number, wire)
    return b"event: live\ndata: %b\n\n" % wire


class _Head(Struct, frozen=True):
    kind: str
    run_id: str = ""


_head = msgspec.json.Decoder(_Head)


def ends(wire: bytes, number: int, run_id: bytes) -> bool:
    """Return whether this entry is the end of the run."""
    # Looking for bytes is far cheaper than decoding, and nearly every entry is none.
    if not number or b'"run.' not in wire or run_id not in wire:
        return False
    head = _head.decode(wire)
    return head.run_id.encode() == run_id and head.kind in _ENDS
