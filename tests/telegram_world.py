"""Telegram for the contract suite: people who write there, and what they see of us, on the fake of
its Bot API.
"""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from palyra.features.channels.contract import ConnectorSettings, Mark
from palyra.features.channels.model import Button, InboundFile
from palyra.features.channels.telegram.connector import Telegram
from tests.connectors import Post, Quirk, Trouble, World
from tests.telegram_fake import TOKEN, BotApi, Kept, bot_api

_MARKS: dict[str, Mark] = {"👀": "seen", "👌": "done", "🤷": "refused"}


def person(name: str) -> dict[str, Any]:
    return {"id": 100 + sum(name.encode()), "is_bot": False, "first_name": name.capitalize()}


def group(name: str = "team") -> dict[str, Any]:
    return {
        "id": -1_000_000 - sum(name.encode()),
        "type": "supergroup",
        "title": name,
        "is_forum": True,
    }


def private(name: str) -> dict[str, Any]:
    return {"id": person(name)["id"], "type": "private", "first_name": name.capitalize()}


class TelegramWorld:
    quirks: frozenset[Quirk] = frozenset({"no_echo"})

    def __init__(self, connector: Telegram, api: BotApi) -> None:
        self.connector = connector
        self.api = api
        self._texts: dict[tuple[int, int], str] = {}
        self._last: dict[str, Any] = {}

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
        chat = private(sender) if direct else group(conversation)
        what: dict[str, Any] = {"text": text}
        if files:
            what = {"caption": text, "document": self.api.document(files[0])}
        if thread:
            what |= {"message_thread_id": int(re.sub(r"\D", "", thread)), "is_topic_message": True}
        message = self.api.message(chat, person(sender), **what)
        self._texts[chat["id"], message["message_id"]] = text
        self._last = await self.api.update(message=message)

    async def deliver_again(self) -> None:
        # As Telegram does when it did not see the confirmation.
        await self.api.deliver(self._last)

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        assert value in [button.value for button in post.buttons]
        number = int(post.native_id.partition("/")[2])
        message = {
            "message_id": number,
            "date": 1_700_000_000,
            "chat": group() | {"id": int(post.conversation)},
            "text": post.text,
        }
        query = {
            "id": f"q{self.api.next_update}",
            "from": person(sender),
            "message": message,
            "chat_instance": "c",
            "data": value,
        }
        await self.api.update(callback_query=query)

    async def posts(self) -> list[Post]:
        return [_post(kept) for kept in self.api.kept]

    async def marks(self) -> list[tuple[str, Mark]]:
        return [
            (self._texts[chat, number], _MARKS[emoji]) for chat, number, emoji in self.api.reactions
        ]

    async def typed(self) -> int:
        return len(self.api.actions)

    async def trouble(self, kind: Trouble) -> None:
        self.api.troubles.append(kind)

    async def drop(self) -> None:
        await self.api.drop()

    async def refuse(self) -> None:
        self.api.refuses = True
        await self.api.wake()

    def address(self, conversation: str) -> str:
        return str(group(conversation)["id"])


def _post(kept: Kept) -> Post:
    buttons = tuple(
        Button(each["text"], each["callback_data"]) for row in kept.keyboard for each in row
    )
    thread = str(kept.topic) if kept.topic else ""
    text = as_written(kept.text, kept.entities)
    return Post(
        f"{kept.chat}/{kept.number}", str(kept.chat), text, thread, buttons, tuple(kept.files)
    )


def as_written(text: str, entities: list[dict[str, Any]]) -> str:
    """What Telegram shows, as Markdown again."""
    data = text.encode("utf-16-le")
    at, parts = 0, []
    for each in entities:
        begin, end = 2 * each["offset"], 2 * (each["offset"] + each["length"])
        inside = data[begin:end].decode("utf-16-le")
        signs = {
            "pre": ("```" + each.get("language", "") + "\n", "\n```"),
            "code": ("`", "`"),
            "bold": ("**", "**"),
        }
        opening, closing = signs[each["type"]]
        parts += [data[at:begin].decode("utf-16-le"), opening, inside, closing]
        at = end
    return "".join([*parts, data[at:].decode("utf-16-le")])


def given(api: BotApi, **more: str) -> ConnectorSettings:
    return ConnectorSettings(
        "tele", {"token": TOKEN, "api": api.url, **more}, lambda: time.time_ns() // 1_000_000
    )


@asynccontextmanager
async def telegram(folder: Path) -> AsyncIterator[World]:
    async with bot_api() as api:
        connector = Telegram(given(api))
        yield TelegramWorld(connector, api)
        await connector.close()
