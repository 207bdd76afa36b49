"""Translation of Discord's messages to ours, and of what goes wrong there to what the core knows.
Nothing is decided here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import aiohttp
import discord

from palyra.features.channels.contract import MOST_FILE_BYTES, ConnectionRefused, Lost, SendFailed
from palyra.features.channels.model import Inbound, InboundFile, Sender

_SPOKEN = (discord.MessageType.default, discord.MessageType.reply)
_INTENT = (
    "Discord does not let this bot read messages: open https://discord.com/developers/applications,"
    " your application, Bot, and switch on Message Content Intent"
)
_TOKEN = (
    "Discord does not know the token: make another (Developer Portal, Bot, Reset Token) and store"
    " it in the vault"
)
# Codes with which the gateway closes and means it.
_CLOSED = {
    4004: _TOKEN,
    4010: "Discord refuses the connection (invalid shard): report this",
    4011: (
        "the bot is in too many servers for one connection: use a bot that is in fewer than 2,500"
    ),
    4012: "Discord no longer speaks this version of its gateway: update palyra",
    4013: "Discord does not know the intents that were asked for: update palyra",
    4014: _INTENT,
}


def is_spoken(message: discord.Message) -> bool:
    """Return whether somebody said it: joins, pins and the like are nobody's words."""
    return message.type in _SPOKEN


async def inbound(
    message: discord.Message, conversation: str, thread: str, me: int, *, edited: bool = False
) -> Inbound:
    files, notes = await _files(message.attachments)
    native = f"{message.channel.id}/{message.id}"
    if edited and message.edited_at is not None:
        native += f"#{int(message.edited_at.astimezone(UTC).timestamp() * 1000)}"
    reference = message.reference
    return Inbound(
        native_id=native,
        conversation=conversation,
        thread=thread,
        # Whoever posts through a webhook chooses the name, and Discord vouches for nobody.
        sender=Sender(
            str(message.author.id), message.author.display_name, verified=message.webhook_id is None
        ),
        text="\n".join([message.content, *notes]) if notes else message.content,
        files=files,
        is_direct=message.guild is None and not thread and _is_direct(message),
        mentions_agent=any(user.id == me for user in message.mentions),
        mentions_everyone=message.mention_everyone,
        reply_to=(
            f"{reference.channel_id}/{reference.message_id}"
            if reference and reference.message_id
            else ""
        ),
        sent_ms=int(message.created_at.timestamp() * 1000),
    )


def _is_direct(message: discord.Message) -> bool:
    channel = message.channel
    return isinstance(channel, discord.DMChannel) or (
        isinstance(channel, discord.PartialMessageable) and not channel.guild_id
    )


async def _files(
    attachments: list[discord.Attachment],
) -> tuple[tuple[InboundFile, ...], list[str]]:
    """Return the attachments, and a line for each that could not be taken: a message does not wait
    forever for its files.
    """
    found: list[InboundFile] = []
    notes: list[str] = []
    for each in attachments:
        if each.size > MOST_FILE_BYTES:
            notes.append(
                f"(The file {each.filename} was not taken: it is larger than"
                f" {MOST_FILE_BYTES >> 20} MiB.)"
            )
            continue
        try:
            data = await each.read()
        except (discord.HTTPException, aiohttp.ClientError, TimeoutError, OSError):
            notes.append(
                f"(The file {each.filename} could not be fetched from Discord: send it again.)"
            )
            continue
        # The name that people see: Discord spells the other one in plain letters.
        name = each.title and _with_ending(each.title, each.filename)
        found.append(
            InboundFile(name or each.filename, data, (each.content_type or "").partition(";")[0])
        )
    return tuple(found), notes


def _with_ending(title: str, filename: str) -> str:
    _, dot, ending = filename.rpartition(".")
    return title if not dot or title.endswith(f".{ending}") else f"{title}.{ending}"


def closed(error: discord.ConnectionClosed) -> Exception:
    why = _CLOSED.get(error.code)
    return ConnectionRefused(why) if why else Lost(f"Discord closed the connection ({error.code})")


def check_content(flags: discord.ApplicationFlags) -> None:
    if not (flags.gateway_message_content or flags.gateway_message_content_limited):
        raise ConnectionRefused(_INTENT)


@contextmanager
def connecting() -> Iterator[None]:
    try:
        yield
    except discord.LoginFailure as error:
        raise ConnectionRefused(_TOKEN) from error
    except discord.ConnectionClosed as error:
        raise closed(error) from error
    except discord.RateLimited as error:
        raise Lost("Discord asks to wait", retry_after_ms=int(error.retry_after * 1000)) from error
    except (discord.HTTPException, discord.GatewayNotFound) as error:
        status = error.status if isinstance(error, discord.HTTPException) else 0
        if status in (401, 403):
            raise ConnectionRefused(_TOKEN) from error
        raise Lost(f"Discord answered {status or 'that there is no gateway'}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Lost(f"Discord cannot be reached: {type(error).__name__}") from error


@contextmanager
def sending() -> Iterator[None]:
    """Translate errors of sending a message into the core's."""
    try:
        yield
    except discord.RateLimited as error:
        raise SendFailed(
            "Discord asks to wait", retry_after_ms=max(1, int(error.retry_after * 1000))
        ) from error
    except discord.HTTPException as error:
        raise _failure(error) from error
    except aiohttp.ClientConnectorError as error:
        raise SendFailed("Discord cannot be reached") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SendFailed(
            f"Discord did not answer: {type(error).__name__}", maybe_sent=True
        ) from error


def _failure(error: discord.HTTPException) -> SendFailed:
    if error.status == 429:
        # From before Discord itself, without saying for how long.
        return SendFailed("Discord asks to wait", retry_after_ms=60_000)
    if error.status == 401:
        return SendFailed("Discord no longer knows the token")
    if error.code == 50007:
        return SendFailed("this person takes no direct messages from the bot", permanent=True)
    if error.status == 403:
        return SendFailed(
            f"the bot may not do this here: {error.text} ({error.code})", permanent=True
        )
    if error.status == 404:
        return SendFailed(f"the conversation or the message is gone ({error.code})", permanent=True)
    return SendFailed(
        f"Discord answered {error.status}: {error.text}"[:300], permanent=error.status < 500
    )
