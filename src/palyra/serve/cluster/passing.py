"""What a node does for people while another one leads: it passes every request on, as it comes and
as the answer comes, over a link on which both nodes have shown that they have the same secret.

Only what is about the node itself it answers by itself. Where a client connects from is told to the
leader, which believes it from a node alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from palyra.api.about import Health, Ready
from palyra.api.calls import FROM_NODE, HttpResponse, Receive, Scope, Send, ok
from palyra.api.errors import body_of, status_of
from palyra.api.guard import HostCheck
from palyra.api.http_server import ServedApp
from palyra.api.intake import Pool
from palyra.api.streams import send_answer
from palyra.core.errors import PalyraError, Unavailable
from palyra.serve.cluster.keys import NODE_NAME, ClusterKeys

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger("palyra.cluster")

_CLIENT = b"x-palyra-client"
_CONNECT_S = 5.0
_IDLE_S = 20.0
_RETRY_MS = 1_000
# Of one connection, and not of the request.
_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        _CLIENT,
    }
)
_OF_UPGRADE = b"sec-websocket-"


class PassingApp:
    """The application of a node that stands by. `leader` gives the address of the one that leads,
    or raises Unavailable.
    """

    def __init__(
        self, hosts: HostCheck, leader: Callable[[], str], keys: ClusterKeys, version: str
    ) -> None:
        self.strangers = Pool()
        self._hosts = hosts
        self._leader = leader
        self._keys = keys
        self._version = version
        self._session: aiohttp.ClientSession | None = None
        self._open: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if scope["type"] == "http":
                await self._http(scope, receive, send)
            elif scope["type"] == "websocket":
                await self._websocket(scope, receive, send)
        except asyncio.CancelledError:
            # Cut, because another node leads: the client asks again, and goes on where it was.
            if task.cancelling() > 1:
                raise
        finally:
            self._open.discard(task)

    def close(self) -> None:
        self.cut()

    def cut(self) -> None:
        """Break off everything that is passed on: who was asked leads no more."""
        for each in tuple(self._open):
            each.cancel()

    async def end(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _client(self) -> "aiohttp.ClientSession":
        if self._session is None:
            import aiohttp

            connector = aiohttp.TCPConnector(
                ssl=self._keys.calling(), limit=0, keepalive_timeout=_IDLE_S
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in ("/healthz", "/readyz"):
            await send_answer(send, self._about(scope["path"]))
            return
        try:
            self._hosts.check_host(scope["headers"], dict(scope["headers"]))
            url = self._url(scope)
        except PalyraError as error:
            await send_answer(send, _refused(error))
            return
        await self._pass_on(url, scope, receive, send)

    def _about(self, path: str) -> HttpResponse:
        if path == "/healthz":
            return ok(Health("ok", self._version))
        try:
            self._leader()
        except Unavailable as error:
            return ok(Ready("unavailable", error.message), 503)
        return ok(Ready("ready"))

    def _url(self, scope: Scope) -> Any:
        import yarl

        query = scope["query_string"]
        path = scope["raw_path"].decode("latin-1") + (
            f"?{query.decode('latin-1')}" if query else ""
        )
        return yarl.URL(f"https://{self._leader()}{path}", encoded=True)

    async def _pass_on(self, url: Any, scope: Scope, receive: Receive, send: Send) -> None:
        import aiohttp

        task = asyncio.current_task()
        assert task is not None
        gone = asyncio.Event()
        headers = _passed(scope)
        has_body = any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in scope["headers"]
        )
        begun = False
        watching = None if has_body else asyncio.create_task(_watch(receive, gone, task))
        try:
            async with self._client().request(
                scope["method"],
                url,
                headers=headers,
                data=_body(receive, gone, task) if has_body else None,
                allow_redirects=False,
                server_hostname=NODE_NAME,
            ) as answer:
                if watching is None:
                    watching = asyncio.create_task(_watch(receive, gone, task))
                await send(
                    {
                        "type": "http.response.start",
                        "status": answer.status,
                        "headers": _answered(answer.raw_headers),
                    }
                )
                begun = True
                async for piece in answer.content.iter_any():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except (aiohttp.ClientError, OSError) as error:
            log.info("the leader broke off: %s", error)
            if not begun:
                await send_answer(send, _refused(_broken(error)))
        except asyncio.CancelledError:
            if gone.is_set() or begun:
                return  # What has begun can only break off, and does not look complete.
            await send_answer(send, _refused(_unknown()))
        finally:
            if watching is not None:
                watching.cancel()

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        import aiohttp

        await receive()
        try:
            self._hosts.check_host(scope["headers"], dict(scope["headers"]))
            url = self._url(scope)
            theirs = await self._client().ws_connect(
                url,
                headers=[each for each in _passed(scope) if not _is_upgrade(each)],
                protocols=scope.get("subprotocols", ()),
                max_msg_size=0,
                server_hostname=NODE_NAME,
            )
        except aiohttp.WSServerHandshakeError as error:
            await _deny(scope, send, error.status, _refused(_not_upgraded(error.status)))
            return
        except (aiohttp.ClientError, OSError) as error:
            refused = _refused(_broken(error))
            await _deny(scope, send, refused.status, refused)
            return
        except PalyraError as error:
            refused = _refused(error)
            await _deny(scope, send, refused.status, refused)
            return
        await send({"type": "websocket.accept", "subprotocol": theirs.protocol})
        towards = asyncio.create_task(_pump_to(theirs, receive))
        try:
            code = await _pump_from(theirs, send)
        except asyncio.CancelledError:
            code = 1012
        finally:
            towards.cancel()
            with suppress(Exception):
                await theirs.close()
        with suppress(Exception):
            await send({"type": "websocket.close", "code": code})


class LinkedApp:
    """The leader's application for what other nodes pass on: the client is who they say it is."""

    def __init__(self, app: ServedApp) -> None:
        self._app = app

    @property
    def strangers(self) -> Pool:
        return self._app.strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        address = next((value for name, value in headers if name == _CLIENT), b"")
        host, _, port = address.decode("latin-1").rpartition(" ")
        passed = {
            **scope,
            FROM_NODE: True,
            "headers": [each for each in headers if each[0] != _CLIENT],
            "client": (host or "unknown", int(port) if port.isdecimal() else 0),
        }
        await self._app(passed, receive, send)

    def close(self) -> None:
        """The app ends its streams itself."""


def _passed(scope: Scope) -> list[tuple[str, str]]:
    """Return the headers for the leader, with where the client connects from."""
    found = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in _HOP
    ]
    client = scope.get("client")
    if client:
        found.append((_CLIENT.decode(), f"{client[0]} {client[1]}"))
    return found


def _is_upgrade(header: tuple[str, str]) -> bool:
    return header[0].lower().encode("latin-1").startswith(_OF_UPGRADE)


def _answered(raw: Any) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower(), value)
        for name, value in raw
        if name.lower() not in _HOP and name.lower() != b"date"
    ]


async def _body(
    receive: Receive, gone: asyncio.Event, task: "asyncio.Task[Any]"
) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
            task.cancel()
            return
        if piece := message.get("body", b""):
            yield piece
        if not message.get("more_body"):
            return


async def _watch(receive: Receive, gone: asyncio.Event, task: "asyncio.Task[Any]") -> None:
    """End the leader's answer when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
    task.cancel()


async def _pump_to(theirs: "aiohttp.ClientWebSocketResponse", receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            await theirs.close(code=message.get("code") or 1000)
            return
        if (text := message.get("text")) is not None:
            await theirs.send_str(text)
        else:
            await theirs.send_bytes(cast("bytes", message.get("bytes")))


async def _pump_from(theirs: "aiohttp.ClientWebSocketResponse", send: Send) -> int:
    """Pass the leader's messages on, and return the code with which it closed."""
    import aiohttp

    async for message in theirs:
        if message.type == aiohttp.WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
        elif message.type == aiohttp.WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
    return theirs.close_code if theirs.close_code not in (None, 1006) else 1012


def _broken(error: BaseException) -> Unavailable:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        return Unavailable(
            "the node that leads does not answer: try again, another one takes over",
            retry_after_ms=_RETRY_MS,
        )
    return _unknown()


def _unknown() -> Unavailable:
    return Unavailable(
        "the node that leads went away before it answered: look whether it has done what you asked"
        " for, or try again with the same run_id or key",
        retry_after_ms=_RETRY_MS,
    )


def _not_upgraded(status: int) -> PalyraError:
    return PalyraError(f"the node that leads refused the WebSocket with {status}", status=status)


def _refused(error: PalyraError) -> HttpResponse:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if wait_ms := error.details.get("retry_after_ms"):
        headers = ((b"retry-after", b"%d" % max(1, -(-wait_ms // 1000))),)
    return HttpResponse(status_of(error), body_of(error), headers=headers)


async def _deny(scope: Scope, send: Send, status: int, outcome: HttpResponse) -> None:
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1013})
        return
    headers = [*outcome.headers, (b"content-type", outcome.media)]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": outcome.body})
