"""Errors become statuses here and nowhere else. One shape for all of them: code, message,
retryable, details.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import (
    ChainBroken,
    ConfigInvalid,
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    LimitExceeded,
    NotFound,
    PalyraError,
    Unauthenticated,
    Unavailable,
)


class MethodNotAllowed(InvalidInput):
    """The path exists, the method does not."""


class NotAcceptable(InvalidInput):
    """The client does not take what the answer is."""


class BodyTooSlow(LimitExceeded):
    """The body did not arrive in time."""


class BodyTooLarge(LimitExceeded):
    """The body is larger than limits.body_bytes."""


class WrongMediaType(InvalidInput):
    """The body is not JSON."""


class WrongHost(Forbidden):
    """The Host header names somebody else: a page elsewhere may be pretending that this is its own
    server.
    """


class UpgradeRequired(InvalidInput):
    """A WebSocket address that was called without an upgrade."""


class TooManyHeaders(LimitExceeded):
    """Error of a request with more header fields than limits.headers."""


class Problem(Struct, frozen=True, kw_only=True):
    """`retryable` says whether the same request may succeed later."""

    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorBody(Struct, frozen=True):
    error: Problem


STATUS: dict[type[PalyraError], int] = {
    InvalidInput: 400,
    ConfigInvalid: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    BodyTooSlow: 408,
    Conflict: 409,
    IllegalTransition: 409,
    ChainBroken: 409,
    BodyTooLarge: 413,
    WrongMediaType: 415,
    WrongHost: 421,
    UpgradeRequired: 426,
    LimitExceeded: 429,
    TooManyHeaders: 431,
    PalyraError: 500,
    Unavailable: 503,
}
# After these the rest of the request is not read, so the connection cannot be used again.
CLOSING = frozenset({408, 413, 421, 431})
_encode = msgspec.json.Encoder(enc_hook=str).encode


def status_of(error: PalyraError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem_of(error: PalyraError) -> Problem:
    return Problem(
        code=error.code, message=error.message, retryable=error.retryable, details=error.details
    )


def body_of(error: PalyraError) -> bytes:
    return _encode(ErrorBody(problem_of(error)))


def internal(reference: str) -> PalyraError:
    return PalyraError(
        f"something went wrong inside the daemon; its log says what, at {reference}: please"
        " report it",
        reference=reference,
    )
