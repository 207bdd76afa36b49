"""What was said while nobody listened. Slack sends again what was not confirmed, but not for long;
the histories have the rest.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.slack import messages
from palyra.features.channels.slack.cursor import SlackCursor, moment

_KINDS = "public_channel,private_channel,mpim,im"
_MOST_CONVERSATIONS = 400
_MOST_MESSAGES = 1_000
_PAGE = 200
_MOST_WAITS = 5
Json = dict[str, Any]
# Not ours to read, or gone meanwhile.
_CLOSED = ("channel_not_found", "not_in_channel", "thread_not_found", "missing_scope")


async def events(web: AsyncWebClient, cursor: SlackCursor) -> AsyncIterator[Json]:
    """Everything since the cursor, each conversation in its order."""
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
