"""Readings of a text without what hides a secret from a pattern: characters nobody sees,
look-alikes, breaks inside a token.
"""

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import NamedTuple

from palyra.core.redaction import shapes
from palyra.core.redaction.encodings import DecodedView, Pieces

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0000-\U000e007f"
)
# Letters and digits that are only other shapes of ASCII: full width, mathematical, circled, raised.
_SHAPED = (
    "\u2070-\u209c\u2100-\u214f\u2460-\u24ff\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
)
_TWINS = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u0501\u051b\u0410\u0412\u0415\u041a\u041c\u041d"
        "\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u03bf\u03b1\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c"
        "\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
        "aeopcyxijsdhdqABEKMHOPCTXIJSoavpABEZHIKMNOPTYX",
        strict=True,
    )
)
_TWIN = "".join(_TWINS)
# Worth another reading: something unseen, a shaped letter or digit, or a twin that touches ASCII.
_DISGUISED = re.compile(
    f"[{_UNSEEN}\u2070-\u209c\u2100-\u214f\u2460-\u24ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\U0001f130-\U0001f189]"
    f"|(?<=[A-Za-z0-9_])[{_TWIN}]|[{_TWIN}](?=[A-Za-z0-9_])"
)
_ANY = re.compile(f"[{_UNSEEN}{_SHAPED}{_TWIN}]")
_PART = re.compile(f"([{_UNSEEN}]+)|([{_SHAPED}{_TWIN}]+)")

# A token may go on behind a line break: what stands on either side of it, without blanks. A string
# may end and begin again there.
_TOKEN = r"A-Za-z0-9_\-+/.~%!@#$&*=?^"
# A line that begins with such a word is no half of a token.
_WORDS = (
    r"(?:from|import|return|def|class|pass|raise|assert|if|for|while|not|and|or|elif|else|except|try|"
    r"with|yield|self|async|await|const|let|var|the|this|that|end|func|public|private|static) "
)
_BREAK = re.compile(
    rf"\n(?:(?<=[{_TOKEN}:\\\"']\n)|(?<=[{_TOKEN}:\\\"']\r\n))[ \t]{{0,40}}(?:[>#*|]["
    rf" \t]{{1,4}})?([\"']?)(?!{_WORDS})(?=[{_TOKEN}]{{3}})"
)
_HEAD = re.compile(rf"[{_TOKEN}]{{3,512}}(?:[:|][{_TOKEN}]{{8,512}}){{0,3}}")
_REST_OF_URL = re.compile(rf"[{_TOKEN}:]{{3,512}}")
_INSIDE = re.compile(r"[^\s\"'`<>(){},;]{3,}")
_GOES_ON = re.compile(r"[ \t]{0,4}[+.&\\]?[ \t]{0,4}([\"'])")  # read backwards from the break
_LEFT, _REACH = 512, 200
_HALF = 8  # less of a value without a name is no half of it
_FEW, _APART_BY = 16, 512  # so many breaks in a text, and one more for so many characters
_WRAPPED = 60  # longer lines are base64 that was wrapped, which is read in another way
_APART = "\n\n\n\n"
# Half of something drawn: digits among letters, or capitals where no word has them.
_ODD = re.compile(r"[0-9][A-Za-z]|[A-Za-z][0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]|\A[0-9A-F]{6}")
# The end of a chosen password: digits with something else among them, and nothing behind it.
_CHOSEN = re.compile(
    r"(?=[A-Za-z!#$%&*+?@^~]{0,31}\d)(?=\d{0,31}[A-Za-z!#$%&*+?@^~])"
    r"[A-Za-z0-9!#$%&*+?@^~]{3,32}[.,;|]?(?=[ \t]*(?:\r?\n|\Z|[<&;,|\"']))"
)
# The beginning of a token that names its vendor, or of a URL.
_BEGUN = re.compile(r"[A-Za-z0-9]{2,12}[_\-.][A-Za-z0-9_\-.]{6,}")
_URL = re.compile(r"[a-z]{2,12}://[^/]")
# A token of its own, or the name of a host.
_ANOTHER = re.compile(
    r"(?:[a-z]{2,10}|[A-Z]{2,10})_|[A-Za-z]{2,10}(?:-[a-z]{3,}-|\.[A-Za-z0-9_\-]{20})|[a-z0-9\-]+(?:\.[a-z0-9\-]+)*\.[a-z]{2,8}(?:/|\Z)|[a-z]+://"
)
# Something on either side that a token may have.
_WORTH = re.compile(
    r"[0-9][A-Za-z]|[A-Za-z][0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]|[0-9A-F]{6}|://|[\"']|[A-Za-z0-9]{2}[_\-.][A-Za-z0-9_\-.]{6}"
)
_RIGHT = re.compile(
    rf"[A-Za-z!#$%&*+?@^~]{{0,24}}[0-9]|[A-Za-z]{{0,24}}(?:[a-z][A-Z]|[A-Z]{{2}}[a-z])[{_TOKEN}]{{14}}"
)
_NEAREST = 40
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/=]{24,40}")
_NAMING = re.compile(r"[ \t]*[:=(\[]")
# The value in a line of its own: value: ..., <string>...
_VALUE = re.compile(r"[ \t]*(?:[\"']?value[\"']?[ \t]*[:=]|<\w)")
_LONG = 16  # what is longer and looks drawn is no name


def plainer(text: str) -> DecodedView | None:
    """`text` with shaped letters as ASCII and without what nobody sees; None if that is the
    same.
    """
    if text.isascii() or _ANY.search(text) is None or _DISGUISED.search(text) is None:
        return None
    view = Pieces()
    parts: list[str] = []
    at = 0
    for found in _PART.finditer(text):
        start, end = found.span()
        if start > at:
            parts.append(text[at:start])
            view.add(start - at, at, start, same=True)
        if found[2]:
            parts.append(found[2].translate(_table()))
            view.add(end - start, start, end, same=True)
        at = end
    parts.append(text[at:])
    view.add(len(text) - at, at, len(text), same=True)
    view.text = "".join(parts)
    return view


@cache
def _table() -> dict[int, str]:
    """Only what is one ASCII character in its plain shape: positions hold."""
    table = {ord(twin): plain for twin, plain in _TWINS.items()}
    for first, last in re.findall(r"(.)-(.)", _SHAPED):
        for code in range(ord(first), ord(last) + 1):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain.isascii():
                table[code] = plain
    return table


class _Join(NamedTuple):
    at: int  # in the joined text
    odd: bool  # both halves look drawn
    start: int  # in the text
    end: int


class Joined(Pieces):
    """Every two lines that a token may go through, read as one. Only what goes across a break
    counts: the rest is seen without.
    """

    __slots__ = ("_joins", "_parts", "_size", "_whole")

    def __init__(self, text: str) -> None:
        super().__init__()
        self._whole = text
        self._parts: list[str] = []
        self._size = 0
        self._joins: list[_Join] = []

    def join(self, left: tuple[int, int], right: tuple[int, int], *, odd: bool) -> None:
        self._joins.append(_Join(self._size + left[1] - left[0], odd, left[0], right[1]))
        for start, end in (left, right):
            self._put(self._whole[start:end], start, end)
        # Nothing reaches across so many.
        self._put(_APART, right[1], right[1])

    def _put(self, part: str, start: int, end: int) -> None:
        self._parts.append(part)
        self._size += len(part)
        self.add(len(part), start, end, same=end > start)

    def close(self) -> None:
        self.text = "".join(self._parts)

    def counts(self, start: int, end: int, rule: str) -> bool:
        """Return whether a finding goes across a break. By its name alone a value counts only if
        both halves look drawn.
        """
        after = bisect_right(self._joins, start, key=lambda join: join.at)
        if after >= len(self._joins) or self._joins[after].at >= end:
            return False
        join = self._joins[after]
        if rule in ("drawn", "encoded"):
            return join.odd and min(join.at - start, end - join.at) >= _HALF
        if rule in ("password", "secret", "key"):
            return join.odd
        # Lines of base64 before or behind: the body of something longer.
        return rule != "private-key" or not (
            _behind_base64(self._whole, join.start) or _before_base64(self._whole, join.end)
        )


def _behind_base64(text: str, at: int) -> bool:
    """Return whether a line of base64 ends at the line break before this place."""
    return _BASE64_LINE.fullmatch(_next_line(text[max(0, at - 66) : at][::-1])) is not None


def _before_base64(text: str, at: int) -> bool:
    """Return whether a line of base64 begins at the line break behind this place."""
    return _BASE64_LINE.fullmatch(_next_line(text[at : at + 66])) is not None


def _next_line(text: str) -> str:
    """The beginning of what stands behind one line break and its indentation."""
    return text.lstrip(" \t\r").removeprefix("\n").strip(" \t\r")[:40].partition("\n")[0]


class _Break(NamedTuple):
    """A line break, the token before it and where the one behind it stands."""

    at: int
    left: str
    right: tuple[int, int]
    whole: bool  # both halves stand in one pair of quotes
    url: bool


def _break(text: str, found: re.Match[str]) -> _Break | None:
    at = found.start()
    at -= at > 0 and text[at - 1] == "\r"
    goes_on = _GOES_ON.match(text[max(0, at - 10) : at][::-1])
    if (goes_on[1] if goes_on else "") != found[1]:
        return None  # a string ends here, or another begins
    at -= goes_on.end() if goes_on else 0
    back = _INSIDE.match(text[max(0, at - _LEFT) : at][::-1])
    left = back[0][::-1] if back else ""
    url = "://" in left and _URL.search(left) is not None
    right = (_REST_OF_URL if url else _HEAD).match(text, found.end())
    if right is None or not left:
        return None
    quote = text[at - len(left) - 1 : at - len(left)]
    whole = quote in ("'", '"') and text[right.end() : right.end() + 1] == quote
    return _Break(at, left, right.span(), whole, url)


def unbroken(text: str) -> Joined | None:
    """Tokens that a line break goes through, each with what stands before it in its line."""
    joined: Joined | None = None
    left_over = _FEW + len(text) // _APART_BY
    for found in _BREAK.finditer(text):
        # Most breaks go through no token: a look at the nearest word on either side tells.
        end = found.start()
        low = max(0, end - _NEAREST)
        if not (
            _WORTH.search(text, max(low, text.rfind(" ", low, end) + 1), end)
            or _RIGHT.match(text, found.end())
        ):
            continue
        halves = _break(text, found)
        if halves is None:
            continue
        at, left, (start, end), whole, url = halves
        right = text[start:end]
        odd, odd_too = _ODD.search(left) is not None, _ODD.search(right) is not None
        chosen = _CHOSEN.match(text, start) is not None
        worth = (
            odd or whole or url or chosen or (odd_too and len(right) >= _LONG) or _BEGUN.match(left)
        )
        if not worth or shapes.is_hashed(left):
            continue
        left_over -= 1
        if left_over < 0:
            break  # a list of short values, each on a line of its own
        if not url and (_ANOTHER.match(right) or _is_name(text, start, end)):
            continue  # a name that is given a value begins a line of its own, and so does another token  # noqa: E501
        if min(len(left), len(right)) >= _WRAPPED and (
            _behind_base64(text, at - len(left)) or _before_base64(text, end)
        ):
            continue
        joined = joined or Joined(text)
        cut = at - (left[-1] in "\\=")
        joined.join(
            (_beginning(text, at, len(left)), cut),
            (start, end + whole),
            odd=whole or chosen or (odd and odd_too),
        )
    if joined is not None:
        joined.close()
    return joined


def _is_name(text: str, start: int, end: int) -> bool:
    return _NAMING.match(text, end) is not None and not (
        end - start >= _LONG and shapes.is_random(text[start:end], _LONG)
    )


def _beginning(text: str, at: int, size: int) -> int:
    """Return where the line begins, or the one before it if only that one may name the value."""
    line = text.rfind("\n", 0, at) + 1
    low = max(0, at - max(_REACH, size))
    if line > low and _VALUE.match(text, line):
        line = text.rfind("\n", 0, line - 1) + 1
    return max(line, low)
