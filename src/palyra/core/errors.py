"""The one error family. Every error a caller can meet has a stable code, a sentence, and says
whether trying again may help.
"""

from typing import Any, ClassVar


class PalyraError(Exception):
    """Base of the family. `message` is lower case, names the thing and says what to do next."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class NotFound(PalyraError):
    code = "not_found"


class Conflict(PalyraError):
    code = "conflict"


class InvalidInput(PalyraError):
    code = "invalid_input"


class Unauthenticated(PalyraError):
    code = "unauthenticated"


class Forbidden(PalyraError):
    code = "forbidden"


class IllegalTransition(PalyraError):
    code = "illegal_transition"


class LimitExceeded(PalyraError):
    code = "limit_exceeded"
    retryable = True


class Unavailable(PalyraError):
    code = "unavailable"
    retryable = True


class ChainBroken(PalyraError):
    code = "chain_broken"


class ConfigInvalid(PalyraError):
    code = "config_invalid"
