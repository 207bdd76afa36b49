"""Calls to a homeserver through matrix-nio, with what goes wrong said in the words of the contract.
Nothing is retried here.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import nio

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import ConnectionRefused, Lost, SendFailed

# How long the server may hold a sync open when there is nothing new.
POLL_MS = 30_000
_REQUEST_S = 30.0
_PAUSE_MS = 5_000
_REFUSED = frozenset(
    {
        "M_UNKNOWN_TOKEN",
        "M_MISSING_TOKEN",
        "M_USER_DEACTIVATED",
        "M_USER_LOCKED",
        "M_USER_SUSPENDED",
    }
)


# It would say what is wrong with an answer by quoting it.
logging.getLogger("nio").setLevel(logging.CRITICAL)


def client(name: str, homeserver: str, token: str) -> nio.AsyncClient:
    parts = urlsplit(homeserver)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise InvalidInput(
            f"channel {name}: homeserver must be an address such as https://matrix.example.org"
        )
    # It neither waits nor tries again by itself: whoever calls knows better when that makes sense.
    config = nio.AsyncClientConfig(
        max_limit_exceeded=0,
        max_timeouts=0,
        request_timeout=_REQUEST_S,
        encryption_enabled=False,
        store=None,
    )
    made = nio.AsyncClient(homeserver.rstrip("/"), config=config)
    made.access_token = token
    return made


async def ask(call: Awaitable[Any]) -> Any:
    """The answer to a question; Refused if we are not let in, Lost for everything else that is
    wrong.
    """
    try:
        answer = await call
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Lost(f"the homeserver does not answer: {_words(error)}") from error
    if isinstance(answer, nio.ErrorResponse):
        if _status(answer) == 401 or answer.status_code in _REFUSED:
            raise ConnectionRefused(
                f"the homeserver refuses the token ({answer.status_code}): log in again and store a"
                " new one"
            )
        raise Lost(
            f"the homeserver answers {_said(answer)}",
            retry_after_ms=_wait_ms(answer) if _status(answer) == 429 else 0,
        )
    return answer


async def deliver(call: Awaitable[Any]) -> Any:
    """The answer to something that is sent; SendFailed or Lost with what is known about it."""
    try:
        answer = await call
    except aiohttp.ClientConnectorError as error:
        raise Lost(f"the homeserver cannot be reached: {_words(error)}") from error
    except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise SendFailed(
            f"the homeserver's answer was lost: {_words(error)}", maybe_sent=True
        ) from error
    if not isinstance(answer, nio.ErrorResponse):
        return answer
    status = _status(answer)
    if status == 429 or answer.status_code == "M_LIMIT_EXCEEDED":
        raise SendFailed("the homeserver asks us to wait", retry_after_ms=_wait_ms(answer))
    if status == 401:
        raise Lost("the homeserver refuses the token")
    raise SendFailed(
        f"the homeserver answers {_said(answer)}", permanent=400 <= status < 500 and status != 408
    )


def is_unknown_place(error: Lost) -> bool:
    """Return whether the homeserver does not know the place where we stopped: it was set up
    anew.
    """
    cause = str(error)
    return "M_UNKNOWN " in cause or "M_INVALID_PARAM" in cause


def _status(answer: Any) -> int:
    response = getattr(answer, "transport_response", None)
    return int(response.status) if response is not None else 0


def _wait_ms(answer: Any) -> int:
    """Return how long we are to wait; the header is the newer way to say it."""
    header = (
        answer.transport_response.headers.get("Retry-After", "")
        if answer.transport_response is not None
        else ""
    )
    told = int(header) * 1000 if header.isascii() and header.isdecimal() else 0
    return max(1, answer.retry_after_ms or told or _PAUSE_MS)


def _said(answer: Any) -> str:
    words = f"{_status(answer) or ''} {answer.status_code or ''} {str(answer.message)[:200]}"
    return " ".join(words.split())


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
