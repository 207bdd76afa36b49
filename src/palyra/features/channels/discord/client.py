"""Discord's own library, made to do one thing: one gateway connection whose events come out in
their order.

The library would run every event as a task of its own and reconnect by itself. Here events are
handed on as they come, with the number that the gateway gave them, so that what was not stored can
be asked for again.

Where we are in what Discord tells us: what a gateway session is resumed with, and what is
fetched if it cannot be.

Ids of messages grow with time over all of Discord, so one of them says up to where everything was
taken.
"""

import logging
from collections.abc import Callable
from typing import Any

import discord
import msgspec
from discord.client import Client
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route
from discord.state import ConnectionState
from msgspec import Struct
from yarl import URL

_MOST_DIRECT = 200


class DiscordCursor(Struct, frozen=True, omit_defaults=True):
    """`direct` are the conversations with one person: the gateway does not list them, so we
    remember them, the latest last.
    """

    session: str = ""
    sequence: int = 0
    gateway: str = ""
    last: int = 0
    direct: tuple[int, ...] = ()

    def with_direct(self, channel: int) -> "DiscordCursor":
        if channel in self.direct[-1:]:
            return self
        others = tuple(each for each in self.direct if each != channel)
        return msgspec.structs.replace(self, direct=(*others, channel)[-_MOST_DIRECT:])

    def without_session(self) -> "DiscordCursor":
        return msgspec.structs.replace(self, session="", sequence=0, gateway="")


def read(text: str) -> DiscordCursor:
    """Return the stored cursor; an initial one if it cannot be parsed."""
    try:
        return msgspec.json.decode(text, type=DiscordCursor) if text else DiscordCursor()
    except msgspec.MsgspecError:
        return DiscordCursor()


def written(cursor: DiscordCursor) -> str:
    return msgspec.json.encode(cursor).decode()


# Its logs quote messages and headers, and what is wrong is said by the channel's status.
logging.getLogger("discord").setLevel(logging.CRITICAL)

Heard = Callable[[str, Any, int], None]
# The longest that the library may wait by itself for a rate limit; it permits no less.
LONGEST_WAIT_S = 30.0


class _Http(HTTPClient):
    """The library's HTTP, with another address if one is set."""

    api: str = Route.BASE

    async def request(self, route: Route, **more: Any) -> Any:
        if route.url.startswith(Route.BASE):
            route.url = self.api + route.url[len(Route.BASE) :]
        return await super().request(route, **more)


class DiscordConnection(Client):
    def __init__(self, api: str, heard: Heard) -> None:
        self._api = api
        self._heard = heard
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = (
            True
        )
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            allowed_mentions=discord.AllowedMentions.none(),
            max_ratelimit_timeout=LONGEST_WAIT_S,
        )

    def _get_state(self, **options: Any) -> ConnectionState[Any]:
        http = _Http(self.loop, max_ratelimit_timeout=LONGEST_WAIT_S)
        http.api = self._api
        self.http = http
        return super()._get_state(**options)

    def dispatch(self, event: str, /, *args: Any, **_: Any) -> None:
        """Handle an event; the library calls it for every one, in order, while it is at it."""
        found = self.ws.sequence if self.ws is not None else 0
        self._heard(event, args[0] if args else None, found or 0)

    async def begin(self, cursor: DiscordCursor) -> DiscordWebSocket:
        """Open the gateway: go on with a session that there was, or begin one."""
        gateway = (
            URL(cursor.gateway) if cursor.session else URL((await self.http.get_bot_gateway())[1])
        )
        opened = DiscordWebSocket.from_client(
            self,
            initial=True,
            gateway=gateway,
            session=cursor.session or None,
            sequence=cursor.sequence or None,
            resume=bool(cursor.session),
        )
        self.ws = await opened
        return self.ws

    async def confirm(self, interaction: discord.Interaction) -> None:
        """Say that a press was taken. The library's own way knows no other address than
        Discord's.
        """
        path = "/interactions/{interaction_id}/{token}/callback"
        route = Route("POST", path, interaction_id=interaction.id, token=interaction.token)
        await self.http.request(route, json={"type": 6})

    async def leave(self) -> None:
        """Go such that the session can be resumed: a close with 1000 would end it."""
        if self.ws is not None and self.ws.open:
            await self.ws.close(code=4000)
        await self.close()
