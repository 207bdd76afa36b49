"""The link between nodes: what one passes on arrives as it was sent, as it is sent, and from nobody
but a node.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from palyra.api import listen_sockets
from palyra.api.calls import FROM_NODE, Receive, Scope, Send
from palyra.api.exposure import Exposure
from palyra.api.guard import HostCheck
from palyra.api.http_server import HttpServer
from palyra.api.intake import Pool
from palyra.api.limits import ApiLimits
from palyra.core.errors import Unavailable
from palyra.serve.cluster.keys import NODE_NAME, ClusterKeys
from palyra.serve.cluster.passing import LinkedApp, PassingApp
from tests.journals import run

_KEYS = ClusterKeys(b"s" * 32)


class Leader:
    """An application that says what it was asked, piece by piece."""

    def __init__(self) -> None:
        self.strangers = Pool()
        self.scopes: list[Scope] = []
        self.disconnected = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await self._talk(receive, send)
            return
        if scope["path"] == "/endless":
            await self._endless(receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b")]
        await send({"type": "http.response.start", "status": 207, "headers": headers})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            body = message.get("body", b"").upper()
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"."})

    async def _endless(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected.set()

    async def _talk(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.disconnected.set()
                return
            if message.get("text") == "bye":
                await send({"type": "websocket.close", "code": 4_001})
                return
            await send({"type": "websocket.send", "text": (message.get("text") or "").upper()})

    def close(self) -> None:
        """Nothing of it is a stream of ours."""


@asynccontextmanager
async def _served(app: Any, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    listener = listen_sockets.bind("127.0.0.1", 0, tls=tls is not None)
    port = listener.getsockname()[1]
    server, ready = HttpServer(app, ApiLimits()), asyncio.Event()
    serving = asyncio.create_task(server.run_on(listener, ready.set, tls))
    await ready.wait()
    try:
        yield port
    finally:
        server.stop()
        server.stop()
        await serving


Work = Callable[[Leader, aiohttp.ClientSession, PassingApp, str], Awaitable[None]]


def _through(work: Work, *, keys: ClusterKeys = _KEYS) -> None:
    async def scenario() -> None:
        leader = Leader()
        async with _served(LinkedApp(leader), _KEYS.listening()) as linked:
            passing = PassingApp(
                HostCheck(Exposure(), (1,)), lambda: f"127.0.0.1:{linked}", keys, "1"
            )
            async with _served(passing) as port, aiohttp.ClientSession() as client:
                passing._hosts.answer_to(Exposure(), (port,))
                await work(leader, client, passing, f"http://127.0.0.1:{port}")
                await client.close()
            await passing.end()

    run(scenario())


def test_a_request_and_its_answer_arrive_as_they_were_sent() -> None:
    async def work(
        leader: Leader, client: aiohttp.ClientSession, passing: PassingApp, url: str
    ) -> None:
        sent = {
            "Authorization": "Bearer x",
            "X-Palyra-Client": "6.6.6.6 1",  # whoever says so is no node
            "Origin": "http://elsewhere",
        }
        async with client.post(f"{url}/a%2Fb?c=%20d", data=b"hello", headers=sent) as answer:
            assert answer.status == 207
            assert await answer.read() == b"HELLO."
            assert answer.headers.getall("set-cookie") == ["a=1", "b"]
            assert len(answer.headers.getall("date")) == 1
        (scope,) = leader.scopes
        assert scope["raw_path"] == b"/a%2Fb"
        assert scope["query_string"] == b"c=%20d"
        assert scope["client"][0] == "127.0.0.1"
        assert scope[FROM_NODE]
        headers = dict(scope["headers"])
        assert headers[b"authorization"] == b"Bearer x"
        assert headers[b"host"] == url.removeprefix("http://").encode()
        assert headers[b"origin"] == b"http://elsewhere"
        assert b"x-palyra-client" not in headers

    _through(work)


def test_nothing_is_held_back_in_either_direction() -> None:
    async def work(
        leader: Leader, client: aiohttp.ClientSession, passing: PassingApp, url: str
    ) -> None:
        answered = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield b"one"
            # The second piece is sent when the answer to the first is here.
            await asyncio.wait_for(answered.wait(), 20)
            yield b"two"

        async with client.post(f"{url}/x", data=body()) as answer:
            assert await answer.content.readexactly(3) == b"ONE"
            answered.set()
            assert await answer.content.read() == b"TWO."

    _through(work)


def test_who_goes_away_is_gone_for_the_leader_too_and_a_cut_ends_everything() -> None:
    async def work(
        leader: Leader, client: aiohttp.ClientSession, passing: PassingApp, url: str
    ) -> None:
        answer = await client.get(f"{url}/endless")
        assert await answer.content.readexactly(5) == b"first"
        answer.close()
        await asyncio.wait_for(leader.disconnected.wait(), 20)
        answer = await client.get(f"{url}/endless")
        assert await answer.content.readexactly(5) == b"first"
        passing.cut()
        # Broken off, and not ended as if it were whole.
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()

    _through(work)


def test_a_websocket_is_passed_on_with_its_close() -> None:
    async def work(
        leader: Leader, client: aiohttp.ClientSession, passing: PassingApp, url: str
    ) -> None:
        async with client.ws_connect(f"{url}/ws") as socket:
            await socket.send_str("hello")
            assert await socket.receive_str(timeout=20) == "HELLO"
            await socket.send_str("bye")
            message = await socket.receive(timeout=20)
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 4_001)
        socket = await client.ws_connect(f"{url}/ws")
        await socket.close()
        await asyncio.wait_for(leader.disconnected.wait(), 20)
        socket = await client.ws_connect(f"{url}/ws")
        passing.cut()
        message = await socket.receive(timeout=20)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1_012)

    _through(work)


def test_a_node_with_another_secret_reaches_nobody() -> None:
    async def work(
        leader: Leader, client: aiohttp.ClientSession, passing: PassingApp, url: str
    ) -> None:
        async with client.get(f"{url}/x") as answer:
            assert answer.status == 503
        assert leader.scopes == []

    _through(work, keys=ClusterKeys(b"t" * 32))


def test_the_link_lets_in_only_who_shows_a_certificate_of_the_nodes() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with _served(LinkedApp(leader), _KEYS.listening()) as port:
            stranger = ssl.create_default_context()
            stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
            async with aiohttp.ClientSession() as client:
                with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                    await client.get(f"https://127.0.0.1:{port}/x", ssl=stranger)
                async with client.get(
                    f"https://127.0.0.1:{port}/x", ssl=_KEYS.calling(), server_hostname=NODE_NAME
                ) as answer:
                    assert answer.status == 207
        assert [scope["client"][0] for scope in leader.scopes] == ["unknown"]

    run(scenario())


def test_a_node_without_a_leader_answers_for_itself_and_says_when_to_ask_again() -> None:
    async def scenario() -> None:
        def nobody() -> str:
            raise Unavailable("no node leads at this moment", retry_after_ms=1_000)

        passing = PassingApp(HostCheck(Exposure(), (1,)), nobody, _KEYS, "1")
        async with _served(passing) as port, aiohttp.ClientSession() as client:
            passing._hosts.answer_to(Exposure(), (port,))
            url = f"http://127.0.0.1:{port}"
            async with client.get(f"{url}/healthz") as answer:
                assert await answer.json() == {"status": "ok", "version": "1"}
            async with client.get(f"{url}/readyz") as answer:
                assert answer.status == 503
            async with client.post(f"{url}/v1/sessions", json={}) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                assert (await answer.json())["error"]["retryable"]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{url}/ws")
            assert refused.value.status == 503
            async with client.get(f"{url}/v1/x", headers={"Host": "elsewhere"}) as answer:
                assert answer.status == 421

    run(scenario())


def test_files_are_sealed_with_the_secret_and_their_name(tmp_path: Path) -> None:
    sealed = _KEYS.seal("keys/x", b"body")
    assert b"body" not in sealed
    assert _KEYS.open("keys/x", sealed) == b"body"
    for keys, name in ((_KEYS, "keys/y"), (ClusterKeys(b"t" * 32), "keys/x")):
        with pytest.raises(Exception, match="is not what a node has stored"):
            keys.open(name, sealed)
