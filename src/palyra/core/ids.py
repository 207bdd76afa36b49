"""Identifiers are ULIDs: 26 upper-case Crockford characters, sortable by time. Anything else is
refused.
"""

import re
from hashlib import sha256
from typing import NewType

from palyra.core.errors import InvalidInput

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
CallId = NewType("CallId", str)
ApprovalId = NewType("ApprovalId", str)
TapeId = NewType("TapeId", str)
ArtifactId = NewType("ArtifactId", str)
Principal = NewType("Principal", str)

OWNER = Principal("user:owner")
SYSTEM = Principal("system")
SYSTEM_TAPE = TapeId("system:local")

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
# The first character carries only three bits of a 128-bit number.
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
PRINCIPAL_PATTERN = (
    r"^(system|(user|worker):[a-z0-9][a-z0-9._-]{0,63}|channel:[a-z0-9-]{1,32}:[^\s:]{1,128})$"
)
_PRINCIPAL = re.compile(PRINCIPAL_PATTERN)


def make(now_ms: int, entropy: bytes) -> str:
    """A ULID from a time and ten random bytes."""
    number = (now_ms << 80) | int.from_bytes(entropy[:10], "big")
    pairs = _PAIRS
    return "".join([pairs[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def derive(now_ms: int, *parts: object) -> str:
    """The same ULID for the same time and parts, wherever it is made."""
    return make(now_ms, sha256("\0".join(map(str, parts)).encode()).digest())


def is_ulid(text: str) -> bool:
    return bool(_ULID.match(text))


def check(text: str, what: str) -> str:
    """Return `text` if it is a canonical ULID, else refuse it by name."""
    if not isinstance(text, str) or not _ULID.match(text):
        raise InvalidInput(
            f"{what} is not a ULID: 26 characters, upper case, without I, L, O and U",
            value=str(text)[:64],
        )
    return text


def check_principal(text: str) -> Principal:
    if not _PRINCIPAL.match(text):
        raise InvalidInput(
            "a principal is user:<name>, channel:<connector>:<sender>, worker:<id> or system",
            value=text[:64],
        )
    return Principal(text)
