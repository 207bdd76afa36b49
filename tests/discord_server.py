"""A Discord server on loopback, without its doors: channels, what is said in them, and the sessions
that are told of it.
"""

import asyncio
import json
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from aiohttp import web

BOT, GUILD, APP = 900_000, 800_000, 900_001
CONTENT = 1 << 15
_EPOCH_MS = 1_420_070_400_000
NAMES = {"anna": 1_001, "bert": 1_002, "carl": 1_003}
Json = dict[str, Any]


@dataclass
class Session:
    """A gateway session: it outlives its connection, and keeps its events."""

    id: str
    intents: int
    events: list[Json] = field(default_factory=list)
    wire: "Wire | None" = None


class Wire:
    """One connection. It compresses as the real gateway does when it is asked to."""

    def __init__(self, socket: web.WebSocketResponse, *, compress: bool) -> None:
        self.socket = socket
        self._zlib = zlib.compressobj() if compress else None

    async def send(self, packet: Json) -> None:
        text = json.dumps(packet)
        if self.socket.closed:
            return
        # Who has just left is told the next time: the session keeps it.
        with suppress(ConnectionResetError):
            if self._zlib is None:
                await self.socket.send_str(text)
            else:
                await self.socket.send_bytes(
                    self._zlib.compress(text.encode()) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
                )


class Server:
    """What is said there, and what people do; its gateway and its API are the fake's."""

    def __init__(self) -> None:
        self.url = ""
        self.channels: dict[int, Json] = {}
        self.messages: dict[int, Json] = {}
        self.files: dict[int, tuple[str, bytes]] = {}
        self.sessions: dict[str, Session] = {}
        self.keys: dict[tuple[int, str], int] = {}
        self.reactions: list[tuple[int, str]] = []
        self.typed = 0
        self.confirmed: list[int] = []
        self.identified = self.resumed = 0
        # What happens to the next message: a status, or "lost" for an answer that never comes.
        self.troubles: list[str] = []
        self.refuses = 0
        self.content_allowed = True
        self.forgetful = False
        # What is said the moment somebody connects.
        self.greeting: Any = None
        self.numbers = count(1)
        self._changed = asyncio.Condition()
        self.channel(700_001, "general")

    def new_id(self) -> int:
        # Ids grow with time and never repeat.
        return ((time.time_ns() // 1_000_000 - _EPOCH_MS) << 22) + next(self.numbers)

    def channel(
        self, channel_id: int, name: str, *, kind: int = 0, parent: int | None = None
    ) -> Json:
        made = {
            "id": str(channel_id),
            "type": kind,
            "name": name,
            "position": 0,
            "permission_overwrites": [],
            "nsfw": False,
        }
        made |= {
            "parent_id": str(parent) if parent else None,
            "last_message_id": None,
            "guild_id": str(GUILD),
        }
        if kind == 11:
            times = {
                "archived": False,
                "auto_archive_duration": 60,
                "archive_timestamp": now(),
                "locked": False,
            }
            made |= {
                "owner_id": str(BOT),
                "message_count": 0,
                "member_count": 1,
                "thread_metadata": times,
            }
        if kind == 1:
            del made["guild_id"]
        self.channels[channel_id] = made
        return made

    def direct(self, person: int) -> int:
        channel_id = 600_000 + person
        if channel_id not in self.channels:
            self.channel(channel_id, "", kind=1)["recipients"] = [user(person, "someone")]
        return channel_id

    def posts(self) -> list[Json]:
        return [each for each in self.messages.values() if int(each["author"]["id"]) == BOT]

    async def until(self, holds: Any, seconds: float = 30) -> None:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(holds), seconds)

    async def news(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def say(
        self, channel_id: int, author: str, text: str, *, tell: bool = True, **more: Any
    ) -> Json:
        message = self.put(channel_id, user(NAMES[author], author), text, **more)
        if tell:
            await self.tell("MESSAGE_CREATE", self.event(message))
        return message

    def attach(self, name: str, data: bytes, *, size: int | None = None) -> Json:
        file_id = self.new_id()
        self.files[file_id] = (name, data)
        url = f"{self.url}/files/{file_id}"
        plain = name.encode("ascii", "ignore").decode().replace(" ", "_")
        title = {"title": name.rpartition(".")[0]} if plain != name else {}
        return {
            "id": str(file_id),
            "filename": plain,
            "size": size or len(data),
            "url": url,
            "proxy_url": url,
            **title,
        }

    async def edit(self, message: Json, text: str) -> None:
        message |= {"content": text, "edited_timestamp": now()}
        await self.tell("MESSAGE_UPDATE", self.event(message))

    async def press(self, message: Json, value: str, author: str) -> Json:
        person = user(NAMES[author], author)
        channel = self.channels[int(message["channel_id"])]
        pressed = {
            "id": str(self.new_id()),
            "application_id": str(APP),
            "type": 3,
            "token": "interaction-token",
            "version": 1,
            "channel_id": message["channel_id"],
            "channel": channel,
            "message": message,
            "data": {"custom_id": value, "component_type": 2},
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 10 << 20,
        }
        if channel.get("guild_id"):
            member = {
                "user": person,
                "roles": [],
                "joined_at": now(),
                "deaf": False,
                "mute": False,
                "flags": 0,
                "permissions": "0",
            }
            pressed |= {"guild_id": str(GUILD), "guild": {"id": str(GUILD)}, "member": member}
        else:
            pressed["user"] = person
        await self.tell("INTERACTION_CREATE", pressed)
        return pressed

    def put(self, channel_id: int, author: Json, text: str, **more: Any) -> Json:
        message = {
            "id": str(self.new_id()),
            "channel_id": str(channel_id),
            "author": author,
            "content": text,
            "timestamp": now(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "components": [],
            **more,
        }
        self.messages[int(message["id"])] = message
        self.channels[channel_id]["last_message_id"] = message["id"]
        return message

    def event(self, message: Json) -> Json:
        guild = self.channels[int(message["channel_id"])].get("guild_id")
        return {**message, "guild_id": guild} if guild else dict(message)

    async def tell(self, kind: str, data: Json) -> None:
        """An event for every session, whether anybody listens or not."""
        for session in list(self.sessions.values()):
            shown = data
            if "content" in data and not session.intents & CONTENT:
                shown = {**data, "content": ""}
            await self.dispatch(session, kind, shown)
        await self.news()

    async def again(self) -> None:
        """The last event once more, as another event."""
        for session in list(self.sessions.values()):
            await self.dispatch(session, session.events[-1]["t"], session.events[-1]["d"])

    async def dispatch(self, session: Session, kind: str, data: Json) -> None:
        packet = {"op": 0, "t": kind, "s": len(session.events) + 1, "d": data}
        session.events.append(packet)
        if session.wire is not None:
            await session.wire.send(packet)

    async def drop(self, code: int = 4000) -> None:
        for session in list(self.sessions.values()):
            wire, session.wire = session.wire, None
            if wire is not None:
                await wire.socket.close(code=code)

    async def ask_to_reconnect(self) -> None:
        for session in list(self.sessions.values()):
            if session.wire is not None:
                await session.wire.send({"op": 7, "d": None})

    def forget_sessions(self) -> None:
        self.sessions.clear()


def now() -> str:
    return datetime.now(UTC).isoformat()


def user(user_id: int, name: str, *, bot: bool = False) -> Json:
    return {
        "id": str(user_id),
        "username": name,
        "global_name": name.capitalize(),
        "discriminator": "0",
        "avatar": None,
        "bot": bot,
    }
