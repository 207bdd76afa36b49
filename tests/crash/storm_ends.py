"""The other ends of all channels at once: each is the platform (a fake of ours, or a real server)
with many people who write on it.

They live in the process that kills the daemon, never in the daemon. An end says things, repeats
them, breaks, refuses, and shows what it was sent; `tests/crash/connector_storm.py` drives them all.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import aiohttp

from tests import discord_fake, slack_fake, telegram_fake
from tests.discord_fake import FakeDiscord, discord
from tests.discord_server import user
from tests.email_world import mail
from tests.mail_servers import AGENT, AUTHSERV, PASSWORD, MailServers, mail_servers
from tests.matrix_world import Proxy, proxied
from tests.slack_fake import FakeSlack, slack
from tests.synapse import Account, homeserver, register
from tests.telegram_fake import BotApi, bot_api
from tests.webhook_world import SECRET, Program, program, signed

# Where something was said, and what.
Seen = tuple[str, str]


class End(Protocol):
    settings: dict[str, str]
    # What the daemon calls each conversation.
    places: list[str]

    @property
    def troubles(self) -> tuple[str, ...]:
        """What can be done to the next message of ours."""
        ...

    async def say(self, at: int, number: int) -> None: ...

    async def again(self) -> None:
        """Deliver something once more."""
        ...

    def trouble(self, kind: str) -> None: ...

    async def drop(self) -> None: ...

    async def seen(self) -> list[Seen]:
        """What we wrote, oldest first."""
        ...


class DiscordEnd:
    troubles = ("overloaded", "answer_lost", "short_limit")

    def __init__(self, fake: FakeDiscord, people: int) -> None:
        self.fake = fake
        self.settings = {"token": discord_fake.TOKEN, "api": f"{fake.url}/api/v10"}
        self.places = [str(701_000 + at) for at in range(people)]
        for place in self.places:
            fake.channel(int(place), f"c{place}")
        self._said: list[dict[str, Any]] = []

    async def say(self, at: int, number: int) -> None:
        message = self.fake.put(int(self.places[at]), user(2_000 + at, f"p{at}"), f"m{number}")
        self._said.append(message)
        await self.fake.tell("MESSAGE_CREATE", self.fake.event(message))

    async def again(self) -> None:
        await self.fake.tell("MESSAGE_CREATE", self.fake.event(random.choice(self._said)))

    def trouble(self, kind: str) -> None:
        self.fake.troubles.append(kind)

    async def drop(self) -> None:
        if random.random() < 0.5:
            # What cannot be resumed is made up for from the histories.
            self.fake.forget_sessions()
        await self.fake.drop()

    async def seen(self) -> list[Seen]:
        return [(each["channel_id"], each["content"]) for each in self.fake.posts()]


class SlackEnd:
    troubles = ("overloaded", "answer_lost", "rate_limit")

    def __init__(self, fake: FakeSlack, people: int) -> None:
        self.fake = fake
        self.settings = {
            "token": slack_fake.TOKEN,
            "app_token": slack_fake.APP_TOKEN,
            "api": f"{fake.url}/api",
        }
        self.places = [f"C{at}" for at in range(people)]
        for place in self.places:
            fake.channels[place] = {"id": place, "name": place.lower(), "is_im": False}
        self._said: list[dict[str, Any]] = []

    async def say(self, at: int, number: int) -> None:
        self._said.append(await self.fake.say(self.places[at], "anna", f"m{number}"))

    async def again(self) -> None:
        await self.fake.tell(self.fake.event(random.choice(self._said)))

    def trouble(self, kind: str) -> None:
        self.fake.trouble("chat.postMessage", kind)

    async def drop(self) -> None:
        await self.fake.drop()

    async def seen(self) -> list[Seen]:
        blocks = [(each["channel"], each.get("blocks") or []) for each in self.fake.posts()]
        return [
            (place, "".join(block["text"] for block in shown if block["type"] == "markdown"))
            for place, shown in blocks
        ]


class TelegramEnd:
    troubles = ("overloaded", "answer_lost")

    def __init__(self, api: BotApi, people: int) -> None:
        self.api = api
        self.settings = {"token": telegram_fake.TOKEN, "api": api.url}
        self.places = [str(10_000 + at) for at in range(people)]
        self._last: dict[str, Any] = {}

    async def say(self, at: int, number: int) -> None:
        who = {"id": 10_000 + at, "is_bot": False, "first_name": f"P{at}"}
        message = self.api.message(
            {"id": 10_000 + at, "type": "private", "first_name": f"P{at}"}, who, text=f"m{number}"
        )
        self._last = await self.api.update(message=message)

    async def again(self) -> None:
        await self.api.deliver(self._last)

    def trouble(self, kind: str) -> None:
        self.api.troubles.append(kind)  # type: ignore[arg-type]

    async def drop(self) -> None:
        self.api.cut()

    async def seen(self) -> list[Seen]:
        return [(str(each.chat), each.text) for each in self.api.kept]


class MailEnd:
    # Not a limit: what a server says of those is waited for by the minute.
    troubles = ("overloaded", "answer_lost")

    def __init__(self, servers: MailServers, people: int) -> None:
        self.servers = servers
        ports = {"imap": f"127.0.0.1:{servers.imap_port}", "smtp": f"127.0.0.1:{servers.smtp_port}"}
        self.settings = {"address": AGENT, "password": PASSWORD, "authserv": AUTHSERV, **ports}
        self.places = [f"p{at}@example.org" for at in range(people)]

    async def say(self, at: int, number: int) -> None:
        written = mail(
            f"p{at}", f"m{number}", number=f"n{number}", References=f"<thread{at}@example.org>"
        )
        await self.servers.write(written, sender=self.places[at])

    async def again(self) -> None:
        await self.servers.deliver(random.choice(self.servers.delivered))

    def trouble(self, kind: str) -> None:
        self.servers.troubles.append(kind)  # type: ignore[arg-type]

    async def drop(self) -> None:
        self.servers.drop()

    async def seen(self) -> list[Seen]:
        return [(",".join(people), _plain(sent)) for people, sent in self.servers.posted]


def _plain(sent: Any) -> str:
    text: str = sent.get_body(("plain",)).get_content()
    return text.replace("\r\n", "\n").removesuffix("\n")


class WebhookEnd:
    """A careful program: what it was not told to be taken it posts again, in the order of each
    conversation.
    """

    troubles = ("overloaded", "answer_lost", "rate_limit")

    def __init__(
        self, other: Program, client: aiohttp.ClientSession, people: int, hook: str
    ) -> None:
        self.other = other
        self.settings = {"url": other.url, "secret": SECRET}
        self.places = [f"c{at}" for at in range(people)]
        self._client = client
        self._hook = hook
        self._order = [asyncio.Lock() for _ in range(people)]
        # What it was told beside "taken"; 0: there was no answer.
        self.statuses: Counter[int] = Counter()
        # What was taken; only that is posted again.
        self._said: list[bytes] = []
        self._posting: set[asyncio.Task[None]] = set()

    async def say(self, at: int, number: int) -> None:
        words = {
            "id": f"n{number}",
            "conversation": f"c{at}",
            "sender": {"id": f"p{at}"},
            "text": f"m{number}",
            "direct": True,
        }
        self._begin(self._insist(at, json.dumps(words).encode()))

    async def again(self) -> None:
        if self._said:
            self._begin(self._post(random.choice(self._said)))

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)

    async def _insist(self, at: int, body: bytes) -> None:
        async with self._order[at]:
            while (status := await self._post(body)) != 202:
                self.statuses[status] += 1
                await asyncio.sleep(
                    0.2
                )  # The daemon is dead or not ready: there is nothing to wait on but the clock.
            self._said.append(body)

    async def _post(self, body: bytes) -> int:
        try:
            async with self._client.post(self._hook, data=body, headers=signed(body)) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0

    def trouble(self, kind: str) -> None:
        self.other.troubles.append(kind)  # type: ignore[arg-type]

    async def drop(self) -> None:
        """There is no connection that stands."""

    async def seen(self) -> list[Seen]:
        return [(each.conversation, each.text) for each in self.other.posted]


class MatrixEnd:
    troubles = ("overloaded", "answer_lost", "rate_limit")

    def __init__(self, proxy: Proxy, anna: Account, bot: Account, rooms: list[str]) -> None:
        self.proxy = proxy
        self.settings = {"homeserver": proxy.url, "token": bot.token}
        self.places = rooms
        self._anna = anna
        self._bot = bot

    async def say(self, at: int, number: int) -> None:
        await self._anna.send(self.places[at], {"msgtype": "m.text", "body": f"m{number}"})

    async def again(self) -> None:
        if self.proxy.has_news:
            self.proxy.deliver_again()

    def trouble(self, kind: str) -> None:
        self.proxy.troubles.append(kind)  # type: ignore[arg-type]

    async def drop(self) -> None:
        self.proxy.drop()

    async def seen(self) -> list[Seen]:
        found: list[Seen] = []
        for room in self.places:
            for event in await self._anna.events(room):
                if event["sender"] == self._bot.user_id and event["type"] == "m.room.message":
                    found.append((room, event["content"]["body"]))
        return found


@asynccontextmanager
async def _discord(people: int, hook: str) -> AsyncIterator[End]:
    async with discord() as fake:
        yield DiscordEnd(fake, people)


@asynccontextmanager
async def _slack(people: int, hook: str) -> AsyncIterator[End]:
    async with slack() as fake:
        yield SlackEnd(fake, people)


@asynccontextmanager
async def _telegram(people: int, hook: str) -> AsyncIterator[End]:
    async with bot_api() as api:
        yield TelegramEnd(api, people)


@asynccontextmanager
async def _email(people: int, hook: str) -> AsyncIterator[End]:
    async with mail_servers() as servers:
        yield MailEnd(servers, people)


@asynccontextmanager
async def _webhook(people: int, hook: str) -> AsyncIterator[End]:
    async with program() as other, aiohttp.ClientSession() as client:
        yield WebhookEnd(other, client, people, hook)


@asynccontextmanager
async def _matrix(people: int, hook: str) -> AsyncIterator[End]:
    home = homeserver()
    async with aiohttp.ClientSession() as client, proxied(home, client) as proxy:
        anna, bot = [await register(home, client, name) for name in ("anna", "palyra")]
        rooms = []
        for at in range(people):
            rooms.append(await anna.room(bot.user_id, name=f"Room {at}"))
            await bot.join(rooms[-1])
        yield MatrixEnd(proxy, anna, bot, rooms)


ENDS: dict[str, Callable[[int, str], AbstractAsyncContextManager[End]]] = {
    "discord": _discord,
    "slack": _slack,
    "telegram": _telegram,
    "email": _email,
    "webhook": _webhook,
    "matrix": _matrix,
}
