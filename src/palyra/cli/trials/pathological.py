"""Texts made to cost much: each is read by the part it aims at, and compared with plain text of the same length.

Costs are processor time of this thread, the least of several tries, so that a busy machine does not change the verdict. No text
may cost more than twenty times what plain text costs, and one of twice the length not much more than twice as much.
"""

import base64
import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from palyra.domain.redaction import Redactor
from palyra.runtime.doctor import Check

MOST_RATIO = 20.0
MOST_GROWTH = 3.2  # for twice the length; 4 would be quadratic
SIZE = 48 << 10
_TRIES = 3
_PLAIN = (
    "The quick brown fox leaps over the lazy dog, 3 times; it is fun to see how far it goes. Then we go on: see chapter 4 for the "
    "details on what comes next, please.\n"
)


class Case(NamedTuple):
    """`text` gives so many characters of it."""

    part: str
    what: str
    text: Callable[[int], str]


class Verdict(NamedTuple):
    case: Case
    ratio: float  # to plain text
    growth: float  # for twice the length

    @property
    def holds(self) -> bool:
        return self.ratio <= MOST_RATIO and self.growth <= MOST_GROWTH


def _repeated(piece: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda size: (head + piece * (1 + (size - len(head) - len(tail)) // len(piece)))[: size - len(tail)] + tail


def plain(size: int) -> str:
    return _repeated(_PLAIN)(size)


def _drawn(size: int) -> bytes:
    return random.Random(size).randbytes(size)


_REDACTION = {
    "names of secrets": "pw:",
    "names with an equals sign": "password=",
    "names and blanks": "token ",
    "names with commas": "key=a,",
    "names and quotes": 'password="',
    "fields of a connection": "Password=a;user=b;",
    "names of cloud keys": "aws secret ",
    "beginnings of URLs": "://",
    "URLs with users": "://a:b@",
    "users in commands": "curl -u a:b ",
    "programs that take passwords": "mysql -u mysql -p ",
    "beginnings of tokens": "ey-",
    "parts of a token": "eyJa.",
    "short tokens": "A1aaaaaaaaaaaaaaa ",
    "escapes of characters": "\\u0041",
    "escapes of bytes": "%41",
    "escapes of marks": "&#65;",
    "escaped names": "%70%77%3A",
    "fences": "-----BEGIN PRIVATE KEY-----\n",
    "words of a fence": "PRIVATE ",
    "ends of fences": "AAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n",
    "quotes": "'\"",
    "anchors": "7Q~",
    "placeholders": "[redacted:key:00000000]password=",
    "passwords in a list": "password=Tr0ub4dor&3 ",
    "logins": "login('a','b1c2d3')",
    "digits": "1/",
    "zero-width characters": "p\u200bw\u200b:",
    "full-width letters": "\uff50\uff57\uff1a",
    "broken lines": "token=a1b2c3d4e5f6\ng7h8i9\n",
    "quoted-printable": "pw=3Da=\n",
    "hex in capitals and not": "aAbBcCdDeEfF0123",
}


def _base64_in_base64(size: int) -> str:
    text = plain(size * 27 // 64)
    for _ in range(3):
        text = base64.b64encode(text.encode()).decode()
    return text[:size]


def _lines_of_base64(size: int) -> str:
    body = base64.encodebytes(_drawn(size)).decode()
    return body[:size]


CASES = (
    *(Case("redaction", what, _repeated(piece)) for what, piece in _REDACTION.items()),
    Case("redaction", "one letter", _repeated("a")),
    Case("redaction", "blanks behind a fence", _repeated(" ", "-----BEGIN PRIVATE KEY-----\n", "x")),
    Case("redaction", "base64 in base64", _base64_in_base64),
    Case("redaction", "lines of base64", _lines_of_base64),
    *(Case("stream", what, _repeated(piece)) for what, piece in _REDACTION.items() if len(piece) < 10),
)


def _stream(text: str) -> None:
    stream = Redactor(b"trial").stream()
    for at in range(0, len(text), 64):
        stream.feed(text[at : at + 64])
    stream.finish()


PARTS: dict[str, Callable[[str], object]] = {
    "redaction": lambda text: Redactor(b"trial").redact(text),
    "stream": _stream,
}


def seconds(work: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(_TRIES):
        began = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - began)
    return best


def judge(case: Case) -> Verdict:
    work = PARTS[case.part]
    half, whole = (seconds(work, case.text(size)) for size in (SIZE // 2, SIZE))
    usual = seconds(work, plain(SIZE))
    return Verdict(case, whole / max(usual, 1e-4), whole / max(half, 1e-4))


def trial() -> Iterator[Check]:
    """One check for each part."""
    for part in PARTS:
        verdicts = [judge(case) for case in CASES if case.part == part]
        slow = [f"{each.case.what} ({each.ratio:.0f} ×)" for each in verdicts if not each.holds]
        worst = max(each.ratio for each in verdicts)
        title = f"attack: texts that cost much ({part})"
        if slow:
            yield Check(id=f"attack:texts:{part}", title=title, state="fail", detail=f"too slow: {', '.join(slow)}")
        else:
            detail = f"{len(verdicts)} texts, at most {worst:.1f} × the cost of plain text"
            yield Check(id=f"attack:texts:{part}", title=title, state="ok", detail=detail)
