"""The daemon for a program that awaits."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from palyra.client.async_verbs import AsyncVerbs
from palyra.client.calling import Gives, address, read
from palyra.client.discovery import DaemonAddress
from palyra.client.http import (
    HttpReply,
    ServerSentEvent,
    answer_of,
    check,
    decode,
    ends,
    headers_for,
    trust,
    unreachable,
    with_query,
)
from palyra.client.sync import Answered, finder
from palyra.core.errors import LimitExceeded, Unavailable
from palyra.core.events import Entry, LiveEvent
from palyra.core.sse import EventReader

_ANSWER_S = 60.0
_CONNECT_S = 5.0
_JSON = "application/json"
# The daemon sends a heartbeat every 15 seconds: three missed ones are a dead connection.
_STREAM = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_read=45)
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
_PATIENCE_S = 60.0
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 2.0
_TRIES = 5


class AsyncClient(AsyncVerbs):
    """Client for one event loop; as many calls and watches at once as are wanted. Arguments as
    those of `Client`.
    """

    def __init__(
        self, url: str = "", token: str = "", *, home: str | Path = "", authority: str = ""
    ) -> None:
        self._find = finder(url, token, home, authority)
        self._sessions: list[aiohttp.ClientSession] = []
        self._answer_s = _ANSWER_S

    def within(self, seconds: float) -> "AsyncClient":
        """Equivalent of `Client.within`; the usual time is 60 seconds."""
        other = copy.copy(self)
        other._answer_s = seconds
        return other

    async def call(self, method: str, path: str, given: Any, gives: Gives) -> Any:
        where, body = address(method, path, given)
        return read(
            await self._ask(method, where, None if body is None else msgspec.json.encode(body)),
            gives,
        )

    async def upload(
        self, method: str, path: str, given: Any, data: bytes, media: str, gives: Gives
    ) -> Any:
        return read(await self._ask(method, with_query(path, given or {}), data, media), gives)

    async def fetch(self, method: str, path: str, given: Any) -> bytes:
        where, body = address(method, path, given)
        return (
            await self._ask(method, where, None if body is None else msgspec.json.encode(body))
        ).body

    async def pieces(self, method: str, path: str, given: Any) -> AsyncIterator[bytes]:
        async for piece in self._stream(method, address(method, path, given)[0], None, {}):
            yield piece

    async def events(self, method: str, path: str, given: Any) -> AsyncIterator[ServerSentEvent]:
        where, body = address(method, path, given)
        async for message in self._messages(
            method, where, None if body is None else msgspec.json.encode(body), {}
        ):
            yield message

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any endpoint, with plain JSON both ways."""
        data = None if body is None else msgspec.json.encode(body)
        answer = (await self._ask(method, with_query(path, query), data)).body
        return msgspec.json.decode(answer) if answer else None

    async def _ask(
        self, method: str, path: str, data: bytes | None, media: str = _JSON
    ) -> HttpReply:
        timeout = aiohttp.ClientTimeout(total=self._answer_s, connect=_CONNECT_S)
        for left in range(_TRIES, -1, -1):
            endpoint = self._find()
            try:
                async with self._send(
                    endpoint, method, path, data, timeout, headers_for(endpoint, data, media)
                ) as response:
                    answer: bytes = await response.read()
            except _BROKEN as error:
                raise unreachable(endpoint, error) from error
            try:
                check(response.status, answer)
            except LimitExceeded as error:
                # Too many at once: nothing was done, and the daemon says how long to wait.
                pause_ms = error.details.get("retry_after_ms", 0)
                if not pause_ms or not left:
                    raise
                await asyncio.sleep(pause_ms / 1000)
                continue
            return HttpReply(response.status, answer)
        raise AssertionError("the last try returns or raises")

    def _send(
        self,
        endpoint: DaemonAddress,
        method: str,
        path: str,
        data: bytes | None,
        timeout: aiohttp.ClientTimeout,
        headers: dict[str, str],
    ) -> Any:
        if not self._sessions:
            self._sessions.append(aiohttp.ClientSession())
        secure = trust(endpoint) if endpoint.url.startswith("https:") else True
        where = URL(f"{endpoint.url}{path}", encoded=True)
        how = {"data": data, "headers": headers, "timeout": timeout, "ssl": secure}
        return self._sessions[0].request(method, where, allow_redirects=False, **how)  # type: ignore[arg-type]

    async def watch(
        self,
        session_id: str,
        after: int = 0,
        *,
        until: str = "",
        patience_s: float | None = _PATIENCE_S,
    ) -> AsyncIterator[Entry | LiveEvent]:
        """Equivalent of `Client.watch`."""
        path = f"/v1/sessions/{session_id}/events" + (f"?until={until}" if until else "")
        cursor, waited, wait = after, 0.0, _FIRST_WAIT_S
        while True:
            try:
                async for message in self._messages(
                    "GET", path, None, {"Last-Event-ID": str(cursor)}
                ):
                    waited, wait = 0.0, _FIRST_WAIT_S
                    if message.id and int(message.id) <= cursor:
                        continue
                    cursor = int(message.id) if message.id else cursor
                    item = decode(message)
                    if isinstance(item, Entry | LiveEvent):
                        yield item
                        if until and ends(item, until):
                            return
            except (Unavailable, LimitExceeded):
                if patience_s is not None and waited >= patience_s:
                    raise
            await asyncio.sleep(wait)
            waited, wait = waited + wait, min(wait * 2, _LONGEST_WAIT_S)

    async def _messages(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> AsyncIterator[ServerSentEvent]:
        """The events of one connection, until it ends, however it ends."""
        reader = EventReader()
        async for piece in self._stream(
            method, path, data, {"Accept": "text/event-stream", **headers}
        ):
            for message in reader.feed(piece):
                yield message

    async def _stream(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> AsyncIterator[bytes]:
        endpoint = self._find()
        try:
            async with self._send(
                endpoint, method, path, data, _STREAM, headers_for(endpoint, data) | headers
            ) as response:
                if response.status != 200:
                    check(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except _BROKEN as error:
            raise unreachable(endpoint, error) from error

    async def ask(
        self,
        text: str,
        session_id: str = "",
        *,
        on: Callable[[Entry | LiveEvent], object] | None = None,
        **more: Any,
    ) -> Answered:
        """Equivalent of `Client.ask`."""
        session_id = session_id or (await self.resolve_session()).session_id
        submitted = await self.submit(session_id, text=text, **more)
        async for item in self.watch(session_id, submitted.seq, until=submitted.run_id):
            if on is not None:
                on(item)
            if isinstance(item, Entry) and ends(item, submitted.run_id):
                return Answered(answer_of(item), session_id, submitted.run_id)
        raise AssertionError("a watch ends with its run")

    async def close(self) -> None:
        for each in self._sessions:
            await each.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
