"""Errors of Telegram and of its library, as what they mean to us. None of their texts is passed on
that could hold the token.
"""

import httpx
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from palyra.features.channels.contract import ConnectionRefused, Lost, SendFailed

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_OTHER_READER_MS = 30_000


def pause_ms(error: RetryAfter) -> int:
    seconds = error.retry_after
    return max(1, int(1_000 * (seconds if isinstance(seconds, int) else seconds.total_seconds())))


def connecting(error: TelegramError) -> Lost | ConnectionRefused:
    """What went wrong while we ask who we are, or for news."""
    if isinstance(error, InvalidToken):
        return ConnectionRefused(
            "Telegram does not know this token: get one from @BotFather (/token) and store it in"
            " the vault"
        )
    if isinstance(error, Forbidden):
        return ConnectionRefused(
            "Telegram refuses this bot: look at @BotFather whether it still exists"
        )
    if isinstance(error, Conflict):
        if "webhook" in error.message.casefold():
            return ConnectionRefused(
                "another program gets this bot's messages by a webhook: use a bot of its own for"
                " Palyra, or call deleteWebhook"
            )
        return Lost(
            "another program asks for this bot's messages: stop it, or use a bot of its own",
            retry_after_ms=_OTHER_READER_MS,
        )
    if isinstance(error, RetryAfter):
        return Lost("Telegram asks to wait", retry_after_ms=pause_ms(error))
    return Lost(f"Telegram cannot be reached: {reason(error)}")


def sending(error: TelegramError) -> SendFailed | Lost:
    if isinstance(error, RetryAfter):
        return SendFailed("Telegram asks to wait", retry_after_ms=pause_ms(error))
    if isinstance(error, InvalidToken):
        return Lost("Telegram does not know this token any more")
    if isinstance(error, BadRequest | Forbidden):
        return SendFailed(f"Telegram refuses the message: {error.message}", permanent=True)
    cause = error.__cause__
    unknown = (
        isinstance(error, NetworkError)
        and isinstance(cause, httpx.HTTPError)
        and not isinstance(cause, _NOT_SENT)
    )
    return SendFailed(f"Telegram did not take the message: {reason(error)}", maybe_sent=unknown)


def reason(error: TelegramError) -> str:
    return (
        type(error.__cause__).__name__
        if isinstance(error.__cause__, httpx.HTTPError)
        else error.message[:200]
    )
