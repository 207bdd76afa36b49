"""Sending answers: whole ones, and streams that end as soon as the client, the token or the daemon
does.

Text that came in small pieces, put together: a message costs more than its bytes, on both sides
of a connection.

The first piece of a model's turn leaves at once; what comes in the moment after it goes out as one.

Long work on a thread, told over server-sent events: `progress` now and then, `report` at the
end. It stops when nobody waits.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any

import msgspec

from palyra.api.calls import (
    SSE,
    Headers,
    HttpResponse,
    Receive,
    Send,
    StreamingResponse,
    encode,
    ok,
)
from palyra.api.limits import OpenStreams, StreamEnd
from palyra.api.watch import HEARTBEAT
from palyra.core.events import LiveEvent, ModelDelta
from palyra.core.services import Services
from palyra.store.tokens import Token
from palyra.system.clock import Clock

# Work that says from time to time how far it is.
Work = Callable[[Callable[[int], None]], Any]


class _Abandoned(Exception):
    """Signal that nobody waits for this any more."""


async def told(
    headers: Mapping[bytes, bytes], work: Work, progress: Callable[[int], Any]
) -> HttpResponse | StreamingResponse:
    """The result as JSON, or as a stream if the caller asks for one; `progress` makes an event of
    how far the work is.
    """
    if SSE in headers.get(b"accept", b""):
        return StreamingResponse(SSE, _events(work, progress), HEARTBEAT)
    return ok(await asyncio.to_thread(work, lambda count: None))


async def _events(work: Work, progress: Callable[[int], Any]) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    seen: asyncio.Queue[int] = asyncio.Queue()
    abandoned = False

    def so_far(count: int) -> None:
        if abandoned:
            raise _Abandoned
        loop.call_soon_threadsafe(seen.put_nowait, count)

    task = asyncio.create_task(asyncio.to_thread(work, so_far))
    try:
        while not task.done():
            waiting = asyncio.create_task(seen.get())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if waiting.done() and not waiting.cancelled():
                yield b"event: progress\ndata: %b\n\n" % encode(progress(waiting.result()))
        yield b"event: report\ndata: %b\n\n" % encode(task.result())
    finally:
        abandoned = True
        task.cancel()


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


_SECURITY: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_CSP = (
    b"content-security-policy",
    b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
)
_ALL = [*_SECURITY, _CSP]
_REPLACEABLE = {b"content-security-policy", b"cache-control", b"x-frame-options"}


def headers_of(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The security headers of every answer, and the answer's own, which may replace the content
    policy, how long it is kept and who may frame it.
    """
    if not headers:
        return [*_ALL]
    own = {name for name, _ in headers} & _REPLACEABLE
    return [*(each for each in _ALL if each[0] not in own), *headers]


async def send_answer(send: Send, answer: HttpResponse, extra: Headers = ()) -> None:
    headers = headers_of((*answer.headers, *extra))
    if answer.status != 204:
        headers.append((b"content-type", answer.media))
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


class place:
    """A place for a stream, which ends with the token. A class, because a generator would weigh
    more, for as long as it lasts.
    """

    __slots__ = ("_ended", "_services", "_timer", "_token")

    def __init__(self, services: Services, token: Token) -> None:
        self._services = services
        self._token = token
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> StreamEnd:
        token = self._token
        self._ended = ended = self._services.get(OpenStreams).enter(token.token_id)
        if token.expires_ms:
            left_ms = token.expires_ms - self._services.get(Clock).now_ms()
            self._timer = asyncio.get_running_loop().call_later(left_ms / 1000, ended.set)
        return ended

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._services.get(OpenStreams).leave(self._token.token_id, self._ended)


async def send_stream(
    streaming: StreamingResponse,
    receive: Receive,
    send: Send,
    *,
    ended: StreamEnd,
    heartbeat_s: float,
    extra: Headers = (),
) -> None:
    """Pass pieces on until there are no more, the client goes away, or `ended` is set."""
    headers = [*headers_of((*streaming.headers, *extra)), (b"content-type", streaming.media)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    pump = asyncio.create_task(_pump(streaming, send))
    left = asyncio.create_task(gone(receive))
    try:
        while True:
            done, _ = await asyncio.wait(
                {pump, left, ended.future}, timeout=heartbeat_s, return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                break
            if streaming.heartbeat:
                await send(
                    {"type": "http.response.body", "body": streaming.heartbeat, "more_body": True}
                )
    finally:
        for task in (pump, left):
            task.cancel()
        await asyncio.wait({pump, left})
    if not left.cancelled() and pump.cancelled() and streaming.left is not None:
        await streaming.left()
    if not pump.cancelled():
        # Whatever went wrong in the middle of a stream is seen by the client as a stream that
        # breaks off.
        pump.result()
    if not left.done() or left.cancelled():
        await send({"type": "http.response.body", "body": b""})


async def _pump(streaming: StreamingResponse, send: Send) -> None:
    async with aclosing(streaming.chunks) as chunks:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            # Nothing that was sent is held while nothing happens.
            chunk = b""


async def gone(receive: Receive) -> None:
    """Wait until the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
