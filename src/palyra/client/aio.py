"""The daemon for a program that awaits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from palyra.client.async_verbs import AsyncVerbs
from palyra.client.calling import address, read
from palyra.client.discovery import DaemonAddress
from palyra.client.http import (
    ServerSentEvent,
    check,
    headers_for,
    parse,
    trust,
    unreachable,
    with_query,
)
from palyra.client.stream import answer_of, decode, ends
from palyra.client.sync import Answered, finder
from palyra.core.errors import LimitExceeded, Unavailable
from palyra.core.events import Entry, LiveEvent

_ANSWER = aiohttp.ClientTimeout(total=60, connect=5)
# The daemon sends a heartbeat every 15 seconds: three missed ones are a dead connection.
_STREAM = aiohttp.ClientTimeout(total=None, connect=5, sock_read=45)
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
_PATIENCE_S = 60.0
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 2.0
_TRIES = 5


class AsyncClient(AsyncVerbs):
    """For one event loop; as many calls and watches at once as are wanted. Arguments as those of
    `Client`.
    """

    def __init__(
        self, url: str = "", token: str = "", *, home: str | Path = "", authority: str = ""
    ) -> None:
        self._find = finder(url, token, home, authority)
        self._http: aiohttp.ClientSession | None = None

    async def call(self, method: str, path: str, given: Any, gives: str) -> Any:
        where, body = address(method, path, given)
        return read(await self._ask(method, where, body), gives)

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any endpoint, with plain JSON both ways."""
        answer = await self._ask(method, with_query(path, query), body)
        return msgspec.json.decode(answer) if answer else None

    async def _ask(self, method: str, path: str, body: Any) -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        for left in range(_TRIES, -1, -1):
            endpoint = self._find()
            try:
                async with self._send(endpoint, method, path, data, _ANSWER) as response:
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
            return answer
        raise AssertionError("the last try returns or raises")

    def _send(
        self,
        endpoint: DaemonAddress,
        method: str,
        path: str,
        data: bytes | None,
        timeout: aiohttp.ClientTimeout,
        **headers: str,
    ) -> Any:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        sent = headers_for(endpoint, data) | headers
        secure = trust(endpoint) if endpoint.url.startswith("https:") else True
        return self._http.request(
            method, f"{endpoint.url}{path}", data=data, headers=sent, timeout=timeout, ssl=secure
        )

    async def watch(
        self,
        session_id: str,
        after: int = 0,
        *,
        until: str = "",
        patience_s: float | None = _PATIENCE_S,
    ) -> AsyncIterator[Entry | LiveEvent]:
        """As `Client.watch`."""
        path = f"/v1/sessions/{session_id}/events" + (f"?until={until}" if until else "")
        cursor, waited, wait = after, 0.0, _FIRST_WAIT_S
        while True:
            try:
                async for message in self._messages(path, cursor):
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

    async def _messages(self, path: str, cursor: int) -> AsyncIterator[ServerSentEvent]:
        """The events of one connection, until it ends, however it ends."""
        endpoint = self._find()
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(cursor)}
        try:
            async with self._send(endpoint, "GET", path, None, _STREAM, **headers) as response:
                if response.status != 200:
                    check(response.status, await response.read())
                kept = b""
                async for piece in response.content.iter_any():
                    *blocks, kept = (kept + piece).split(b"\n\n")
                    for block in blocks:
                        for message in parse(iter([*block.split(b"\n"), b""])):
                            yield message
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
        """As `Client.ask`."""
        session_id = session_id or (await self.resolve_session()).session_id
        submitted = await self.submit(session_id, text=text, **more)
        async for item in self.watch(session_id, submitted.seq, until=submitted.run_id):
            if on is not None:
                on(item)
            if isinstance(item, Entry) and ends(item, submitted.run_id):
                return Answered(answer_of(item), session_id, submitted.run_id)
        raise AssertionError("a watch ends with its run")

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
