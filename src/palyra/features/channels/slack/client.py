"""Slack's own library, made to do one thing: one Socket Mode connection whose envelopes come out in
their order.

The library would run every envelope as a task of its own and connect again by itself, without a
pause. Here they are handed on as they come, and that it wants to connect again is the end of this
connection: the supervisor's pauses grow.

Up to where everything was taken. Slack's time stamps name messages and grow over a whole
workspace, so one of them says it.

Replies in a thread are not in the history of its channel; the threads that were spoken in lately
are remembered besides.

What Slack must allow the bot: asked for when it is set up, and looked for when it is tried.

What was said while nobody listened. Slack sends again what was not confirmed, but not for long;
the histories have the rest.

How an answer is put to Slack: once, also if the answer to it was lost or the daemon was killed
in the middle.

Slack knows no keys for messages. Each message carries its key in its metadata instead, and where
the fate of one is unknown (after a start, or when an answer was lost) the conversation is read
before anything is said in it.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.contract import OutFile, OutgoingMessage, SendFailed, SentReceipt
from palyra.features.channels.model import Button
from palyra.features.channels.slack import messages

SCOPES = (
    "chat:write",
    "channels:history",
    "groups:history",
    "im:history",
    "mpim:history",
    "channels:read",
    "groups:read",
    "im:read",
    "mpim:read",
    "users:read",
    "reactions:write",
    "files:read",
    "files:write",
)


_MOST_THREADS = 100


class SlackCursor(Struct, frozen=True, omit_defaults=True):
    last: str = ""
    # Channel and time stamp of each, the latest last.
    threads: tuple[tuple[str, str], ...] = ()

    def after(self, stamp: str) -> "SlackCursor":
        return msgspec.structs.replace(self, last=max(self.last, stamp, key=moment))

    def with_thread(self, channel: str, thread: str) -> "SlackCursor":
        if (channel, thread) in self.threads[-1:]:
            return self
        others = tuple(each for each in self.threads if each != (channel, thread))
        return msgspec.structs.replace(self, threads=(*others, (channel, thread))[-_MOST_THREADS:])


def moment(stamp: str) -> tuple[int, int]:
    """A time stamp as what it counts: a float would not hold it."""
    seconds, _, rest = stamp.partition(".")
    return (
        (int(seconds), int(rest or 0))
        if seconds.isdecimal() and (rest or "0").isdecimal()
        else (0, 0)
    )


def read(text: str) -> SlackCursor:
    """Return the stored cursor; an initial one if it cannot be parsed."""
    try:
        return msgspec.json.decode(text, type=SlackCursor) if text else SlackCursor()
    except msgspec.MsgspecError:
        return SlackCursor()


def written(cursor: SlackCursor) -> str:
    return msgspec.json.encode(cursor).decode()


# Its logs quote messages and addresses that let anybody in, and what is wrong is said by the
# channel's status.
logging.getLogger("slack_sdk").setLevel(logging.CRITICAL)

_TIMEOUT_S = 30


class SlackConnection(SocketModeClient):
    def __init__(self, app_token: str, web: AsyncWebClient) -> None:
        super().__init__(app_token, web_client=web)
        self.envelopes: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue()

    async def open(self) -> None:
        with messages.connecting():
            answer = await self.web_client.apps_connections_open(app_token=self.app_token)
            self.wss_uri = answer["url"]
            async with asyncio.timeout(_TIMEOUT_S):
                # The library tries again and again, for as long as it is let.
                await self.connect()  # type: ignore[no-untyped-call]

    async def enqueue_message(self, message: str) -> None:
        """Queue a frame; called for every one, in order."""
        told = json.loads(message) if message.startswith("{") else {}
        if told.get("type") == "disconnect":
            self.envelopes.put_nowait(messages.bid_farewell(str(told.get("reason") or "")))
        else:
            self.envelopes.put_nowait(told)

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """End the connection; called when it is closed or gives no sign of life."""
        self.envelopes.put_nowait(messages.bid_farewell(""))

    async def confirm(self, envelope_id: str) -> None:
        with messages.connecting():
            await self.send_socket_mode_response(SocketModeResponse(envelope_id=envelope_id))


def web_client(token: str, api: str, session: Any) -> AsyncWebClient:
    # Without its own way to try again: it would send a message twice whose answer was lost.
    return AsyncWebClient(
        token, base_url=f"{api}/", timeout=_TIMEOUT_S, session=session, retry_handlers=[]
    )


_KINDS = "public_channel,private_channel,mpim,im"
_MOST_CONVERSATIONS = 400
_MOST_MESSAGES = 1_000
_PAGE = 200
_MOST_WAITS = 5
Json = dict[str, Any]
# Not ours to read, or gone meanwhile.
_CLOSED = ("channel_not_found", "not_in_channel", "thread_not_found", "missing_scope")


async def events(web: AsyncWebClient, cursor: SlackCursor) -> AsyncIterator[Json]:
    """Yield everything since the cursor, each conversation in its order."""
    for conversation in await _conversations(web):
        channel = str(conversation["id"])
        kind = "im" if conversation.get("is_im") else ""
        found = await _pages(
            web.conversations_history, "messages", channel=channel, oldest=cursor.last
        )
        threads = {thread for where, thread in cursor.threads if where == channel}
        threads |= {str(each["ts"]) for each in found if each.get("reply_count")}
        for thread in sorted(threads):
            replies = await _pages(
                web.conversations_replies,
                "messages",
                channel=channel,
                ts=thread,
                oldest=cursor.last,
            )
            found += [each for each in replies if moment(str(each["ts"])) > moment(cursor.last)]
        known: set[str] = set()
        for message in sorted(found, key=lambda each: moment(str(each["ts"]))):
            # A reply that was also sent to the channel is in both histories.
            if message["ts"] not in known:
                known.add(message["ts"])
                yield {**message, "channel": channel, "channel_type": kind}


async def _conversations(web: AsyncWebClient) -> list[Json]:
    found = await _pages(web.users_conversations, "channels", types=_KINDS, exclude_archived=True)
    return found[:_MOST_CONVERSATIONS]


async def _pages(method: Callable[..., Awaitable[Any]], name: str, **asked: Any) -> list[Json]:
    found: list[Json] = []
    cursor: str | None = None
    with messages.connecting():
        while len(found) < _MOST_MESSAGES:
            answer = await _patiently(method, limit=_PAGE, cursor=cursor, **asked)
            found += answer.get(name) or []
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
    return found


async def _patiently(method: Callable[..., Awaitable[Any]], **asked: Any) -> Any:
    for _ in range(_MOST_WAITS):
        try:
            return await method(**asked)
        except SlackApiError as error:
            pause = messages.pause_ms(error)
            if not pause:
                if error.response.get("error") in _CLOSED:
                    return {}
                raise
            await asyncio.sleep(pause / 1000)
    return await method(**asked)


_EVENT = "palyra_message"
_MOST_KEYS = 2_000
_LOOK_BACK_S = 24 * 3_600
_STYLES: dict[str, dict[str, str]] = {
    "plain": {},
    "good": {"style": "primary"},
    "bad": {"style": "danger"},
}
# Where nothing can be read, nothing is known; the message is sent.
_SEND_CLOSED = ("not_in_channel", "channel_not_found", "thread_not_found", "missing_scope")
Place = tuple[str, str]


class Mouth:
    """Sender of our messages. It outlives connections: what it knows of sent messages is asked of
    Slack once for each place.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._sent: OrderedDict[str, str] = OrderedDict()
        self._looked: set[Place] = set()
        # Whether Slack reads Markdown here; an old installation may not.
        self._markdown = True

    async def say(
        self, web: AsyncWebClient, session: aiohttp.ClientSession, out: OutgoingMessage
    ) -> SentReceipt:
        place = (out.conversation, out.thread)
        try:
            with messages.sending():
                recent = await self._look(web, place)
                known = self._sent.get(out.key, "")
                stamp = known or await self._post(web, out)
                if out.files and not (known and _shared(recent, known, out.files)):
                    await _share(web, session, out)
        except SendFailed as error:
            if error.maybe_sent:
                self._looked.discard(place)
            raise
        return SentReceipt(f"{out.conversation}/{stamp}", duplicate=bool(known))

    async def _post(self, web: AsyncWebClient, out: OutgoingMessage) -> str:
        asked: Json = {
            "channel": out.conversation,
            "text": messages.written(out.text, everyone=out.ping_everyone)[: messages.MOST_TEXT],
            "metadata": {"event_type": _EVENT, "event_payload": {"key": out.key}},
            # A link in an answer must not make Slack fetch it.
            "unfurl_links": False,
            "unfurl_media": False,
        }
        if out.thread:
            asked["thread_ts"] = out.thread
        answer = await self._with_blocks(
            web.chat_postMessage, asked, out.text, out.buttons, everyone=out.ping_everyone
        )
        stamp = str(answer["ts"])
        self._note(out.key, stamp)
        return stamp

    async def replace(self, web: AsyncWebClient, channel: str, stamp: str, text: str) -> None:
        asked: Json = {
            "channel": channel,
            "ts": stamp,
            "text": messages.written(text)[: messages.MOST_TEXT],
        }
        with messages.sending():
            await self._with_blocks(web.chat_update, asked, text, (), everyone=False)

    async def _with_blocks(
        self,
        method: Callable[..., Any],
        asked: Json,
        text: str,
        buttons: Sequence[Button],
        *,
        everyone: bool,
    ) -> Any:
        below = _buttons(buttons)
        if self._markdown:
            body = [{"type": "markdown", "text": messages.pinging(text, everyone=everyone)}]
            try:
                return await method(**asked, blocks=[*body, *below])
            except SlackApiError as error:
                code = error.response.get("error")
                if code == "msg_blocks_too_long" and not below:
                    return await method(**asked)  # The text alone may be longer.
                if code != "invalid_blocks":
                    raise
                self._markdown = False
        pieces = messages.sections(text, everyone=everyone)
        plain = [{"type": "section", "text": {"type": "mrkdwn", "text": piece}} for piece in pieces]
        return await method(**asked, blocks=[*plain, *below])

    async def _look(self, web: AsyncWebClient, place: Place) -> list[Json]:
        """Read what we said here lately, where that is not known; gives it if it was read."""
        if place in self._looked:
            return []
        channel, thread = place
        since = f"{self._now_ms() // 1000 - _LOOK_BACK_S}.000000"
        asked: Json = {
            "channel": channel,
            "oldest": since,
            "limit": 200,
            "include_all_metadata": True,
        }
        try:
            if thread:
                answer = await web.conversations_replies(**asked, ts=thread)
            else:
                answer = await web.conversations_history(**asked)
        except SlackApiError as error:
            if error.response.get("error") not in _SEND_CLOSED:
                raise
            return []
        found: list[Json] = answer.get("messages") or []
        for message in sorted(found, key=lambda each: moment(str(each["ts"]))):
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == _EVENT:
                self._note(
                    str((metadata.get("event_payload") or {}).get("key")), str(message["ts"])
                )
        if len(self._looked) >= _MOST_KEYS:
            self._looked.clear()
        self._looked.add(place)
        return found

    def _note(self, key: str, stamp: str) -> None:
        self._sent[key] = stamp
        while len(self._sent) > _MOST_KEYS:
            self._sent.popitem(last=False)


def _buttons(buttons: Sequence[Button]) -> list[Json]:
    if not buttons:
        return []
    made = [
        {
            "type": "button",
            "action_id": f"palyra-{number}",
            "text": {"type": "plain_text", "text": button.label[:75]},
            "value": button.value[:2_000],
            **_STYLES[button.style],
        }
        for number, button in enumerate(buttons)
    ]
    return [{"type": "actions", "elements": made}]


def _shared(recent: list[Json], since: str, files: Sequence[OutFile]) -> bool:
    """Return whether the files of a message stand below it already."""
    wanted = sorted((file.name, len(file.data)) for file in files)
    return any(
        sorted(
            (str(each.get("name")), int(each.get("size") or 0))
            for each in message.get("files") or []
        )
        == wanted
        for message in recent
        if moment(str(message["ts"])) > moment(since)
    )


async def _share(web: AsyncWebClient, session: aiohttp.ClientSession, out: OutgoingMessage) -> None:
    """Send files as a message of their own: Slack gives a message with files no metadata."""
    uploaded: list[dict[str, str | None]] = []
    for file in out.files:
        place = await web.files_getUploadURLExternal(filename=file.name, length=len(file.data))
        async with session.post(place["upload_url"], data=file.data) as answer:
            if answer.status != 200:
                raise SendFailed(f"Slack did not take the file {file.name} ({answer.status})")
        uploaded.append({"id": place["file_id"], "title": file.name})
    await web.files_completeUploadExternal(
        files=uploaded, channel_id=out.conversation, thread_ts=out.thread or None
    )
