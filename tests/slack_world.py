"""The fake Slack as the contract suite sees it: a place to write on, look at and disturb."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from palyra.features.channels.contract import (
    Connector,
    ConnectorSettings,
    Mark,
    OutFile,
    OutgoingMessage,
)
from palyra.features.channels.model import Button, InboundFile
from palyra.features.channels.slack.messages import EVERYONE
from palyra.features.channels.slack.settings import KIND
from tests.connectors import Post, Quirk, RecordingDoor, Trouble, World
from tests.slack_fake import APP_TOKEN, NAMES, TEAM, TOKEN, FakeSlack, slack

_STYLES = {None: "plain", "primary": "good", "danger": "bad"}
_MARKS: dict[str, Mark] = {"eyes": "seen", "white_check_mark": "done", "no_entry_sign": "refused"}


def connector_to(fake: FakeSlack, **other: str) -> Connector:
    settings = {"token": TOKEN, "app_token": APP_TOKEN, "api": f"{fake.url}/api", **other}
    return KIND.make(ConnectorSettings("work", settings, lambda: time.time_ns() // 1_000_000))


class SlackWorld:
    quirks: frozenset[Quirk] = frozenset()

    def __init__(self, fake: FakeSlack, connector: Connector) -> None:
        self.fake = fake
        self.connector = connector

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
        channel = self.fake.direct(NAMES[sender]) if direct else TEAM
        more: dict[str, Any] = {}
        if thread:
            parent = await self.fake.say(channel, sender, "the beginning of a thread", tell=False)
            more["thread_ts"] = parent["ts"]
        if files:
            more |= {
                "subtype": "file_share",
                "files": [self.fake.attach(each.name, each.data) for each in files],
            }
        shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        await self.fake.say(
            channel,
            sender,
            shown.replace("@everyone", "<!everyone>") if everyone else shown,
            **more,
        )

    async def deliver_again(self) -> None:
        await self.fake.again()

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        assert value in [button.value for button in post.buttons]
        channel, _, stamp = post.native_id.partition("/")
        await self.fake.press(self.fake._one(channel, stamp), value, sender)

    async def posts(self) -> list[Post]:
        return [self._post(each) for each in self.fake.posts()]

    def _post(self, message: dict[str, Any]) -> Post:
        blocks = message.get("blocks") or []
        shown = "".join(block["text"] for block in blocks if block["type"] == "markdown")
        buttons = [
            each for block in blocks if block["type"] == "actions" for each in block["elements"]
        ]
        return Post(
            f"{message['channel']}/{message['ts']}",
            message["channel"],
            shown,
            message.get("thread_ts", ""),
            tuple(
                Button(each["text"]["text"], each["value"], _STYLES[each.get("style")])
                for each in buttons
            ),  # type: ignore[arg-type]
            tuple(
                OutFile(each["name"], self.fake.files[each["id"]]["data"])
                for each in message.get("files") or []
            ),
            EVERYONE.search(shown + message["text"]) is not None,
        )

    async def marks(self) -> list[tuple[str, Mark]]:
        return [(text, _MARKS[name]) for text, name in self.fake.reactions]

    async def typed(self) -> int:
        return 0

    async def trouble(self, kind: Trouble) -> None:
        self.fake.trouble("chat.postMessage", "channel_not_found" if kind == "gone" else kind)

    async def drop(self) -> None:
        await self.fake.drop()

    async def refuse(self) -> None:
        self.fake.refuses = "token_revoked"
        await self.fake.drop()

    def address(self, conversation: str) -> str:
        return TEAM


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with slack() as fake:
        connector = connector_to(fake)
        yield SlackWorld(fake, connector)
        await connector.close()


Scene = Callable[[FakeSlack, RecordingDoor], Awaitable[None]]


def play(scene: Scene, scopes: str = "") -> None:
    async def whole() -> None:
        async with slack(scopes) as fake:
            await scene(fake, RecordingDoor())

    asyncio.run(asyncio.wait_for(whole(), 60))


@asynccontextmanager
async def serving(
    fake: FakeSlack, door: RecordingDoor
) -> AsyncIterator[tuple[Connector, "asyncio.Task[None]"]]:
    """A connector of its own, as a daemon that has just started has one; what it knows is what the
    door remembers.
    """
    connector = connector_to(fake)
    wanted = door.connects + 1
    task = asyncio.create_task(connector.serve(door))
    try:
        await door.until(lambda seen: seen.connects >= wanted)
        yield connector, task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=30)


def texts(door: RecordingDoor) -> list[str]:
    """What was handed over, each message once, as the store keeps it."""
    return list({each.native_id: each.text for each in door.messages}.values())


async def heard(door: RecordingDoor, number: int) -> list[str]:
    await door.until(lambda seen: len(texts(seen)) >= number)
    return texts(door)


def out(text: str, key: str = "k-0", **more: object) -> OutgoingMessage:
    return OutgoingMessage(key=key, conversation=TEAM, text=text, **more)  # type: ignore[arg-type]
