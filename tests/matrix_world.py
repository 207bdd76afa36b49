"""Matrix for the contract suite: a real Synapse, people with clients of their own, and a proxy
before it that breaks things.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import web

from palyra.features.channels.contract import ConnectorSettings, Mark, OutFile
from palyra.features.channels.matrix.connector import Matrix
from palyra.features.channels.matrix.contents import MARKS
from palyra.features.channels.model import InboundFile
from tests.connectors import Post, Quirk, Trouble, World
from tests.synapse import Account, Homeserver, homeserver, register


class Proxy:
    """Between a connector and the server. It passes everything on, until it is told to do something
    else.
    """

    def __init__(self, home: Homeserver, client: aiohttp.ClientSession) -> None:
        self.home = home
        self.client = client
        self.url = ""
        self.troubles: list[Trouble] = []
        self.down = False
        self.broken_files = 0
        self._news = b""
        self._again = asyncio.Event()
        self._polls: set[asyncio.Task[Any]] = set()
        self._open: set[asyncio.Transport] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return web.Response()  # The client has left already.
        self._open.add(transport)
        if self.down and not request.path.endswith("/whoami"):
            transport.abort()
            return web.Response()
        self.down = False
        body = await request.read()
        if request.path.endswith("/sync"):
            return await self._sync(request)
        if self.broken_files and "/media/download/" in request.path:
            self.broken_files -= 1
            return web.Response(status=504)
        trouble = (
            self.troubles.pop(0)
            if self.troubles and "/send/m.room.message/" in request.path
            else ""
        )
        if trouble == "rate_limit":
            wait = {
                "errcode": "M_LIMIT_EXCEEDED",
                "error": "Too Many Requests",
                "retry_after_ms": 40,
            }
            return web.json_response(wait, status=429)
        if trouble == "overloaded":
            return web.Response(status=502, text="Bad Gateway")
        answer = await self._pass_on(request, body)
        if trouble == "answer_lost":
            transport.abort()
        return answer

    async def _sync(self, request: web.Request) -> web.StreamResponse:
        poll = asyncio.ensure_future(self._pass_on(request, b""))
        again = asyncio.ensure_future(self._again.wait())
        self._polls.add(poll)
        try:
            await asyncio.wait([poll, again], return_when=asyncio.FIRST_COMPLETED)
            if self._again.is_set():
                self._again.clear()
                return web.Response(body=self._news, content_type="application/json")
            answer = await poll
            if (
                json.loads(answer.body or b"{}").get("rooms", {}).get("join")
                and "timeout" in request.query
            ):  # type: ignore[arg-type]
                self._news = answer.body  # type: ignore[assignment]
            return answer
        finally:
            self._polls.discard(poll)
            poll.cancel()
            again.cancel()

    async def _pass_on(self, request: web.Request, body: bytes) -> web.Response:
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Content-Type")
            if name in request.headers
        }
        try:
            async with self.client.request(
                request.method,
                f"{self.home.url}{request.raw_path}",
                data=body or None,
                headers=headers,
            ) as answer:
                data = await answer.read()
                return web.Response(
                    status=answer.status, body=data, content_type=answer.content_type
                )
        except aiohttp.ClientError:
            return web.Response(status=502)

    @property
    def has_news(self) -> bool:
        """Whether there is something that could be delivered again."""
        return bool(self._news)

    def deliver_again(self) -> None:
        self._again.set()

    def drop(self) -> None:
        """Break every connection, and those that the client's library opens in place of them, until
        it begins anew.
        """
        self.down = True
        for poll in self._polls:
            poll.cancel()
        for transport in self._open:
            transport.abort()
        self._open.clear()


@asynccontextmanager
async def proxied(home: Homeserver, client: aiohttp.ClientSession) -> AsyncIterator[Proxy]:
    proxy = Proxy(home, client)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield proxy
    finally:
        await runner.cleanup()


@dataclass
class MatrixWorld:
    connector: Matrix
    proxy: Proxy
    bot: Account
    people: dict[str, Account]
    rooms: dict[str, str] = field(default_factory=dict)
    quirks: frozenset[Quirk] = frozenset()

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
    ) -> None:
        who = self.people[sender]
        room = await self.alone_with(sender) if direct else self.rooms[conversation]
        content: dict[str, Any] = {"msgtype": "m.text", "body": text}
        for each in files:
            uri = await who.upload(each.name, each.data, each.media_type)
            content = {
                "msgtype": "m.file",
                "body": text,
                "filename": each.name,
                "url": uri,
                "info": {"mimetype": each.media_type},
            }
        if everyone:
            content["m.mentions"] = {"room": True}
        if thread:
            root = await self._root(who, room, thread)
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": root,
                "is_falling_back": True,
            }
        await who.send(room, content)

    async def alone_with(self, sender: str) -> str:
        name = f"direct-{sender}"
        if name not in self.rooms:
            self.rooms[name] = await self.people[sender].room(self.bot.user_id, direct=True)
            await self.bot.join(self.rooms[name])
        return self.rooms[name]

    async def _root(self, who: Account, room: str, thread: str) -> str:
        """The message that a thread hangs on; a notice, which is for nobody."""
        if thread not in self.rooms:
            self.rooms[thread] = await who.send(
                room, {"msgtype": "m.notice", "body": f"about {thread}"}
            )
        return self.rooms[thread]

    async def deliver_again(self) -> None:
        self.proxy.deliver_again()

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        raise AssertionError("Matrix has no buttons")

    async def posts(self) -> list[Post]:
        anna = self.people["anna"]
        events = [
            each | {"room_id": room} for room in self._places() for each in await anna.events(room)
        ]
        events.sort(key=lambda each: each["origin_server_ts"])
        posts: dict[str, Post] = {}
        last: dict[str, Post] = {}
        for event in events:
            content = event["content"]
            if (
                event["sender"] != self.bot.user_id
                or event["type"] != "m.room.message"
                or content.get("msgtype") == "m.notice"
            ):
                continue
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                posts[relation["event_id"]].text = content["m.new_content"]["body"]
            elif content["msgtype"] == "m.text":
                thread = relation["event_id"] if relation.get("rel_type") == "m.thread" else ""
                pings = bool(content["m.mentions"].get("room"))
                post = Post(
                    event["event_id"],
                    event["room_id"],
                    content["body"],
                    thread,
                    pings_everyone=pings,
                )
                posts[post.native_id] = last[post.conversation] = post
            else:
                data = await anna.download(content["url"])
                file = OutFile(content["filename"], data, content["info"]["mimetype"])
                last[event["room_id"]].files += (file,)
        return list(posts.values())

    def _places(self) -> list[str]:
        return [
            room for name, room in self.rooms.items() if name == "team" or name == "direct-anna"
        ]

    async def marks(self) -> list[tuple[str, Mark]]:
        anna = self.people["anna"]
        events = [each for room in self._places() for each in await anna.events(room)]
        texts = {each["event_id"]: each["content"].get("body", "") for each in events}
        names = {sign: mark for mark, sign in MARKS.items()}
        mine = [
            each
            for each in events
            if each["type"] == "m.reaction" and each["sender"] == self.bot.user_id
        ]
        shown = [each["content"]["m.relates_to"] for each in mine]
        return [(texts[each["event_id"]], names[each["key"]]) for each in shown]

    async def typed(self) -> int:
        found = await self.people["anna"].ask("GET", "/_matrix/client/v3/sync?timeout=0")
        rooms = found["rooms"]["join"].values()
        shown = [
            each
            for room in rooms
            for each in room["ephemeral"]["events"]
            if each["type"] == "m.typing"
        ]
        return sum(self.bot.user_id in each["content"]["user_ids"] for each in shown)

    async def trouble(self, kind: Trouble) -> None:
        if kind == "gone":
            body = {"user_id": self.bot.user_id}
            await self.people["anna"].ask(
                "POST", f"/_matrix/client/v3/rooms/{quote(self.rooms['team'])}/kick", body
            )
        else:
            # The client's library asks once more by itself when an answer is lost.
            self.proxy.troubles += [kind] * (2 if kind == "answer_lost" else 1)

    async def drop(self) -> None:
        self.proxy.drop()

    async def refuse(self) -> None:
        await self.bot.ask("POST", "/_matrix/client/v3/logout", {})
        self.proxy.drop()

    def address(self, conversation: str) -> str:
        return self.rooms[conversation]


@asynccontextmanager
async def matrix_world(**settings: str) -> AsyncIterator[MatrixWorld]:
    """Anna, Bert and an agent that is new on the server, in one room. Anna, Bert and their room are
    there for all tests.
    """
    home = homeserver()
    async with aiohttp.ClientSession() as client, proxied(home, client) as proxy:
        people, team = await _together(home, client)
        bot = await register(home, client, "palyra")
        await people["anna"].invite(team, bot)
        await bot.join(team)
        connector = Matrix(
            ConnectorSettings(
                "matrix", {"homeserver": proxy.url, "token": bot.token, **settings}, lambda: 0
            )
        )
        try:
            yield MatrixWorld(connector, proxy, bot, people, {"team": team})
        finally:
            await connector.close()


_there: dict[int, tuple[dict[str, Account], str]] = {}


async def _together(
    home: Homeserver, client: aiohttp.ClientSession
) -> tuple[dict[str, Account], str]:
    if home.port not in _there:
        anna, bert = [await register(home, client, name) for name in ("anna", "bert")]
        team = await anna.room(bert.user_id, name="Team")
        await bert.join(team)
        _there[home.port] = {"anna": anna, "bert": bert}, team
    people, team = _there[home.port]
    return {name: replace(each, web=client) for name, each in people.items()}, team


@asynccontextmanager
async def matrix(folder: Path) -> AsyncIterator[World]:
    async with matrix_world() as world:
        yield world
