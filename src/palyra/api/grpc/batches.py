"""What happened, as messages: many in one, and text that came in small pieces put together. A
message costs more than its bytes.

The pieces of a model's turn are gathered for a moment; an entry is sent when it comes.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any

import msgspec

from palyra.api.delta_batching import GATHER_S, decode_live, joined
from palyra.api.grpc.codec import filler
from palyra.api.grpc.verbs import HAPPENED
from palyra.api.watch import Batch
from palyra.core.events import Entry
from palyra.v1 import events_pb2

_MOST_ITEMS = 256
_MOST_BYTES = 512 << 10
_SHARED_BYTES = 8 << 10

_entry = msgspec.json.Decoder(Entry).decode
_OPTIONS = {type_: (option, filler(type_)) for option, type_ in HAPPENED.options}


def message_of(*values: Any) -> bytes:
    """One message with all of these."""
    batch = events_pb2.Batch()
    for value in values:
        option, fill = _OPTIONS[type(value)]
        inner = getattr(batch.happened.add(), option)
        inner.SetInParent()
        fill(inner, value)
    return bytes(batch.SerializeToString())


def messages_of(batch: Batch) -> Sequence[bytes]:
    """A batch as messages, none of them too large to be read."""
    if sum(len(wire) for _, wire in batch) <= _SHARED_BYTES:
        return _shared(tuple(batch))
    return tuple(_made(batch))


@lru_cache(maxsize=256)
def _shared(batch: tuple[tuple[int, bytes], ...]) -> Sequence[bytes]:
    """Made once for all who watch the same session: they are told the same at the same time."""
    return tuple(_made(batch))


def _made(batch: Batch) -> Iterator[bytes]:
    held: list[Any] = []
    size = 0
    for number, wire in batch:
        if held and (size + len(wire) > _MOST_BYTES or len(held) >= _MOST_ITEMS):
            yield message_of(*joined(held))
            held, size = [], 0
        held.append(_entry(wire) if number else decode_live(wire))
        size += len(wire)
    if held:
        yield message_of(*joined(held))


async def pump(
    batches: AsyncGenerator[Batch, None], write: Callable[[bytes], Awaitable[None]]
) -> None:
    """Send what happens until it ends. `write` returns when there is room for more, so that a slow
    reader costs no memory.
    """
    async with aclosing(batches) as source:
        async for batch in source:
            for message in messages_of(batch):
                await write(message)
            live = bool(batch) and not batch[-1][0]
            # Nothing that was sent is held while nothing happens.
            batch = message = b""  # type: ignore[assignment]
            if live:
                await asyncio.sleep(GATHER_S)
