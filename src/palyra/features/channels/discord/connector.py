"""Discord: one gateway connection at a time, resumed where the store stands, and messages over its
HTTP API.

The rule: the gateway's number of an event is stored in the step that stores the message. A
connection that is lost, or a store that was away, is resumed from there; a session that cannot be
resumed is made up for from the channels' histories.
"""

import asyncio
import io
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import discord
import msgspec
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from palyra.features.channels.contract import (
    Abilities,
    ConnectorLimits,
    Inbox,
    Lost,
    Mark,
    Me,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
)
from palyra.features.channels.discord import client as cursors
from palyra.features.channels.discord import messages
from palyra.features.channels.discord.client import DiscordConnection, DiscordCursor
from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Button, Inbound, Sender

log = logging.getLogger("palyra.channels")

_CONNECT_S = 60.0
# How much of a channel is read when a session could not be resumed.
_MOST_MISSED = 1_000
_AT_ONCE = 8
_MARKS: dict[Mark, str] = {"seen": "👀", "done": "✅", "refused": "🚫"}
_STYLES = {
    "plain": discord.ButtonStyle.secondary,
    "good": discord.ButtonStyle.success,
    "bad": discord.ButtonStyle.danger,
}
_THREADS = (10, 11, 12)
_MOST_VALUE = 100
Event = tuple[str, Any, int]


class Discord:
    abilities = Abilities(
        threads=True,
        edit=True,
        typing=True,
        acknowledge=True,
        buttons=True,
        files=True,
        idempotent=True,
    )
    # It says characters; counted as its own programs count, which is never less.
    limits = ConnectorLimits(
        text=LengthLimit(2_000, "utf16"), files=10, file_bytes=10 << 20, per_second=40.0
    )

    def __init__(self, name: str, token: str, api: str, now_ms: Callable[[], int]) -> None:
        self.name = name
        self.now_ms = now_ms
        self._token = token
        self._api = api
        self._line: DiscordConnection | None = None
        self._parents: dict[int, int] = {}

    async def serve(self, door: Inbox) -> None:
        events: asyncio.Queue[Event] = asyncio.Queue()
        line = DiscordConnection(
            self._api, lambda kind, what, number: events.put_nowait((kind, what, number))
        )
        reader = _Reader(self, line, door, cursors.read(await door.recall()))
        try:
            with messages.connecting():
                async with asyncio.timeout(_CONNECT_S):
                    await line.login(self._token)
                    messages.check_content(line.application_flags)
                    socket = await reader.open()
            await _first_of(_poll(socket, door), reader.work(events))
        except ReconnectWebSocket as error:
            if not error.resume:
                await door.remember(cursors.written(reader.cursor.without_session()))
            raise Lost("the gateway asks to connect again") from error
        finally:
            self._line = None
            await line.leave()

    def stands(self, line: DiscordConnection) -> None:
        self._line = line

    async def place(
        self, line: DiscordConnection, channel: Any, channel_id: int
    ) -> tuple[str, str]:
        """The conversation and the thread. A thread is a channel of its own there, and a message
        does not say whose.
        """
        parent = (
            channel.parent_id
            if isinstance(channel, discord.Thread)
            else self._parents.get(channel_id)
        )
        if parent is None and isinstance(channel, discord.PartialMessageable) and channel.guild_id:
            parent = await _parent(line, channel_id)
        if parent is None:
            return str(channel_id), ""
        self._parents[channel_id] = parent
        return (str(parent), str(channel_id)) if parent else (str(channel_id), "")

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        line = self._standing()
        channel_id = _number(out.thread or out.conversation)
        files = [discord.File(io.BytesIO(each.data), each.name) for each in out.files]
        more: dict[str, Any] = {"files": files} if files else {}
        if out.buttons:
            more["view"] = _buttons(out.buttons)
        replied, _, message = out.reply_to.partition("#")[0].rpartition("/")
        if message.isdecimal() and replied == str(channel_id):
            more["reference"] = discord.MessageReference(
                message_id=int(message), channel_id=channel_id, fail_if_not_exists=False
            )
        with messages.sending():
            sent = await line.get_partial_messageable(channel_id).send(
                out.text,
                # A key may have 25 characters there.
                nonce=sha256(out.key.encode()).hexdigest()[:25],
                allowed_mentions=_pings(everyone=out.ping_everyone),
                # A link in an answer must not make Discord fetch it.
                suppress_embeds=True,
                **more,
            )
        return SentReceipt(f"{channel_id}/{sent.id}")

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        with messages.sending():
            await self._message(native_id).edit(
                content=text, view=None, allowed_mentions=_pings(everyone=False)
            )

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        with messages.sending():
            await self._standing().http.send_typing(_number(thread or conversation))

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        line, message = self._standing(), self._message(native_id)
        with messages.sending():
            await message.add_reaction(_MARKS[mark])
            if mark != "seen" and line.user is not None:
                await message.remove_reaction(_MARKS["seen"], line.user)

    async def test(self) -> Me:
        line = DiscordConnection(self._api, lambda kind, what, number: None)
        try:
            with messages.connecting():
                async with asyncio.timeout(_CONNECT_S):
                    await line.login(self._token)
            messages.check_content(line.application_flags)
            return who(line)
        finally:
            await line.leave()

    async def close(self) -> None:
        """The connection ends with `serve`."""

    def _standing(self) -> DiscordConnection:
        if self._line is None:
            raise Lost("not connected")
        return self._line

    def _message(self, native_id: str) -> discord.PartialMessage:
        channel, _, message = native_id.partition("#")[0].rpartition("/")
        return (
            self._standing()
            .get_partial_messageable(_number(channel))
            .get_partial_message(_number(message))
        )


class _Reader:
    """Reader of one connection's events, in sequence: each is stored before the next is looked
    at.
    """

    def __init__(
        self, connector: Discord, line: DiscordConnection, door: Inbox, cursor: DiscordCursor
    ) -> None:
        self._connector = connector
        self._line = line
        self._door = door
        self.cursor = cursor
        self._socket: DiscordWebSocket | None = None
        # Up to where everything was taken before; and what is still to be made up for, since this
        # connection began anew.
        self._since = cursor.last
        self._missed: set[int] = set()

    async def open(self) -> DiscordWebSocket:
        self._socket = await self._line.begin(self.cursor)
        return self._socket

    async def work(self, events: asyncio.Queue[Event]) -> None:
        while True:
            kind, what, number = await events.get()
            await self._handle(kind, what, number)

    async def _handle(self, kind: str, what: Any, number: int) -> None:
        match kind:
            case "connect":
                self._missed = {guild.id for guild in self._line.guilds} | {0}
                if not self._since:
                    # Before the first connection nothing was missed; from here on, everything
                    # counts.
                    self.cursor = msgspec.structs.replace(
                        self.cursor, last=_id_at(self._connector.now_ms())
                    )
                    await self._door.remember(cursors.written(self.cursor))
                await self._make_up(0, [(each, None) for each in self.cursor.direct], number)
                await self._stands()
            case "resumed":
                await self._stands()
            case "guild_available" | "guild_join":
                await self._make_up_guild(what, number)
            case "message":
                # The library tells of a server a little late: what was missed there still comes
                # first.
                if what.guild is not None:
                    await self._make_up_guild(what.guild, number)
                await self._take(what, number)
            case "raw_message_edit" if what.message.edited_at is not None:
                await self._take(what.message, number, edited=True)
            case "interaction" if what.type is discord.InteractionType.component:
                await self._pressed(what, number)

    async def _stands(self) -> None:
        self._connector.stands(self._line)
        await self._door.connected(who(self._line))

    async def _make_up_guild(self, guild: discord.Guild, number: int) -> None:
        if guild.id in self._missed and not guild.unavailable:
            spoken: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
            news = [(each.id, each) for each in spoken if (each.last_message_id or 0) > self._since]
            await self._make_up(guild.id, news, number)

    async def _make_up(
        self, guild_id: int, channels: Iterable[tuple[int, Any]], number: int
    ) -> None:
        """Read what was said while there was no session. What comes twice has the same id."""
        if guild_id not in self._missed:
            return
        if self._since:
            found = [
                channel or self._line.get_partial_messageable(channel_id)
                for channel_id, channel in channels
            ]
            for at in range(0, len(found), _AT_ONCE):
                # Read a few at once: with many channels the way there and back is what takes long.
                for history in await asyncio.gather(*map(self._history, found[at : at + _AT_ONCE])):
                    for message in history:
                        await self._take(message, 0)
        self._missed.discard(guild_id)
        if not self._missed:
            # From here on the session is all that is needed.
            self.cursor = self._at(self.cursor, number)
            await self._door.remember(cursors.written(self.cursor))

    async def _history(self, channel: Any) -> list[discord.Message]:
        found: list[discord.Message] = []
        with (
            messages.connecting(),
            suppress(discord.Forbidden, discord.NotFound),
        ):  # not ours to read, or gone
            async for message in channel.history(
                limit=_MOST_MISSED, after=discord.Object(self._since), oldest_first=True
            ):
                found.append(message)
        return found

    async def _take(self, message: discord.Message, number: int, *, edited: bool = False) -> None:
        me = self._line.user.id if self._line.user is not None else 0
        if message.author.id == me or not messages.is_spoken(message):
            return
        conversation, thread = await self._connector.place(
            self._line, message.channel, message.channel.id
        )
        found = await messages.inbound(message, conversation, thread, me, edited=edited)
        await self._hand_over(found, message.id, number)

    async def _pressed(self, interaction: discord.Interaction, number: int) -> None:
        data: Any = interaction.data
        channel_id = interaction.channel_id or 0
        conversation, thread = await self._connector.place(
            self._line, interaction.channel, channel_id
        )
        pressed = Inbound(
            native_id=f"{channel_id}/press-{interaction.id}",
            conversation=conversation,
            thread=thread,
            sender=Sender(str(interaction.user.id), interaction.user.display_name),
            text=str(data["custom_id"]),
            is_direct=interaction.guild_id is None,
            pressed=True,
        )
        await self._hand_over(pressed, 0, number)
        # Pressed too long ago, it cannot be confirmed any more; what it says was taken.
        with suppress(SendFailed), messages.sending():
            await self._line.confirm(interaction)

    async def _hand_over(self, message: Inbound, said: int, number: int) -> None:
        cursor = (
            self.cursor.with_direct(int(message.conversation)) if message.is_direct else self.cursor
        )
        if self._missed:
            # Without a session: what is not made up for yet is looked for again after a crash.
            cursor = cursor.without_session()
        else:
            cursor = self._at(msgspec.structs.replace(cursor, last=max(cursor.last, said)), number)
        await self._door.take(message, cursor=cursors.written(cursor))
        self.cursor = cursor

    def _at(self, cursor: DiscordCursor, number: int) -> DiscordCursor:
        socket = self._socket
        if not number or socket is None or not socket.session_id:
            return cursor
        return msgspec.structs.replace(
            cursor, session=socket.session_id, sequence=number, gateway=str(socket.gateway)
        )


async def _parent(line: DiscordConnection, channel_id: int) -> int:
    """Return whose thread a channel is; 0 if it is none."""
    with messages.connecting():
        try:
            raw: Any = await line.http.get_channel(channel_id)
        except (discord.Forbidden, discord.NotFound):
            return 0
    return int(raw.get("parent_id") or 0) if raw["type"] in _THREADS else 0


async def _poll(socket: DiscordWebSocket, door: Inbox) -> None:
    with messages.connecting():
        while True:
            try:
                await socket.poll_event()
            except (KeyError, TypeError, AttributeError) as error:
                # Something the library does not understand; it would fail again after every
                # reconnection.
                log.warning(
                    "an event of Discord's was not understood and is left out (%s)",
                    type(error).__name__,
                )
            door.alive()


async def _first_of(*works: Any) -> None:
    """Wait until one of them ends; what it ended with is raised, and the others end too."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _id_at(now_ms: int) -> int:
    return discord.utils.time_snowflake(datetime.fromtimestamp(now_ms / 1000, UTC))


def who(line: DiscordConnection) -> Me:
    user = line.user
    if user is None:
        raise Lost("Discord did not say who we are")
    return Me(
        account=str(user.id),
        names=(f"<@{user.id}>", f"<@!{user.id}>", f"@{user.name}"),
        place="Discord",
    )


def _buttons(buttons: Iterable[Button]) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for button in buttons:
        if len(button.value) > _MOST_VALUE:
            raise SendFailed(
                f"a button's value may have {_MOST_VALUE} characters on Discord", permanent=True
            )
        view.add_item(
            discord.ui.Button(
                label=button.label[:80], custom_id=button.value, style=_STYLES[button.style]
            )
        )
    # The library need not remember it: what is pressed comes to us with its value.
    view.stop()
    return view


def _pings(*, everyone: bool) -> discord.AllowedMentions:
    return discord.AllowedMentions(everyone=everyone, users=False, roles=False, replied_user=False)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise SendFailed(
            f"{text[:40]!r} is no conversation on Discord: its name is a number", permanent=True
        )
    return int(text)
