"""Sending answers: whole ones, and streams that end as soon as the client, the token or the daemon
does.
"""

import asyncio
from contextlib import aclosing

from palyra.api.calls import Headers, HttpResponse, Receive, Send, StreamingResponse
from palyra.api.limits import OpenStreams, StreamEnd
from palyra.core.services import Services
from palyra.store.tokens import Token
from palyra.system.clock import Clock

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
_REPLACEABLE = {b"content-security-policy", b"cache-control"}


def headers_of(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The security headers of every answer, and the answer's own, which may replace the content
    policy and how long it is kept.
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
    """Until the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
