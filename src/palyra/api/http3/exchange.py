"""One request over HTTP/3 and its answer, as ASGI knows them. Both ways wait for the slower
side.
"""

import asyncio
import logging
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aioquic.h3.connection import ErrorCode

from palyra.api.calls import Scope

if TYPE_CHECKING:
    from palyra.api.http3.connection import Http3Connection

log = logging.getLogger("palyra.quic")

PIECE = 16 << 10
# These belong to a connection, and a stream has none of its own.
_NOT_HERE = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})


class Exchange:
    """Small: a thousand watchers are a thousand of these, and most of them wait."""

    __slots__ = (
        "_body",
        "_complete",
        "_connection",
        "_head",
        "_news",
        "_room",
        "_said",
        "_scope",
        "_whole",
        "gone",
        "stream_id",
    )

    def __init__(self, connection: "Http3Connection", stream_id: int, scope: Scope) -> None:
        self._connection = connection
        self.stream_id = stream_id
        self._scope: Scope | None = scope
        self._head = scope["method"] == "HEAD"
        self._body = b""
        # Made by who waits: for something to come, and for room to send.
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        # The request has come whole; that it has was said; the answer has left whole; nobody is
        # there any more.
        self._whole = self._said = self._complete = self.gone = False

    def heard(self, data: bytes, *, whole: bool) -> None:
        if data and not self.gone:
            self._body += data
            self._connection.hold(self.stream_id, len(data))
        self._whole = self._whole or whole
        _wake(self._news)

    def lost(self) -> None:
        """The client gave up, or is gone."""
        self.gone = True
        _wake(self._news)
        _wake(self._room)

    def drained(self) -> None:
        _wake(self._room)

    async def run(self) -> None:
        connection, stream_id = self._connection, self.stream_id
        scope, self._scope = self._scope, None
        assert scope is not None
        try:
            await connection.app(scope, self._receive, self._send)
        except Exception:
            log.exception("an answer over HTTP/3 broke off")
        finally:
            if not self.gone:
                if not self._complete:
                    connection.quic.reset_stream(stream_id, ErrorCode.H3_INTERNAL_ERROR)
                if not self._whole:
                    # The answer does not depend on the rest of the request.
                    connection.quic.stop_stream(stream_id, ErrorCode.H3_NO_ERROR)
            connection.ended(self)

    async def _receive(self) -> dict[str, Any]:
        while not self.gone and not self._body and (self._said or not self._whole):
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self.gone:
            return {"type": "http.disconnect"}
        data, self._body = self._body, b""
        self._connection.take(self.stream_id, len(data))
        self._said = self._whole
        return {"type": "http.request", "body": data, "more_body": not self._whole}

    async def _send(self, message: Any) -> None:
        if self.gone or self._complete:
            return
        if message["type"] == "http.response.start":
            # At once: a stream may have nothing to say for a while, and its client wants to know
            # that it is open.
            self._connection.send_headers(self.stream_id, _headers(message))
            return
        body = b"" if self._head else message.get("body", b"")
        more = message.get("more_body", False)
        for at in range(0, len(body), PIECE):
            await self._make_room()
            if self._is_gone():
                return
            self._complete = not more and at + PIECE >= len(body)
            self._connection.send_data(self.stream_id, body[at : at + PIECE], end=self._complete)
        if not more and not self._complete:
            self._complete = True
            self._connection.send_data(self.stream_id, b"", end=True)

    def _is_gone(self) -> bool:
        return self.gone

    async def _make_room(self) -> None:
        while not self.gone and self._connection.crowded(self.stream_id):
            self._room = asyncio.get_running_loop().create_future()
            self._connection.waits(self)
            await self._room


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _headers(start: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    given = [(name, value) for name, value in start["headers"] if name not in _NOT_HERE]
    return [
        (b":status", b"%d" % start["status"]),
        (b"date", formatdate(time.time(), usegmt=True).encode()),
        *given,
    ]


def scope_of(
    headers: list[tuple[bytes, bytes]], client: tuple[str, int], server: tuple[str, int]
) -> Scope:
    """A request's headers as ASGI has them: what HTTP/3 says before them, in its place; cookies in
    one piece.
    """
    said = {name: value for name, value in headers if name.startswith(b":")}
    authority = said.get(b":authority", b"")
    given: list[tuple[bytes, bytes]] = [(b"host", authority)]
    cookies = []
    for name, value in headers:
        if name == b"cookie":
            cookies.append(value)
        elif not name.startswith(b":") and (name, value) != (b"host", authority):
            given.append((name, value))
    if cookies:
        given.append((b"cookie", b"; ".join(cookies)))
    raw, _, query = said.get(b":path", b"").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "3",
        "method": said[b":method"].decode("latin-1"),
        "scheme": "https",
        "path": unquote(raw.decode("latin-1")),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": given,
        "client": client,
        "server": server,
    }
