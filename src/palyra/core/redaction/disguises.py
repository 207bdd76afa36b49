"""Readings of a text without what hides a secret from a pattern: characters nobody sees,
look-alikes, breaks inside a token.

Values that look drawn at random and are given to a name that says nothing, as `shodan = "k3J…"`.
Weak evidence, so strict.

Digests, identifiers and pictures look drawn too: they are known by their alphabet (hex, no
capitals), by the name in front of them, or by where they stand.
"""

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from palyra.core.redaction import encodings, shapes
from palyra.core.redaction.encodings import DecodedView, Pieces
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import Work

_DRAWN_VALUE = re.compile(
    r"(?=[^=]*[A-Z])(?=[^=]*[a-z])(?=[^=]*[0-9])[A-Za-z0-9_\-+/]{24,128}={0,2}"
)
# name = "value", read backwards from the value: what stands between, and the name.
_NAME = re.compile(r"[\"'`]?[ \t]{0,4}(?:>?=:?|:)[ \t]{0,4}[\"'\]]{0,2}([\w.\-]{1,48})")
# Service("value"), read backwards: what is made with one opaque string takes a credential.
_MADE = re.compile(r"[\"'`]\(([A-Za-z0-9_]{1,40}[A-Z])(?=[ \t.=(:,;\n]|\Z)")
_BEFORE = 64
# Names of what looks drawn and is no secret.
_HARMLESS = re.compile(
    r"(?i)^z?h\d?$|(?:^|_)(?:sum|total|count|avg)|sha\d*|hash|digest|integrity|checksum|etag|nonce|commit|uuid|guid|(?:^|[_\-.a-z])id$|ids$|cursor|sign|fingerprint|sum$|csp|sri|version|rev|"
    r"public|cert|modulus|data|src|href|ur[li]|path|class|name|file|image|img|font|icon|test|expect|example|sample|content|body|text|html|svg|"
    r"alphabet|chars|charset|module|import|node|require|resolved|link|ref|tag|trace|span|session|request|key$|cache|build|asset|chunk|page|next|"
    r"continu|identifier|arn|protect|preset|alarm|marker|vector|matrix|payload|result|output|input|message|title|label|param|type|event|color|style|x5c|kid|jti|code_?verifier"
)
# vendor_k3J…: the way services mark their tokens today. Each part of the mark is short.
_MARKED = re.compile(
    r"(?<![\w./+\-])(?:[A-Za-z][a-z0-9]{1,11}(?:[_\-][a-z0-9]{1,12}){0,3}|[A-Z][A-Z0-9]{2,9})[_\-]"
    r"([A-Za-z0-9]{20,128})(?![\w./+\-])"
)
# The same with dashes inside, behind a word that means nothing but a credential.
_DASHED = re.compile(
    r"(?<![\w./+\-])(?:[a-z0-9]{2,12}[_\-]){0,2}(?:sk|rk|pat|apikey|token|secret|live)[_\-]"
    r"([A-Za-z0-9_\-]{30,128})(?![\w./+\-])"
)
_SURE_MARK = re.compile(r"(?:[sr]k|pat|apikey|token|secret|live)[_\-]")
_SURE = re.compile(r"(?:^|[_\-])(?:sk|rk|pat|apikey|\w{0,4}tok|token|secret|live)(?:[_\-]|$)")
_ONE_CASE = re.compile(r"(?=[^\d]*\d[^\d]*\d[^\d]*\d)(?:[a-z0-9]{24,128}|[A-Z0-9]{24,128})")
_CREDENTIAL = re.compile(
    r"(?:^|[_\-])(?:live|test|prod|dev|sandbox|sk|rk|pat|key|apikey|api|token|tok|secret|sec|auth|access|at|oat|bot|usr)(?:[_\-]|$)"
)
# Marks of things that are no secret: the identifiers of messages, calls, payments, builds.
_THING = re.compile(
    r"(?:^|[_\-])(?:id|ids|msg|message|call|chatcmpl|cmpl|run|step|thread|asst|assistant|file|resp|response|req|request|toolu|tool|batch|evt|event|"
    r"cus|customer|sub|price|prod|product|pi|pm|ch|in|inv|invoice|txn|acct|card|src|seti|cs|org|user|usr|team|proj|project|page|block|doc|img|image|"
    r"chunk|bundle|css|sha\d*|md5|hash|digest|commit|rev|build|trace|span|session|sess|cursor|node|gen|snap|vol|job|task|item|obj|pub|public|pk)$"
)
_LEAST_MARKED = 30  # without a word for a credential in the mark
_LEAST = 24
_OF_EACH = 3  # capitals, small letters and digits, so many at least
_SEPARATORS = re.compile(r"[_\-/]")
_LEAST_PART = 16  # words and numbers that are joined have shorter parts


def find(text: str, runs: Sequence[tuple[int, int]], work: Work) -> Iterator[FormatMatch]:
    for start, end in runs:
        if end - start < _LEAST:
            continue
        dashed = _SURE_MARK.search(text, start, end) is not None
        for pattern in (_MARKED, _DASHED) if dashed else (_MARKED,):
            for marked in pattern.finditer(text, start, end):
                if _is_marked(marked, work):
                    yield FormatMatch(*marked.span(), "marked")
        if text.startswith("arn:", start):
            continue
        given = max(text.rfind("=", start, end - 3), text.rfind(":", start, end)) + 1
        at = given if given > start else start
        value = _DRAWN_VALUE.fullmatch(text, at, end)
        before = text[max(0, at - _BEFORE) : at][::-1] if value else ""
        name = (_NAME.match(before) or _MADE.match(before)) if value else None
        if value and text.startswith("(", end):
            continue  # a call
        if value and name and not _HARMLESS.search(name[1][::-1]) and _judged(value[0], work):
            yield FormatMatch(at, end, "drawn")


def _judged(value: str, work: Work, *, credential: bool = False) -> bool:
    """The same as `_is_drawn`, once for each value in a text."""
    asked = ("drawn", value, credential)
    verdict = work.judged.get(asked)
    if verdict is None:
        verdict = work.judged[asked] = _is_drawn(value, 1 if credential else _OF_EACH)
    return verdict


def _is_marked(found: re.Match[str], work: Work) -> bool:
    body = found[1]
    mark = found.string[found.start() : found.start(1) - 1].lower()
    credential = _CREDENTIAL.search(mark) is not None
    if (_THING.search(mark) and not credential) or len(body) < (
        _LEAST if credential else _LEAST_MARKED
    ):
        return False
    if _SURE.search(mark) and _ONE_CASE.fullmatch(body):
        return not shapes.is_made_up(body) and shapes.is_random(body, _LEAST)
    return _judged(body, work, credential=credential)


def _is_drawn(value: str, of_each: int) -> bool:
    kinds = (str.isupper, str.islower, str.isdigit)
    longest = max(_SEPARATORS.split(value), key=len)
    if (
        value.count("/") > 3
        or len(longest) < _LEAST_PART
        or shapes.is_words(longest)
        or not all(sum(map(kind, value)) >= of_each for kind in kinds)
    ):
        return False
    if (
        shapes.is_made_up(value)
        or not shapes.is_random(value, _LEAST)
        or shapes.entropy(value) < 3.9
    ):
        return False
    return _unlikely(value) and not encodings.is_readable(value)


def _unlikely(value: str) -> bool:
    """Return whether neighbouring letters follow each other as chance has it, not as words do:
    changes of case and of kind all along.
    """
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(value))
    return changes >= 0.38 * len(value) and math.log2(len(set(value))) >= 3.9


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2 if char.islower() else 3


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
