"""How an answer is put to Slack: once, also if the answer to it was lost or the daemon was killed
in the middle.

Slack knows no keys for messages. Each message carries its key in its metadata instead, and where
the fate of one is unknown (after a start, or when an answer was lost) the conversation is read
before anything is said in it.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.contract import OutFile, OutgoingMessage, SendFailed, SentReceipt
from palyra.features.channels.model import Button
from palyra.features.channels.slack import messages, mrkdwn
from palyra.features.channels.slack.cursor import moment

_EVENT = "palyra_message"
_MOST_KEYS = 2_000
_LOOK_BACK_S = 24 * 3_600
_STYLES: dict[str, dict[str, str]] = {
    "plain": {},
    "good": {"style": "primary"},
    "bad": {"style": "danger"},
}
# Where nothing can be read, nothing is known; the message is sent.
_CLOSED = ("not_in_channel", "channel_not_found", "thread_not_found", "missing_scope")
Place = tuple[str, str]
Json = dict[str, Any]


class Mouth:
    """What we say. It outlives connections: what it knows of sent messages is asked of Slack once
    for each place.
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
            "text": mrkdwn.written(out.text, everyone=out.ping_everyone)[: mrkdwn.MOST_TEXT],
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
            "text": mrkdwn.written(text)[: mrkdwn.MOST_TEXT],
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
            body = [{"type": "markdown", "text": mrkdwn.pinging(text, everyone=everyone)}]
            try:
                return await method(**asked, blocks=[*body, *below])
            except SlackApiError as error:
                code = error.response.get("error")
                if code == "msg_blocks_too_long" and not below:
                    return await method(**asked)  # The text alone may be longer.
                if code != "invalid_blocks":
                    raise
                self._markdown = False
        pieces = mrkdwn.sections(text, everyone=everyone)
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
            if error.response.get("error") not in _CLOSED:
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
    """Whether the files of a message stand below it already."""
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
    """Files follow their text as a message of their own: Slack gives a message with files no
    metadata.
    """
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
