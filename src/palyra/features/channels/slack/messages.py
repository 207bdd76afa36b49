"""Translation of Slack's events to our messages, and of what goes wrong there to what the core
knows. Nothing is decided here.

Slack's own way to write: into it for what we say, out of it for what people say.

The rule: what stands in code stays as it is, and nothing that was only quoted becomes a ping.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from palyra.features.channels.contract import ConnectionRefused, Lost, SendFailed
from palyra.features.channels.message_splitter import LengthLimit, split
from palyra.features.channels.model import Inbound, InboundFile, Sender

# What Slack takes: in a message's text, and in one section.
MOST_TEXT = 40_000
SECTION = LengthLimit(3_000, "utf16")
# It takes 12,000 in Markdown, and a little more in all blocks together; buttons and what it makes
# of tables need some of that.
MARKDOWN = LengthLimit(10_000, "utf16")

_CODE = re.compile(
    r"(^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z)|`[^`\n]+`)",
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\((https?://[^\s)]++)\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,600}?)(?<=\S)\1")
_ITALIC = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)(.{1,600}?)(?<=\S)~~")
_BULLET = re.compile(r"^([ \t]*)[*+-][ \t]+", re.MULTILINE)
_EVERYBODY = re.compile(r"<!(?=everyone|here|channel|subteam)", re.IGNORECASE)
_NAMED = re.compile(r"(?<![\w@<!])@(everyone|here|channel)(?!\w)")
_MRKDWN_TOKEN = re.compile(r"<([^<>\n]+)>")
EVERYONE = re.compile(r"<!(everyone|here|channel)(?:\|[^>]*)?>")


def pinging(text: str, *, everyone: bool) -> str:
    """The text such that it pings everybody, if it says so and may; otherwise such that it
    cannot.
    """
    return _NAMED.sub(r"<!\1>", text) if everyone else _EVERYBODY.sub("<\u200b!", text)


def written(markdown: str, *, everyone: bool = False) -> str:
    """Markdown in Slack's own marks, for places where Slack does not read Markdown."""
    parts = _CODE.split(markdown)
    # Each piece of code comes with the marks it was found by: text, code, marks, text, …
    made = []
    for at in range(0, len(parts), 3):
        made.append(_prose(parts[at], everyone=everyone))
        if at + 1 < len(parts):
            made.append(_mrkdwn_code(parts[at + 1]))
    return "".join(made)


def _mrkdwn_code(code: str) -> str:
    escaped = _escaped(code)
    # A fence has no language there, and only one length.
    return escaped if code.startswith("`") and "\n" not in code else _FENCE.sub("```", escaped)


def _prose(text: str, *, everyone: bool) -> str:
    text = _escaped(text.replace("\0", ""))
    text = _LINK.sub(lambda found: f"<{found[2]}|{found[1].replace('|', '/') or found[2]}>", text)
    # One star is bold there, and was slanted here: bold waits until the slanted is done.
    text = _HEADING.sub(lambda found: f"\0{found[1].replace('**', '')}\0", text)
    text = _BULLET.sub(r"\1• ", text)
    text = _BOLD.sub("\0\\2\0", text)
    text = _ITALIC.sub(r"_\1_", text).replace("\0", "*")
    text = _STRUCK.sub(r"~\1~", text)
    return _NAMED.sub(r"<!\1>", text) if everyone else text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sections(markdown: str, *, everyone: bool = False) -> list[str]:
    """The same as pieces that each fit a section."""
    return split(written(markdown, everyone=everyone), SECTION)


def read(text: str) -> str:
    """Return what somebody wrote, as they see it. Mentions of people keep their form, which is the
    only sure one.
    """
    text = _MRKDWN_TOKEN.sub(_meant, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _meant(found: re.Match[str]) -> str:
    what, _, label = found[1].partition("|")
    if what.startswith("@"):
        return f"<{what}>"
    if what.startswith("#"):
        return f"#{label or what[1:]}"
    if what.startswith("!"):
        return label if label.startswith("@") else f"@{label or what[1:].partition('^')[0]}"
    if what.startswith("mailto:"):
        return label or what[7:]
    return what if not label or label == what or f"//{label}" in what else f"{label} ({what})"


Json = dict[str, Any]
_SPOKEN = ("", "file_share", "thread_broadcast", "me_message", "bot_message")
_TOKEN = (
    "Slack does not know the tokens, or the app was removed: install it again"
    " (https://api.slack.com/apps, Install App), and store the new tokens in the vault"
)
_NOT_IN = (
    "invalid_auth",
    "not_authed",
    "token_revoked",
    "token_expired",
    "account_inactive",
    "not_allowed_token_type",
)
_SOCKET = "Socket Mode is off for this app: switch it on (https://api.slack.com/apps, Socket Mode)"
# What a later attempt does not change.
_HOPELESS = (
    "channel_not_found",
    "not_in_channel",
    "is_archived",
    "is_inactive",
    "message_not_found",
    "cant_update_message",
    "edit_window_closed",
    "msg_too_long",
    "msg_blocks_too_long",
    "no_text",
    "invalid_blocks",
    "invalid_arguments",
    "restricted_action",
    "restricted_action_thread_locked",
    "cannot_dm_bot",
    "user_disabled",
    "user_not_found",
    "thread_not_found",
    "as_user_not_supported",
    "missing_scope",
)


def spoken(event: Json) -> bool:
    """Return whether somebody said it: joins, topics and the like are nobody's words."""
    return event.get("subtype", "") in _SPOKEN and bool(event.get("user") or event.get("bot_id"))


def edited(event: Json) -> Json | None:
    """The message that an edit leaves. That Slack unfurled a link is no edit."""
    message, before = event.get("message") or {}, event.get("previous_message") or {}
    if not message.get("edited") or message.get("text") == before.get("text"):
        return None
    return {**message, "channel": event["channel"], "channel_type": event.get("channel_type", "")}


def inbound(
    event: Json,
    me: str,
    display: str,
    files: tuple[InboundFile, ...],
    notes: list[str],
    *,
    edit: bool = False,
) -> Inbound:
    channel, stamp, thread = (
        str(event["channel"]),
        str(event["ts"]),
        str(event.get("thread_ts") or ""),
    )
    raw = str(event.get("text") or "")
    native = f"{channel}/{stamp}"
    return Inbound(
        native_id=f"{native}#{event['edited']['ts']}" if edit else native,
        conversation=channel,
        thread=thread if thread != stamp else "",
        # A bot's posts may carry any name; only a member of the workspace is who they say.
        sender=Sender(
            str(event.get("user") or event["bot_id"]), display, verified=bool(event.get("user"))
        ),
        text="\n".join([read(raw), *notes]) if notes else read(raw),
        files=files,
        is_direct=event.get("channel_type") == "im",
        mentions_agent=f"<@{me}>" in raw or f"<@{me}|" in raw,
        mentions_everyone=EVERYONE.search(raw) is not None,
        sent_ms=int(stamp.partition(".")[0] or 0) * 1000
        + int((stamp.partition(".")[2] or "0")[:3]),
    )


def pressed(payload: Json) -> Inbound | None:
    """A button that was pressed, if it is one."""
    actions = [each for each in payload.get("actions") or [] if each.get("type") == "button"]
    if payload.get("type") != "block_actions" or not actions or not payload.get("channel"):
        return None
    user, channel, message = (
        payload["user"],
        str(payload["channel"]["id"]),
        payload.get("message") or {},
    )
    thread = str(message.get("thread_ts") or "")
    return Inbound(
        native_id=f"{channel}/press-{user['id']}-{actions[0]['action_ts']}",
        conversation=channel,
        thread=thread if thread != message.get("ts") else "",
        sender=Sender(str(user["id"]), str(user.get("name") or user.get("username") or "")),
        text=str(actions[0].get("value") or ""),
        is_direct=channel.startswith("D"),
        pressed=True,
    )


def _code(error: SlackApiError) -> str:
    try:
        return str(error.response.get("error") or "")
    except (AttributeError, TypeError):
        return ""


def pause_ms(error: SlackApiError) -> int:
    """Return how long Slack asks to wait; 0 if it does not."""
    if _code(error) != "ratelimited" and getattr(error.response, "status_code", 0) != 429:
        return 0
    told = {
        name.lower(): value for name, value in dict(getattr(error.response, "headers", {})).items()
    }.get("retry-after", "")
    return max(1, int(float(told) * 1000)) if str(told).replace(".", "", 1).isdecimal() else 30_000


@contextmanager
def connecting() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        code = _code(error)
        if code in _NOT_IN:
            raise ConnectionRefused(f"{_TOKEN} ({code})") from error
        if code == "missing_scope":
            raise ConnectionRefused(missing(str(error.response.get("needed") or ""))) from error
        if code == "socket_mode_not_enabled":
            raise ConnectionRefused(_SOCKET) from error
        raise Lost(
            f"Slack answered {code or 'with an error'}", retry_after_ms=pause_ms(error)
        ) from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Lost(f"Slack cannot be reached: {type(error).__name__}") from error


def missing(scopes: str) -> str:
    return (
        f"the app lacks the scope {scopes}: add it (https://api.slack.com/apps, OAuth &"
        " Permissions, Bot Token Scopes) and install the app again"
    )


def bid_farewell(reason: str) -> Exception:
    """Return the error for Slack's reason to end a connection."""
    return (
        ConnectionRefused(_SOCKET)
        if reason == "link_disabled"
        else Lost(f"Slack asks to connect again ({reason or 'closed'})")
    )


@contextmanager
def sending() -> Iterator[None]:
    """Translate errors of sending a message into the core's."""
    try:
        yield
    except SlackApiError as error:
        raise _failure(error) from error
    except aiohttp.ClientConnectorError as error:
        raise SendFailed("Slack cannot be reached") from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SendFailed(
            f"Slack did not answer: {type(error).__name__}", maybe_sent=True
        ) from error


def _failure(error: SlackApiError) -> SendFailed:
    code, pause = _code(error), pause_ms(error)
    if pause:
        return SendFailed("Slack asks to wait", retry_after_ms=pause)
    if code in _NOT_IN:
        return SendFailed(f"Slack no longer knows the token ({code})")
    if code == "not_in_channel":
        return SendFailed("the bot is not in this channel: /invite it", permanent=True)
    if code == "missing_scope":
        return SendFailed(missing(str(error.response.get("needed") or "")), permanent=True)
    return SendFailed(f"Slack answered {code or 'with an error'}", permanent=code in _HOPELESS)


def said(error: SendFailed) -> str:
    """Slack's own word for what went wrong, if it had one."""
    cause = error.__cause__
    return _code(cause) if isinstance(cause, SlackApiError) else ""
