"""Text that came in small pieces, put together: a message costs more than its bytes, on both sides
of a connection.

The first piece of a model's turn leaves at once; what comes in the moment after it goes out as one.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from palyra.core.events import LiveEvent, ModelDelta

# How long after live events nothing is sent.
GATHER_S = 0.02

decode_live = msgspec.json.Decoder(LiveEvent).decode
_encode = msgspec.json.Encoder().encode


def wires(batch: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """A batch of (number, wire) with fewer live events, which have the number 0."""
    for number, group in groupby(batch, key=lambda item: item[0]):
        items = list(group)
        if number or len(items) == 1:
            yield from items
        else:
            yield from (
                (0, _encode(event)) for event in joined([decode_live(wire) for _, wire in items])
            )


def joined(values: list[Any]) -> Iterator[Any]:
    """The same with the deltas that follow each other as one."""
    texts: list[str] = []
    first: ModelDelta | None = None
    for value in values:
        if first is not None and isinstance(value, ModelDelta) and _continues(first, value):
            texts.append(value.text or value.reasoning)
            continue
        if first is not None:
            yield _with(first, texts)
            first = None
        if isinstance(value, ModelDelta) and not value.call:
            first, texts = value, []
        else:
            yield value
    if first is not None:
        yield _with(first, texts)


def _continues(first: ModelDelta, value: ModelDelta) -> bool:
    same = (
        first.run_id == value.run_id
        and first.turn == value.turn
        and not value.whole
        and not value.call
    )
    return same and bool(first.text) != bool(first.reasoning) and _said(first) == _said(value)


def _said(delta: ModelDelta) -> tuple[bool, bool]:
    return bool(delta.text), bool(delta.reasoning)


def _with(first: ModelDelta, texts: list[str]) -> ModelDelta:
    if not texts:
        return first
    more = "".join(texts)
    if first.text:
        return msgspec.structs.replace(first, text=first.text + more)
    return msgspec.structs.replace(first, reasoning=first.reasoning + more)
