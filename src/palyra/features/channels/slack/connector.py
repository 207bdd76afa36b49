"""Slack over Socket Mode: one connection at a time, envelopes confirmed once they are stored, and
answers over the Web API.

The rule: what is not stored is not confirmed, so that Slack sends it again; and what was said while
nobody listened is read from the histories before anything new is taken.
"""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.contract import (
    MOST_FILE_BYTES,
    Abilities,
    ConnectionRefused,
    ConnectorLimits,
    Inbox,
    Lost,
    Mark,
    Me,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
)
from palyra.features.channels.model import Inbound, InboundFile
from palyra.features.channels.slack import client as cursors
from palyra.features.channels.slack import messages
from palyra.features.channels.slack.client import SCOPES, Mouth, SlackConnection, web_client

log = logging.getLogger("palyra.channels")

_MARKS: dict[Mark, str] = {"seen": "eyes", "done": "white_check_mark", "refused": "no_entry_sign"}
_HOME = ("slack.com", "slack-files.com", "slack-gov.com")
_MOST_NAMES = 2_000
_FILE_S = 60.0
Json = dict[str, Any]


class Slack:
    abilities = Abilities(
        threads=True, edit=True, acknowledge=True, buttons=True, files=True, idempotent=True
    )
    limits = ConnectorLimits(
        text=messages.MARKDOWN, files=10, file_bytes=64 << 20, per_second=5.0, apart_ms=1_000
    )

    def __init__(
        self, name: str, token: str, app_token: str, api: str, now_ms: Callable[[], int]
    ) -> None:
        self.name = name
        self.now_ms = now_ms
        self._token = token
        self._app_token = app_token
        self._api = api
        self._mouth = Mouth(now_ms)
        self._session: aiohttp.ClientSession | None = None
        self._web: AsyncWebClient | None = None
        self._names: dict[str, str] = {}

    async def serve(self, door: Inbox) -> None:
        async with aiohttp.ClientSession() as session:
            web = web_client(self._token, self._api, session)
            me = await self._who(web)
            line = SlackConnection(self._app_token, web)
            try:
                await line.open()
                reader = _Reader(self, web, session, door, me)
                while True:
                    envelope = await line.envelopes.get()
                    if isinstance(envelope, Exception):
                        raise envelope
                    door.alive()
                    if envelope.get("type") == "hello":
                        self._session, self._web = session, web
                        since = await reader.begin()
                        await door.connected(me)
                        await reader.make_up(since)
                        continue
                    await reader.take(envelope)
                    if envelope.get("envelope_id"):
                        await line.confirm(str(envelope["envelope_id"]))
            finally:
                self._session = self._web = None
                await line.close()  # type: ignore[no-untyped-call]

    async def display(self, web: AsyncWebClient, user: str) -> str:
        """Return a person's display name; asked once for each."""
        if user not in self._names:
            try:
                with messages.sending():
                    profile = (await web.users_info(user=user))["user"]
            except SendFailed:
                return ""
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[user] = str(
                (profile.get("profile") or {}).get("display_name") or profile.get("real_name") or ""
            )
        return self._names[user]

    async def fetch(self, session: aiohttp.ClientSession, file: Json) -> InboundFile | str:
        """A file, or why it was not taken. Our token goes to Slack and to nobody else."""
        name, url = (
            str(file.get("name") or "file"),
            str(file.get("url_private_download") or file.get("url_private") or ""),
        )
        if int(file.get("size") or 0) > MOST_FILE_BYTES:
            return (
                f"(The file {name} was not taken: it is larger than {MOST_FILE_BYTES >> 20} MiB.)"
            )
        if not self._is_home(url):
            return f"(The file {name} was not taken: it is not stored at Slack.)"
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            timeout = aiohttp.ClientTimeout(total=_FILE_S)
            async with session.get(
                url, headers=headers, allow_redirects=False, timeout=timeout
            ) as answer:
                data = await _body(answer) if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            data = None
        if data is None:
            return f"(The file {name} could not be fetched from Slack: send it again.)"
        return InboundFile(name, data, str(file.get("mimetype") or ""))

    def _is_home(self, url: str) -> bool:
        parts, own = urlsplit(url), urlsplit(self._api)
        host = parts.hostname or ""
        known = parts.scheme == "https" and any(
            host == each or host.endswith(f".{each}") for each in _HOME
        )
        return known or (parts.scheme, parts.netloc) == (own.scheme, own.netloc)

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        web, session = self._standing()
        return await self._mouth.say(web, session, out)

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        await self._mouth.replace(self._standing()[0], *_parts(native_id), text)

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        """Do nothing: Slack has no such sign for bots."""

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        web = self._standing()[0]
        channel, stamp = _parts(native_id)
        await self._react(web.reactions_add, channel, stamp, mark)
        if mark != "seen":
            await self._react(web.reactions_remove, channel, stamp, "seen")

    async def _react(
        self, method: Callable[..., Any], channel: str, stamp: str, mark: Mark
    ) -> None:
        try:
            with messages.sending():
                await method(channel=channel, timestamp=stamp, name=_MARKS[mark])
        except SendFailed as error:
            if messages.said(error) not in ("already_reacted", "no_reaction"):
                raise

    async def test(self) -> Me:
        async with aiohttp.ClientSession() as session:
            web = web_client(self._token, self._api, session)
            me = await self._who(web)
            with messages.connecting():
                # That the other token is good is seen by asking for a connection; none is made.
                await web.apps_connections_open(app_token=self._app_token)
            return me

    async def _who(self, web: AsyncWebClient) -> Me:
        with messages.connecting():
            told = await web.auth_test()
        granted = {name.lower(): value for name, value in told.headers.items()}.get(
            "x-oauth-scopes", ""
        )
        lacking = [
            scope
            for scope in SCOPES
            if granted and scope not in granted.replace(" ", "").split(",")
        ]
        if lacking:
            raise ConnectionRefused(messages.missing(", ".join(lacking)))
        user = str(told["user_id"])
        return Me(
            account=user,
            names=(f"<@{user}>", f"@{told['user']}"),
            place=str(told.get("team") or "Slack"),
        )

    async def close(self) -> None:
        """The connection ends with `serve`."""

    def _standing(self) -> tuple[AsyncWebClient, aiohttp.ClientSession]:
        if self._web is None or self._session is None:
            raise Lost("not connected")
        return self._web, self._session


class _Reader:
    """Reader of one connection's events, in sequence."""

    def __init__(
        self,
        connector: Slack,
        web: AsyncWebClient,
        session: aiohttp.ClientSession,
        door: Inbox,
        me: Me,
    ) -> None:
        self._connector = connector
        self._web = web
        self._session = session
        self._door = door
        self._me = me.account
        self._cursor = cursors.SlackCursor()

    async def begin(self) -> str:
        """Return since when to make up for missed messages: none before the first connection."""
        self._cursor = cursors.read(await self._door.recall())
        since = self._cursor.last
        if not since:
            # From the beginning of this second: the clocks need not agree to the last digit.
            self._cursor = self._cursor.after(f"{self._connector.now_ms() // 1000}.000000")
            await self._door.remember(cursors.written(self._cursor))
        return since

    async def make_up(self, since: str) -> None:
        if not since:
            return
        # Until all of it is there, the cursor stays where it was.
        upto = self._cursor
        async for event in cursors.events(self._web, self._cursor):
            upto = upto.after(str(event["ts"]))
            await self._message(event, advance=False)
        self._cursor = self._cursor.after(upto.last)
        await self._door.remember(cursors.written(self._cursor))

    async def take(self, envelope: Json) -> None:
        payload = envelope.get("payload") or {}
        match envelope.get("type"):
            case "events_api":
                event = payload.get("event") or {}
                if event.get("type") == "message" and event.get("subtype") == "message_changed":
                    changed = messages.edited(event)
                    if changed is not None:
                        await self._message(changed, edit=True)
                elif event.get("type") in ("message", "app_mention"):
                    await self._message(event)
            case "interactive":
                pressed = messages.pressed(payload)
                if pressed is not None:
                    await self._hand_over(pressed, "")

    async def _message(self, event: Json, *, edit: bool = False, advance: bool = True) -> None:
        if not messages.spoken(event) or event.get("user") == self._me:
            return
        files: list[InboundFile] = []
        notes: list[str] = []
        for each in event.get("files") or []:
            found = await self._connector.fetch(self._session, each)
            if isinstance(found, str):
                notes.append(found)
            else:
                files.append(found)
        user = str(event.get("user") or "")
        display = (
            await self._connector.display(self._web, user)
            if user
            else str(event.get("username") or "")
        )
        try:
            message = messages.inbound(event, self._me, display, tuple(files), notes, edit=edit)
        except (KeyError, TypeError, ValueError) as error:
            # It would be no better the next time that Slack delivers it.
            log.warning(
                "an event of Slack's was not understood and is left out (%s)", type(error).__name__
            )
            return
        await self._hand_over(message, str(event["ts"]) if advance else "")

    async def _hand_over(self, message: Inbound, stamp: str) -> None:
        cursor = self._cursor.after(stamp) if stamp else self._cursor
        if message.thread:
            cursor = cursor.with_thread(message.conversation, message.thread)
        await self._door.take(message, cursor=cursors.written(cursor))
        self._cursor = cursor


async def _body(answer: aiohttp.ClientResponse) -> bytes | None:
    data = bytearray()
    async for chunk in answer.content.iter_chunked(1 << 16):
        data += chunk
        if len(data) > MOST_FILE_BYTES:
            return None
    return bytes(data)


def _parts(native_id: str) -> tuple[str, str]:
    channel, _, stamp = native_id.partition("#")[0].partition("/")
    return channel, stamp
