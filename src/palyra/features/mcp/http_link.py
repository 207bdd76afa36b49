"""A link over streamable HTTP: every message is a request of its own, answered by JSON or by a
stream of events.

The rule: what was configured goes to the configured address and nowhere else. Redirects are not
followed, cookies are not kept, and each request has its own connection: one that is kept may end in
the moment it is used, and then nobody knows what arrived.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from palyra import __version__
from palyra.core.errors import Unavailable
from palyra.core.sse import EventReader
from palyra.features.mcp import jsonrpc
from palyra.features.mcp.jsonrpc import ErrorAnswer, Malformed, MaybeDelivered, NotSent, OutgoingRpc
from palyra.features.mcp.session import Receiver

if TYPE_CHECKING:
    import aiohttp

OpenHttp = Callable[[], "aiohttp.ClientSession"]

_CONNECT_S = 10.0
_GOODBYE_S = 2.0
_MOST_ERROR_BYTES = 64 << 10
_MOST_RESUMED = 8
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.05, 60.0
_MOST_EXCHANGES = 256
_VISIBLE = re.compile(r"[\x21-\x7e]{1,512}")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_WORDS = {
    401: "it wants to know who is asking; set headers",
    403: "it refuses",
    405: "it does not speak streamable HTTP there",
}


def open_http() -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        auto_decompress=False,
        trust_env=False,
    )


class SessionGone(NotSent):
    """The server has forgotten the session; nothing was done, and a new one is needed."""


class HttpLink:
    modern_first = True

    def __init__(
        self, url: str, headers: Mapping[str, str], open_session: OpenHttp = open_http
    ) -> None:
        self._url = url
        self._headers = dict(headers)
        self._open_session = open_session
        self._http: aiohttp.ClientSession | None = None
        self._receiver: Receiver | None = None
        self._version = ""
        self._session = ""
        self._exchanges: dict[int, asyncio.Task[None]] = {}
        self._before: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._http = self._open_session()

    def send(self, message: OutgoingRpc) -> None:
        if self._http is None:
            raise NotSent("the connection is closed")
        if len(self._tasks) >= _MOST_EXCHANGES:
            raise NotSent("too many messages are on their way to it")
        task = self._in_background(self._exchange(message, self._before))
        if message.method == "notifications/initialized":
            # Requests overtake each other; this one must not be.
            self._before = task
        if message.id is not None:
            self._exchanges[message.id] = task

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return ()  # It is on another machine, or at least not one of ours.

    def withdraw(self, request_id: int, notice: OutgoingRpc | None) -> None:
        task = self._exchanges.pop(request_id, None)
        if task is not None:
            task.cancel()
        # Since the handshake is gone, ending the request is the notice.
        if notice is not None and self._version != jsonrpc.MODERN:
            with suppress(NotSent):
                self.send(notice)

    def agreed(self, version: str, *, listens: bool = False) -> None:
        self._version = version
        if listens:
            self._in_background(self._listen())

    async def close(self) -> None:
        http, self._http = self._http, None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if http is None:
            return
        try:
            if self._session:
                await self._say_goodbye(http)
        finally:
            await http.close()

    async def _say_goodbye(self, http: "aiohttp.ClientSession") -> None:
        import aiohttp

        try:
            async with (
                asyncio.timeout(_GOODBYE_S),
                http.delete(self._url, headers=self._common(), allow_redirects=False),
            ):
                return
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError):
            return  # It will forget the session by itself.

    def _in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _exchange(self, message: OutgoingRpc, before: "asyncio.Task[None] | None") -> None:
        assert self._receiver is not None
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._post(message)
        except Unavailable as why:
            if message.id is not None:
                self._receiver.lost(message.id, why)
            if isinstance(why, NotSent):
                # Nobody is there, or nobody who knows us: the conversation is over, and a new one
                # may begin.
                self._receiver.closed(why.message, frozenset())
        finally:
            if message.id is not None:
                self._exchanges.pop(message.id, None)

    async def _post(self, message: OutgoingRpc) -> None:
        headers = self._common() | dict(message.headers)
        headers |= {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self._version == jsonrpc.MODERN and message.method:
            headers["Mcp-Method"] = message.method
            if message.name:
                headers["Mcp-Name"] = header_value(message.name)
        async with self._request("POST", headers, message.body) as answer:
            if answer.status == 202 and message.id is None:
                return
            await self._check(answer)
            if message.method == "initialize":
                self._session = _session_id(answer)
            if answer.content_type == "text/event-stream":
                events = EventReader(jsonrpc.MOST_MESSAGE_BYTES)
                done = await self._follow(answer, events, message.id)
            else:
                found = await _whole(answer)
                done = any(
                    isinstance(each, jsonrpc.RpcResponse | jsonrpc.RpcError)
                    and each.id == message.id
                    for each in found
                )
                for each in found:
                    self._deliver(each)
                if not done and message.id is not None:
                    raise MaybeDelivered("it answered another question")
                return
        if not done and message.id is not None:
            await self._resume(events, message.id)

    async def _resume(self, events: EventReader, request_id: int) -> None:
        """The stream broke before the answer. A server that numbers its events can go on with it
        where it was.
        """
        for _ in range(_MOST_RESUMED):
            if not events.last_id or self._version == jsonrpc.MODERN:
                break
            await asyncio.sleep(_wait(events, 1.0))
            headers = self._common() | {
                "Accept": "text/event-stream",
                "Last-Event-ID": header_value(events.last_id),
            }
            async with self._request("GET", headers) as answer:
                await self._check(answer)
                if answer.content_type != "text/event-stream":
                    break
                if await self._follow(answer, events, request_id):
                    return
        raise MaybeDelivered("the connection ended before the answer")

    async def _follow(
        self, answer: "aiohttp.ClientResponse", events: EventReader, request_id: int | None
    ) -> bool:
        """Deliver what a stream says; whether the answer to this request was among it."""
        import aiohttp

        try:
            async for chunk in answer.content.iter_any():
                for event in events.feed(chunk):
                    if event.event != "message":
                        continue
                    for message in _messages(event.data):
                        self._deliver(message)
                        if (
                            isinstance(message, jsonrpc.RpcResponse | jsonrpc.RpcError)
                            and message.id == request_id is not None
                        ):
                            return True
                await asyncio.sleep(0)
        except (aiohttp.ClientError, OSError):
            return False
        return False

    def _deliver(self, message: jsonrpc.Message) -> None:
        assert self._receiver is not None
        self._receiver.received(message)

    async def _check(self, answer: "aiohttp.ClientResponse") -> None:
        """Let only a proper answer pass; say what each other status means for whether something was
        done.
        """
        status = answer.status
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise MaybeDelivered("it compresses its answers, although it was asked not to")
        if status == 200:
            return
        if status == 404 and self._session:
            raise SessionGone("it has forgotten the session")
        if 400 <= status < 500:
            for found in _messages(await _body(answer, _MOST_ERROR_BYTES, cut=True)):
                if isinstance(found, jsonrpc.RpcError):
                    raise ErrorAnswer(found.code, found.message, found.data)
            raise ErrorAnswer(
                0, f"HTTP status {status}: {_WORDS.get(status, 'it does not take the request')}"
            )
        if 300 <= status < 400:
            raise NotSent(
                f"it answers with a redirect (HTTP status {status}), which is not followed; set the"
                " final url"
            )
        raise MaybeDelivered(f"it answered with HTTP status {status}")

    async def _listen(self) -> None:
        """Hear of changes for as long as the server offers it."""
        wait, events = 1.0, EventReader(jsonrpc.MOST_MESSAGE_BYTES)
        while True:
            headers = self._common() | {"Accept": "text/event-stream"}
            if events.last_id:
                headers["Last-Event-ID"] = header_value(events.last_id)
            try:
                async with self._request("GET", headers) as answer:
                    await self._check(answer)
                    if answer.content_type != "text/event-stream":
                        return
                    wait = 1.0
                    if not events.last_id:
                        # What happened before anybody listened, nobody was told.
                        self._deliver(
                            jsonrpc.RpcNotification("notifications/tools/list_changed", {})
                        )
                    await self._follow(answer, events, None)
            except ErrorAnswer:
                return
            except SessionGone as why:
                assert self._receiver is not None
                self._receiver.closed(why.message, frozenset())
                return
            except Unavailable:
                wait = min(wait * 2, _LONGEST_WAIT_S)
            await asyncio.sleep(_wait(events, wait))

    def _common(self) -> dict[str, str]:
        headers = {
            "User-Agent": f"palyra/{__version__}",
            "Accept-Encoding": "identity",
            **self._headers,
        }
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        return headers

    @asynccontextmanager
    async def _request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> "AsyncIterator[aiohttp.ClientResponse]":
        """One request whose connection is gone when the block is left. Raises NotSent or
        InDoubt.
        """
        import aiohttp

        if self._http is None:
            raise NotSent("the connection is closed")
        try:
            answer = await self._http.request(
                method, self._url, headers=headers, data=body, allow_redirects=False
            )
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.InvalidURL,
        ) as error:
            raise NotSent(f"it cannot be reached: {_brief(error)}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise MaybeDelivered(f"the connection broke: {_brief(error)}") from error
        try:
            yield answer
        finally:
            answer.close()


def _brief(error: Exception) -> str:
    return jsonrpc.clean(
        getattr(error, "strerror", None) or str(error) or type(error).__name__, 300
    )


def _wait(events: EventReader, otherwise_s: float) -> float:
    asked = events.retry_ms / 1000 if events.retry_ms is not None else otherwise_s
    return min(max(asked, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)


def _session_id(answer: "aiohttp.ClientResponse") -> str:
    given = str(answer.headers.get("Mcp-Session-Id", ""))
    if given and not _VISIBLE.fullmatch(given):
        raise MaybeDelivered("its session id has characters that cannot be sent back")
    return given


def _messages(data: bytes) -> list[jsonrpc.Message]:
    try:
        return jsonrpc.read(data) if data.strip() else []
    except Malformed:
        return []


async def _whole(answer: "aiohttp.ClientResponse") -> list[jsonrpc.Message]:
    data = await _body(answer, jsonrpc.MOST_MESSAGE_BYTES)
    if answer.content_type != "application/json":
        raise MaybeDelivered(
            f"it answered with {jsonrpc.clean(answer.content_type, 64)} instead of JSON or events"
        )
    found = _messages(data)
    if not found:
        raise MaybeDelivered("it answered with something that is not MCP")
    return found


async def _body(answer: "aiohttp.ClientResponse", most: int, *, cut: bool = False) -> bytes:
    import aiohttp

    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in answer.content.iter_any():
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                if cut:
                    break
                raise MaybeDelivered(f"it sent a message of more than {most:,} bytes")
    except (aiohttp.ClientError, OSError) as error:
        raise MaybeDelivered(f"the connection broke: {_brief(error)}") from error
    return b"".join(parts)[:most]


def header_value(value: str) -> str:
    """A value as a header can carry it: itself, or its bytes in Base64 with the marks that MCP
    gives them.
    """
    if _PLAIN.fullmatch(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="
