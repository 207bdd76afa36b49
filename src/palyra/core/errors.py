"""The one error family. Every error a caller can meet has a stable code, a sentence, and says
whether trying again may help.

Errors of a disk, told from defects: what failed is a device or a file system, and a person has
to look at it.
"""

import errno
from typing import Any, ClassVar

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FAILED = {
    errno.EIO,
    errno.EROFS,
    errno.ENODEV,
    errno.ENXIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EUCLEAN,
}


def trouble(error: OSError, where: object) -> str:
    """Return what is wrong with the disk under a place and what to do, or nothing if the error is
    not the disk's.
    """
    if error.errno in _FULL:
        return full(where)
    if error.errno in _FAILED:
        return failed(where, (error.strerror or str(error)).lower())
    return ""


def full(where: object) -> str:
    return (
        f"the disk is full: free some space where {where} lies and try again; nothing acknowledged"
        " was lost"
    )


def failed(where: object, why: object) -> str:
    return (
        f"the disk under {where} failed ({why}): check it (dmesg, smartctl); nothing acknowledged"
        " was lost"
    )


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
