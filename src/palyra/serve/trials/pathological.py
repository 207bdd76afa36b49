"""Texts made to cost much: each is read by the part it aims at, and compared with plain text of the
same length.

Costs are processor time of this thread, the least of several tries, so that a busy machine does not
change the verdict. No text may cost more than twenty times what plain text costs, and one of twice
the length not much more than twice as much.
"""

import base64
import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from palyra.features.health.doctor import DoctorCheck
from palyra.serve.trials.pathological_parts import LINES, PARAGRAPH, PIECES, READERS
from palyra.system.redactor import Redactor

MOST_RATIO = 20.0
MOST_GROWTH = 3.2  # for twice the length; 4 would be quadratic
SIZE = 48 << 10
_SIZES = (24 << 10, SIZE, SIZE)  # the short one first: somebody waits
_TRIES = 3
_CHEAP = 5.0
_LEAST_S, _NOTEWORTHY_S = 1e-4, 4e-3  # shorter times are noise
_PLAIN = (
    "The quick brown fox leaps over the lazy dog, 3 times; it is fun to see how far it goes. Then"
    " we go on: see chapter 4 for the details on what comes next, or"
    " https://host.example/docs/guide.html; run `make check` in src/tools first.\n"
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
        # Below that, a step in how long texts are read looks like growth.
        return self.ratio <= MOST_RATIO and (self.growth <= MOST_GROWTH or self.ratio <= _CHEAP)


def _repeated(piece: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda size: (
        (head + piece * (1 + (size - len(head) - len(tail)) // len(piece)))[: size - len(tail)]
        + tail
    )


def plain(size: int) -> str:
    return _repeated(_PLAIN)(size)


def _listed(size: int) -> str:
    """Plain text with one word a line, no two alike."""
    return "\n".join(f"word {at}" for at in range(size // 10))[:size]


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
    "passwords behind dashes": "pw-Aa1bbbbb!",
    "passwords in brackets": "pw(Aa1bbbbb!)",
    "users of connections": "user=ab;pwd=a1b2c3;",
    "lists of keys": 'keys=["a",',
    "accounts without blanks": "root/Aa1!aaaa",
    "tokens with dashes": "sk-aB3dE5fG7hJ9-aB3dE5fG7hJ9-aB3dE5fG7hJ9 ",
    "words behind names": "token for a b c ",
    "calls that connect": 'connect("a", "b", "c", ',
    "beginnings of URLs": "://",
    "URLs with users": "://a:b@",
    "users in commands": "curl -u a:b ",
    "programs that take passwords": "mysql -u mysql -p ",
    "beginnings of tokens": "ey-",
    "parts of a token": "eyJa.",
    "headers": "authorization:",
    "bearers": "bearer a1b2c3d4e5f6g7h8",
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
    "accounts in a list": "user=ann password=Tr0ub4dor&3\n",
    "logins": "login('a','b1c2d3')",
    "digits": "1/",
    "zero-width characters": "p\u200bw\u200b:",
    "full-width letters": "\uff50\uff57\uff1a",
    "broken lines": "token=a1b2c3d4e5f6\ng7h8i9\n",
    "quoted-printable": "pw=3Da=\n",
    "hex in capitals and not": "aAbBcCdDeEfF0123",
    "heads of tables": "user,password,token\n",
    "rows of a table without an end": "user|password|",
    "columns of inserts": "); INSERT INTO t (a,password) VALUES ('a','b1c2'),",
    "tuples that do not close": "; insert into t (password) values ('a','b',",
    "values in calls": 'password=a.b.c("x", "y1',
    "accounts behind a word": "login with ann/Aa1bbbbb! ",
    "commands that store passwords": "htpasswd -b -b -b a b ",
    "codes": "pin otp code for the door ",
    "backup codes": "backup codes: abcd1234 ",
    "values before their names": "Xy1zwertzuio is my token ",
    "lists of tokens": 'tokens = ("Xy1z$abcd", "',
    "calls with keys": 'jwt.sign(x, "abcdefgh12',
    "digests of a login": "digest response= nonce= ",
    "words of a wallet": "seed phrase abandon ",
    "addresses": "a@b.c:Passw0rd/ ",
    "marks": "ab_cd-ef.",
    "marks with bodies": "ab_cd_k7Jq2ZpXw9Rt4LmV8sYc ",
    "labels": "password\n",
    "labels with values": "Client Secret\nq8Zr2Lm5Xw\n",
    "words without a value": "password a b c d e f g h ",
    "guesses": "password for it Ab1cd2ef ",
    "copulas": "passwort ist now ist ",
    "addresses of machines": "10.20.30.40 ",
    "notes with addresses": "10.20.30.40 a b c Aa1bbbbxZ9q\n",
    "last lines of keys": "# wucjvBy+peRgrF+FjmGF5q6vkg==\n",
    "strings that end in a last line": '"wucjvBy+peRgrF+FjmGF5q6vkg==\\n"',
    "attributes of tags": 'password a="b"',
    "dots behind names": "password ......",
    "lines of properties": "a.b.password=abcde\n",
    "words with digits inside": 'secret="n0tS0m3Th1ng",',
    "names that lead to a block": "secret:\n  a: ",
    "keys of commands": " -k Aa1bbbbb openssl ",
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
    Case(
        "redaction", "blanks behind a fence", _repeated(" ", "-----BEGIN PRIVATE KEY-----\n", "x")
    ),
    Case("redaction", "base64 in base64", _base64_in_base64),
    Case("redaction", "lines of base64", _lines_of_base64),
    *(
        Case("stream", what, _repeated(piece))
        for what, piece in _REDACTION.items()
        if len(piece) < 10
    ),
    *(
        Case(part, what, _repeated(piece))
        for part, pieces in PIECES.items()
        for what, piece in pieces.items()
    ),
)


def _stream(text: str) -> None:
    stream = Redactor(b"trial").stream()
    for at in range(0, len(text), 64):
        stream.feed(text[at : at + 64])
    stream.finish()


PARTS: dict[str, Callable[[str], object]] = {
    "redaction": lambda text: Redactor(b"trial").redact(text),
    "stream": _stream,
    **READERS,
}


def seconds(work: Callable[[str], object], *texts: str) -> list[float]:
    """The least processor time of several tries for each text, in turn: what slows the machine down
    then slows all of them.
    """
    best = [float("inf")] * len(texts)
    for _ in range(_TRIES):
        for at, text in enumerate(texts):
            began = time.thread_time()
            work(text)
            best[at] = min(best[at], time.thread_time() - began)
    return best


def _usual(part: str, size: int) -> str:
    """Plain text in the form that this part reads."""
    if part == "document":
        return PARAGRAPH * (size // len(PARAGRAPH))
    return _listed(size) if part in LINES else plain(size)


def judge(case: Case, size: int = SIZE) -> Verdict:
    work = PARTS[case.part]
    work(plain(64))  # what is made once is not counted
    half, whole, usual = seconds(
        work, case.text(size // 2), case.text(size), _usual(case.part, size)
    )
    growth = whole / half if whole > _NOTEWORTHY_S else 1.0
    return Verdict(case, whole / max(usual, _LEAST_S), growth)


def trial() -> Iterator[DoctorCheck]:
    """Return whether every text is read in time on this machine."""
    slow, worst = [], 0.0
    for case in CASES:
        # Another process can spoil one measurement. A step in how texts of one length are read
        # looks like growth, once: at twice the length only real growth is left.
        found = next((each for size in _SIZES if (each := judge(case, size)).holds), None)
        worst = max(worst, found.ratio if found else 0.0)
        if found is None:
            slow.append(f"{case.what} ({case.part})")
    if slow:
        fix = "report it with this list: one such text could hold the daemon up"
        yield DoctorCheck(
            id="attack:texts",
            title="attack: texts",
            state="fail",
            detail=f"too slow: {', '.join(slow)}",
            fix=fix,
        )
        return
    detail = (
        f"{len(CASES)} costly texts were read, at most {worst:.0f} times as slowly as plain text"
    )
    yield DoctorCheck(id="attack:texts", title="attack: texts", state="ok", detail=detail)
