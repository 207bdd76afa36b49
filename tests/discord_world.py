"""The fake Discord as the contract suite sees it: a place to write on, look at and disturb."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from palyra.features.channels.contract import Connector, ConnectorSettings, Mark, OutFile
from palyra.features.channels.discord.settings import KIND
from palyra.features.channels.model import Button, InboundFile
from tests.connectors import Post, Quirk, Trouble, World
from tests.discord_fake import TOKEN, FakeDiscord, discord
from tests.discord_server import NAMES

GENERAL = 700_001
_STYLES = {2: "plain", 3: "good", 4: "bad"}
_MARKS: dict[str, Mark] = {"👀": "seen", "✅": "done", "🚫": "refused"}


def connector_to(fake: FakeDiscord, token: str = TOKEN) -> Connector:
    settings = {"token": token, "api": f"{fake.url}/api/v10"}
    return KIND.make(ConnectorSettings("disc", settings, lambda: time.time_ns() // 1_000_000))


class DiscordWorld:
    quirks: frozenset[Quirk] = frozenset()

    def __init__(self, fake: FakeDiscord, connector: Connector) -> None:
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
        channel = self.fake.direct(NAMES[sender]) if direct else GENERAL
        if thread:
            channel = 700_100
            made = self.fake.channel(channel, thread, kind=11, parent=GENERAL)
            await self.fake.tell("THREAD_CREATE", made)
        attached = [self.fake.attach(each.name, each.data) for each in files]
        await self.fake.say(channel, sender, text, attachments=attached, mention_everyone=everyone)

    async def deliver_again(self) -> None:
        await self.fake.again()

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        assert value in [button.value for button in post.buttons]
        await self.fake.press(
            self.fake.messages[int(post.native_id.rpartition("/")[2])], value, sender
        )

    async def posts(self) -> list[Post]:
        return [self._post(each) for each in self.fake.posts()]

    def _post(self, message: dict[str, Any]) -> Post:
        channel = self.fake.channels[int(message["channel_id"])]
        in_thread = channel["type"] == 11
        buttons = [button for row in message["components"] for button in row["components"]]
        return Post(
            f"{message['channel_id']}/{message['id']}",
            channel["parent_id"] if in_thread else message["channel_id"],
            message["content"],
            message["channel_id"] if in_thread else "",
            tuple(
                Button(each["label"], each["custom_id"], _STYLES[each["style"]]) for each in buttons
            ),  # type: ignore[arg-type]
            tuple(
                OutFile(each["given"], self.fake.files[int(each["id"])][1])
                for each in message["attachments"]
            ),
            "everyone" in message["asked"]["allowed_mentions"]["parse"],
        )

    async def marks(self) -> list[tuple[str, Mark]]:
        return [
            (self.fake.messages[message]["content"], _MARKS[emoji])
            for message, emoji in self.fake.reactions
        ]

    async def typed(self) -> int:
        return self.fake.typed

    async def trouble(self, kind: Trouble) -> None:
        self.fake.troubles.append(kind)

    async def drop(self) -> None:
        await self.fake.drop()

    async def refuse(self) -> None:
        self.fake.refuses = 4004
        await self.fake.drop(4004)

    def address(self, conversation: str) -> str:
        return str(GENERAL)


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with discord() as fake:
        connector = connector_to(fake)
        yield DiscordWorld(fake, connector)
        await connector.close()
