"""Web addresses, read the way browsers read them where it matters for safety.

The rule: the host, port and scheme that are judged are those that are connected to, because a URL
is read once, here, and whatever the WHATWG URL standard and a careless reader could see differently
is refused.
"""

import re
from urllib.parse import quote_from_bytes

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.tools.net import hosts
from palyra.tools.net.hosts import HostRefused, shown

LONGEST = 8192
PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"[^/\\?#]*")
_REST = re.compile(r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?")
_DOT = re.compile(r"\.|%2e", re.IGNORECASE)
_ENDS = "".join(map(chr, range(0x21)))
_PATH_SAFE = "!$%&'()*+,-./:;=@[\\]_|~"
_QUERY_SAFE = "!$%&()*+,-./:;=?@[\\]^_`{|}~"

# Ports on which something other than the web listens: mail, shells, databases, control planes. A
# request sent there is an attempt to speak to it in another protocol.
_OTHER_PORTS = (
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111"
    " 113 115 117 119 123 135 137 138 139 143 161 162 179 389 427 445 465 512 513 514 515 526 530"
    " 531 532 540 548 554 556 563 587 601 623 631 636 873 989 990 993 995 1080 1433 1521 1719 1720"
    " 1723 2049 2181 2375 2376 2379 2380 3128 3306 3389 3659 4045 4190 5060 5061 5432 5672 5900"
    " 5984 6000 6379 6443 6566 6665 6666 6667 6668 6669 6679 6697 9042 9092 10080 10250 11211 27017"
)
_NOT_WEB = frozenset(map(int, _OTHER_PORTS.split()))


class Url(Struct, frozen=True):
    """A web address. `host` is in its one spelling, an IPv6 address without brackets; `query` is
    None when there is no `?`.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str | None = None

    @property
    def authority(self) -> str:
        """Host and, unless it is the usual one, port: what a Host header says and what a decision
        is about.
        """
        usual = self.port == PORTS[self.scheme]
        return hosts.written(self.host) if usual else f"{hosts.written(self.host)}:{self.port}"

    @property
    def target(self) -> str:
        """Target in the first line of a request."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(text: str, base: Url | None = None) -> Url:
    """A URL, relative to `base` if there is one; the fragment is dropped.

    Raises InvalidInput for what is no URL and Refused for one that must not be used.
    """
    if len(text) > LONGEST:
        raise InvalidInput(f"the URL is longer than {LONGEST} characters")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput("the URL contains half of a character")
    text = re.sub(r"[\t\n\r]", "", text.strip(_ENDS))
    found = _SCHEME.match(text)
    if found is None:
        if base is None:
            raise InvalidInput(f"{shown(text)} is not a URL; begin with https:// or http://")
        return _relative(text, base)
    scheme, rest = found.group(1).lower(), text[found.end() :]
    if scheme not in PORTS:
        raise HostRefused(f"the scheme {shown(scheme)} is not allowed; only http and https are")
    if base is not None and base.scheme == scheme and not rest.startswith("//"):
        return _relative(rest, base)
    return _absolute(scheme, rest.lstrip("/\\"))


def _relative(text: str, base: Url) -> Url:
    if text[:1] in ("/", "\\"):
        if text[1:2] in ("/", "\\"):
            return _absolute(base.scheme, text.lstrip("/\\"))
        return _placed(base.scheme, base.host, base.port, text)
    rest = _REST.match(text)
    assert rest is not None
    if rest["path"]:
        return _placed(base.scheme, base.host, base.port, base.path.rpartition("/")[0] + "/" + text)
    query = base.query if rest["query"] is None else _encoded(rest["query"], _QUERY_SAFE)
    return Url(base.scheme, base.host, base.port, base.path, query)


def _absolute(scheme: str, text: str) -> Url:
    found = _AUTHORITY.match(text)
    assert found is not None
    authority = found.group()
    if "@" in authority:
        raise HostRefused(
            "a URL must not carry a user name or password; use auth with a vault reference"
        )
    host, port = split_port(authority, PORTS[scheme])
    if port in _NOT_WEB:
        raise HostRefused(f"port {port} is not for the web")
    return _placed(scheme, hosts.parse(host), port, text[found.end() :])


def split_port(authority: str, usual: int) -> tuple[str, int]:
    """The spelling of a host, not yet judged, and its port."""
    end = authority.find("]") + 1 if authority.startswith("[") else 0
    colon = authority.find(":", end)
    if colon < 0:
        return authority, usual
    digits = authority[colon + 1 :]
    if not digits:
        return authority[:colon], usual
    if (
        not digits.isascii()
        or not digits.isdecimal()
        or int(digits[-64:]) > 0xFFFF
        or digits[:-64].strip("0")
    ):
        raise HostRefused(f"{shown(digits)} is not a port")
    return authority[:colon], int(digits)


def _placed(scheme: str, host: str, port: int, rest: str) -> Url:
    found = _REST.match(rest)
    assert found is not None
    query = None if found["query"] is None else _encoded(found["query"], _QUERY_SAFE)
    return Url(scheme, host, port, _walked(found["path"]), query)


def _walked(path: str) -> str:
    """The path without `.` and `..`, in any of their spellings."""
    parts = path.replace("\\", "/").removeprefix("/").split("/")
    kept: list[str] = []
    for number, part in enumerate(parts, 1):
        plain = _DOT.sub(".", part)
        if plain == "..":
            del kept[-1:]
        if plain not in (".", ".."):
            kept.append(_encoded(part, _PATH_SAFE))
        elif number == len(parts):
            kept.append("")
    return "/" + "/".join(kept)


def _encoded(text: str, safe: str) -> str:
    return quote_from_bytes(text.encode(), safe=safe)
