"""The host of a URL in its one true spelling, or a refusal.

Where the WHATWG URL standard would accept an odd spelling we may refuse it; we never read a
different host out of it.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote_to_bytes

from palyra.core.errors import Forbidden, InvalidInput

_LONGEST = 253
# An idna library should not be fed novels.
_LONGEST_SPELLING = 1024
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PLAIN_IPV4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")


class HostRefused(Forbidden):
    """A place that no call may reach, whatever a policy says."""


def parse(text: str) -> str:
    """A host as it stands in a URL: a name in ASCII and lower case, an IPv4 address, or an IPv6
    address without its brackets.
    """
    if not text:
        raise InvalidInput("the URL has no host")
    if len(text) > _LONGEST_SPELLING:
        raise HostRefused("the host in the URL is too long")
    if text.startswith("["):
        return _ipv6(text)
    name = _ascii(_percent_decoded(text))
    if _ends_in_number(name):
        if not text.isascii() or name != text or not _PLAIN_IPV4.fullmatch(name):
            raise HostRefused(
                f"{shown(text)} is an odd spelling of an IPv4 address; write it as four decimal"
                " numbers"
            )
        try:
            return str(IPv4Address(name))
        except AddressValueError:
            raise HostRefused(f"{shown(text)} is not an IPv4 address") from None
    if name.endswith("."):
        raise HostRefused(f"{shown(text)} ends in a dot; leave it out")
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise HostRefused(f"{shown(text)} is not a host name")
    return name


def written(host: str) -> str:
    """A parsed host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def shown(text: str, longest: int = 120) -> str:
    """Make untrusted text fit for a message: short, on one line, every odd character visible."""
    safe = "".join(
        char if char.isascii() and char.isprintable() else f"\\u{{{ord(char):x}}}"
        for char in text[:longest]
    )
    return safe if len(text) <= longest else safe + "…"


def _percent_decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text.encode()).decode()
    except UnicodeError:
        raise HostRefused(f"{shown(text)} is not a host name") from None


def _ascii(name: str) -> str:
    lowered = name.lower() if name.isascii() else name
    if name.isascii() and not any(label.startswith("xn--") for label in lowered.split(".")):
        return lowered
    import idna

    try:
        return idna.encode(lowered, uts46=True).decode()
    except UnicodeError:
        raise HostRefused(f"{shown(name)} is not a valid internationalised host name") from None


def _ends_in_number(name: str) -> bool:
    """Return whether a browser would read the name as an IPv4 address: its last part is a
    number.
    """
    labels = name.split(".")
    if labels[-1] == "" and len(labels) > 1:
        labels.pop()
    return bool(_NUMBER.fullmatch(labels[-1]))


def _ipv6(text: str) -> str:
    inside = text[1:-1]
    if not text.endswith("]") or not inside.isascii() or "%" in inside:
        raise HostRefused(
            f"{shown(text)} is not an IPv6 address; zones and escapes are not allowed in one"
        )
    try:
        number = int(IPv6Address(inside))
    except AddressValueError:
        raise HostRefused(f"{shown(text)} is not an IPv6 address") from None
    return ipv6_text(number)


def ipv6_text(number: int) -> str:
    """The standard spelling: hexadecimal throughout, the first longest run of zeros left out."""
    groups = [f"{number >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    best = max(
        (
            (end - start, -start)
            for start in range(8)
            for end in range(start + 2, 9)
            if all(group == "0" for group in groups[start:end])
        ),
        default=(0, 0),
    )
    if not best[0]:
        return ":".join(groups)
    start = -best[1]
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + best[0] :])}"
