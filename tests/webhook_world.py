"""A program on the other side of a webhook channel: it takes our posts, checks their signatures,
and posts to us.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from palyra.features.channels.contract import ConnectorSettings, Mark, OutFile
from palyra.features.channels.model import Button, InboundFile
from palyra.features.channels.webhook import KEY, SIGNATURE, TIMESTAMP, Webhook, signature
from tests.connectors import Post, Quirk, Trouble, World

SECRET = "a secret of both sides"


class Program:
    """The other side. `posted` is what it has taken, each key once."""

    def __init__(self) -> None:
        self.posted: list[Post] = []
        self.keys: dict[str, str] = {}
        self.troubles: list[Trouble] = []
        self.refuses = False
        self.url = ""
        self.forged = 0
        # Until it is set, nobody hears that this program is there.
        self.up = asyncio.Event()
        self.up.set()

    async def take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if request.headers[SIGNATURE] != signature(SECRET, request.headers[TIMESTAMP], body):
            self.forged += 1
            return web.Response(status=401)
        if self.refuses:
            return web.Response(status=403)
        told = json.loads(body)
        if told["type"] == "ping":
            await self.up.wait()
            return web.json_response({})
        if told["type"] == "edit":
            for post in self.posted:
                if post.native_id == told["id"]:
                    post.text, post.buttons = told["text"], ()
            return web.json_response({})
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "rate_limit":
            return web.Response(status=429, headers={"Retry-After": "0.05"})
        if trouble == "gone":
            return web.Response(status=410)
        if trouble == "overloaded":
            return web.Response(status=500)
        native = self._keep(request.headers[KEY], told)
        if trouble == "answer_lost":
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"id": native})

    def _keep(self, key: str, told: dict[str, Any]) -> str:
        if key in self.keys:
            return self.keys[key]
        native = self.keys[key] = f"w{len(self.posted)}"
        files = tuple(
            OutFile(each["name"], base64.b64decode(each["data"]), each["media_type"])
            for each in told["files"]
        )
        buttons = tuple(Button(**each) for each in told["buttons"])
        self.posted.append(
            Post(
                native,
                told["conversation"],
                told["text"],
                told["thread"],
                buttons,
                files,
                bool(told["ping_everyone"]),
            )
        )
        return native


@asynccontextmanager
async def program() -> AsyncIterator[Program]:
    found = Program()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/take", found.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}/take"
    try:
        yield found
    finally:
        await runner.cleanup()


def signed(body: bytes, *, secret: str = SECRET, now_s: int | None = None) -> dict[str, str]:
    stamp = str(int(time.time()) if now_s is None else now_s)
    return {TIMESTAMP: stamp, SIGNATURE: signature(secret, stamp, body)}


class WebhookWorld:
    # It is not a connection that stands, so none is lost; that it is refused is noticed when it is
    # tried.
    quirks: frozenset[Quirk] = frozenset({"no_echo", "connectionless", "no_drop", "no_refuse"})

    def __init__(self, connector: Webhook, other: Program) -> None:
        self.connector = connector
        self.other = other
        self._said: list[bytes] = []
        self._posting: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()

    async def say(
        self,
        text: str,
        *,
        sender: str = "anna",
        conversation: str = "team",
        direct: bool = False,
        thread: str = "",
        files: tuple[InboundFile, ...] = (),
        everyone: bool = False,
        pressed: bool = False,
    ) -> None:
        words = {
            "id": f"n{len(self._said)}",
            "conversation": f"dm-{sender}" if direct else conversation,
            "sender": {"id": sender, "name": sender.capitalize()},
            "text": text,
            "thread": thread,
            "direct": direct,
            "mentions_everyone": everyone,
            "pressed": pressed,
            "files": [
                {
                    "name": each.name,
                    "data": base64.b64encode(each.data).decode(),
                    "media_type": each.media_type,
                }
                for each in files
            ],
        }
        self._said.append(json.dumps(words).encode())
        await self._post(self._said[-1])

    async def _post(self, body: bytes) -> None:
        """As a careful program does: in order, and again until it was taken."""

        async def insist() -> None:
            async with self._order:
                while True:
                    try:
                        answer = await self.connector.hook(signed(body), body)
                    except ConnectionError:
                        continue  # Ours failed: the route would have answered with an error.
                    if answer.status < 500:
                        assert answer.status == 202, answer.body
                        return
                    await asyncio.sleep(0)

        task = asyncio.create_task(insist())
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)

    async def deliver_again(self) -> None:
        await self._post(self._said[-1])

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        assert value in [button.value for button in post.buttons]
        await self.say(
            value, sender=sender, conversation=post.conversation, thread=post.thread, pressed=True
        )

    async def posts(self) -> list[Post]:
        return self.other.posted

    async def marks(self) -> list[tuple[str, Mark]]:
        return []

    async def typed(self) -> int:
        return 0

    async def trouble(self, kind: Trouble) -> None:
        self.other.troubles.append(kind)

    async def drop(self) -> None:
        raise NotImplementedError

    async def refuse(self) -> None:
        self.other.refuses = True

    def address(self, conversation: str) -> str:
        return conversation


@asynccontextmanager
async def webhook(folder: Path) -> AsyncIterator[World]:
    async with program() as other:
        given = ConnectorSettings(
            "hook", {"url": other.url, "secret": SECRET}, lambda: time.time_ns() // 1_000_000
        )
        connector = Webhook(given)
        yield WebhookWorld(connector, other)
        await connector.close()
