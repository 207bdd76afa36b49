"""The same text in other clothes: escapes, base64, hex. Each view remembers where its characters
came from.
"""

import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from palyra.core.redaction import shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import Work

# Worth a second reading only if an escape hides a printable character; %20 and \n hide nothing.
_HIDES = re.compile(
    r"\\u\{?00[2-7][0-9a-fA-F]|\\x(?:2[1-9a-fA-F]|[3-7][0-9a-fA-F])|%(?:2[1-9a-fA-F]|[3-7][0-9a-fA-F])|\\/|&\#x?[0-9a-fA-F]{2}|=3D|\x1b\["
)
_ESCAPE = re.compile(
    r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|\\([/\"'\\nrtbf])"
    r"|&(?:\#x([0-9a-fA-F]{1,4})|\#(\d{1,5})|(quot|amp|lt|gt|apos));|=(3D|2[0-9A-F])|\x1b\[[\d;]{0,16}m"
)
_NAMED = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    "quot": '"',
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "apos": "'",
}
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]{16,}")
_BASE64_WHOLE = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_LAST_LINE = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,128}\Z")
_LEAST_LINE = 40
_WRAPPED = re.compile(
    r"(?:[A-Za-z0-9+/]{40,128}[ \t]{0,4}\r?\n[ \t]{0,16})+[A-Za-z0-9+/]{2,128}={0,2}"
)
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}){12,}")
_PRINTABLE = re.compile(rb"[\x20-\x7e\r\n\t]{12,}")
_BARE_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_\-])([A-Za-z0-9+/_\-]{16,512})={0,2}(?![A-Za-z0-9+/_\-=])"
)
_BARE_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-fA-F]{2}){12,512}(?![0-9a-zA-Z])")
_ALL_HEX = re.compile(r"[0-9a-fA-F]+")
_WORD = re.compile(rb"[\x21-\x7e]{6,128}")  # no secret of one word is longer
_LEAST_HEX, _LEAST_BASE64, _LEAST_LETTERS = 12, 8, 4
_DIGIT = re.compile(r"\d")
_WHOLE_LINE = re.compile(r"[A-Za-z0-9+/]{24,128}={0,2}")
_NEAREST = 120
_NEAR = 256
_READ = 8  # so many characters of a view cost one unit of work


class DecodedView:
    """Decoded text, with the span of the original each part of it came from."""

    __slots__ = ("_ends", "_starts", "text")
    effort = 0  # units of work it took to make

    def __init__(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        self.text = text
        self._starts = starts
        self._ends = ends

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self._starts[start], self._ends[end - 1]


class Pieces(DecodedView):
    """Decoded text in pieces: each stands for a stretch of the original, either as it is there or
    as one whole.
    """

    __slots__ = ("_at", "_from", "_same", "_to")

    @property
    def effort(self) -> int:  # type: ignore[override]
        return len(self._from)

    def __init__(self) -> None:
        self.text = ""
        self._at = [0]  # where each piece begins in the decoded text
        self._from: list[int] = []
        self._to: list[int] = []
        self._same: list[bool] = []

    def add(self, size: int, start: int, end: int, same: bool) -> None:
        self._at.append(self._at[-1] + size)
        self._from.append(start)
        self._to.append(end)
        self._same.append(same)

    def original(self, start: int, end: int) -> tuple[int, int]:
        first, last = bisect_right(self._at, start) - 1, bisect_right(self._at, end - 1) - 1
        low = self._from[first] + (start - self._at[first] if self._same[first] else 0)
        high = self._from[last] + end - self._at[last] if self._same[last] else self._to[last]
        return low, high


class Unread(Exception):
    """The budget ended at this place of the text; what follows was not decoded."""

    def __init__(self, at: int) -> None:
        self.at = at


def views(text: str, runs: Sequence[tuple[int, int]], work: Work) -> Iterator[DecodedView]:
    """Every other reading of `text`. `runs` are its stretches without blanks or brackets, where
    encoded values live.

    Raise Unread when the budget is used up.
    """
    for view, at in _views(text, runs):
        if not work.spend(1 + view.effort + len(view.text) // _READ):
            raise Unread(at)
        yield view


def _views(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[DecodedView, int]]:
    for start, end in _hiding(text):
        yield unescaped(text, start, end), start
    joined = whole = (
        0  # up to here, lines of base64 were read as one, and need not be read by themselves
    )
    for start, end in runs:
        # A line of base64 at the end of which more may follow.
        line = (
            _LAST_LINE.search(text, start, end)
            if start >= joined and end - start >= _LEAST_LINE
            else None
        )
        if line and (block := _WRAPPED.match(text, line.start())):
            yield _joined(block[0], block.start()), block.start()
            joined = block.end()
            whole = joined if (end - line.start()) % 4 == 0 else 0
        if start < whole:
            continue
        for found in _BASE64.finditer(text, start, end):
            # What base64 makes of text has capitals: the first of each four characters stands for
            # the high bits of a letter.
            for view in _from_base64(found[0], found.start()) if not found[0].islower() else ():
                yield view, start
        for found in _HEX.finditer(text, start, end):
            for view in _from_hex(found[0], found.start()):
                yield view, start


def hidden(text: str) -> bool:
    """Return whether the text may hold escapes."""
    return "\\" in text or "%" in text or "&#" in text or "=3D" in text


def bare(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[FormatMatch]:
    """Base64 or hex of one word that looks drawn: chance gives other bytes, and what is meant to be
    read has blanks.
    """
    for start, end in runs:
        for found in _BARE_BASE64.finditer(text, start, end):
            if _is_drawn_inside(_decoded(found[1])) and not _is_wrapped(text, *found.span()):
                yield FormatMatch(*found.span(), "encoded")
        for found in _BARE_HEX.finditer(text, start, end):
            if _is_drawn_inside(bytes.fromhex(found[0])):
                yield FormatMatch(*found.span(), "encoded")


def _is_wrapped(text: str, start: int, end: int) -> bool:
    """Return whether this is a line of something longer: the line above or below is base64 too."""
    above, below = (
        text[max(0, start - _NEAREST) : start].rstrip(" \t"),
        text[end : end + _NEAREST].lstrip(" \t\r"),
    )
    return (
        above.endswith("\n")
        and _WHOLE_LINE.fullmatch(above.strip().rpartition("\n")[2].strip()) is not None
    ) or (
        below.startswith("\n")
        and _WHOLE_LINE.fullmatch(below.strip().partition("\n")[0].strip()) is not None
    )


def unwrapped(value: str) -> str:
    """Decode a value that is base64 or hex of one printable word; return any other as it is."""
    data = b""
    if len(value) >= _LEAST_HEX and len(value) % 2 == 0 and _ALL_HEX.fullmatch(value):
        data = bytes.fromhex(value)
    elif len(value) >= _LEAST_BASE64 and _BASE64_WHOLE.fullmatch(value):
        data = _decoded(value.rstrip("="))
    return data.decode("ascii") if _WORD.fullmatch(data) else value


def _decoded(run: str) -> bytes:
    body = run.replace("-", "+").replace("_", "/")
    return binascii.a2b_base64(body + "=" * (-len(body) % 4)) if len(body) % 4 != 1 else b""


def _is_drawn_inside(data: bytes) -> bool:
    """Return whether the bytes are one word that looks drawn: no identifier, no JSON, no run of the
    alphabet or of digits.
    """
    if _WORD.fullmatch(data) is None or data[:1] in b"{[<":
        return False
    word = data.decode("ascii")
    if (
        shapes.UUID.fullmatch(word)
        or shapes.is_sequence(word)
        or sum(map(str.isalpha, word)) < _LEAST_LETTERS
    ):
        return False
    return shapes.is_random(word, 12)


def _hiding(text: str) -> Iterator[tuple[int, int]]:
    """The lines in which an escape hides something, neighbours together; of a long line, only what
    stands near.
    """
    at = 0
    while found := _HIDES.search(text, at):
        start = max(at, found.start() - _NEAR, text.rfind("\n", 0, found.start()) + 1)
        end = found.end()
        while True:
            line = text.find("\n", end, end + _NEAR)
            end = line + 1 if line >= 0 else min(len(text), end + _NEAR)
            more = _HIDES.search(text, end, end + _NEAR)
            if more is None:
                break
            end = more.end()
        yield start, end
        at = end


def unescaped(text: str, low: int, high: int) -> DecodedView:
    view = Pieces()
    parts: list[str] = []
    at = low
    for found in _ESCAPE.finditer(text, low, high):
        start, end = found.span()
        if start > at:
            parts.append(text[at:start])
            view.add(start - at, at, start, same=True)
        char = _char(found)
        if char:
            parts.append(char)
            view.add(1, start, end, same=False)
        at = end
    if at < high:
        parts.append(text[at:high])
        view.add(high - at, at, high, same=True)
    view.text = "".join(parts)
    return view


def _char(found: re.Match[str]) -> str:
    hexed = found[1] or found[2] or found[3] or found[5]
    if hexed:
        return chr(int(hexed, 16))
    if found[8]:
        return chr(int(found[8], 16))
    if found[6]:
        return chr(min(int(found[6]), 0xFFFF))
    named = found[4] or found[7]
    return _NAMED.get(named, named) if named else ""


def _joined(block: str, at: int) -> DecodedView:
    kept = [i for i, c in enumerate(block) if not c.isspace()]
    return DecodedView(
        "".join(block[i] for i in kept), [at + i for i in kept], [at + i + 1 for i in kept]
    )


def _from_base64(run: str, at: int) -> Iterator[DecodedView]:
    """Readable stretches at any of the four alignments: a run may begin with characters that are
    not part of the encoding.
    """
    if _ALL_HEX.fullmatch(run):
        return  # read as hex
    body = run.replace("-", "+").replace("_", "/")
    alignments = 4 if len(run) >= 24 and _DIGIT.search(run) else 1
    for skip in range(alignments):
        usable = (len(body) - skip) // 4 * 4
        rest = len(body) - skip - usable
        piece = body[skip : skip + usable] + (
            body[skip + usable :] + "=" * (4 - rest) if rest > 1 else ""
        )
        data = binascii.a2b_base64(piece)
        for found in _PRINTABLE.finditer(data):
            yield _Quads(found[0].decode("ascii"), at + skip, found.start(), at + len(run))


class _Quads(DecodedView):
    """Three bytes come from four characters; a finding covers every quad it touches."""

    __slots__ = ("_at", "_first", "_limit")

    def __init__(self, text: str, at: int, first: int, limit: int) -> None:
        self.text = text
        self._at = at
        self._first = first
        self._limit = limit

    def original(self, start: int, end: int) -> tuple[int, int]:
        low = self._at + (self._first + start) // 3 * 4
        high = self._at + -(-(self._first + end) // 3) * 4
        return low, min(high, self._limit)


def is_readable(value: str) -> bool:
    """Return whether the value is base64 of plain text: encoded, not drawn."""
    if len(value) % 4 or not _BASE64_WHOLE.fullmatch(value):
        return False
    return _PRINTABLE.fullmatch(binascii.a2b_base64(value)) is not None


def _from_hex(run: str, at: int) -> Iterator[DecodedView]:
    data = bytes.fromhex(run)
    for found in _PRINTABLE.finditer(data):
        first = at + 2 * found.start()
        size = len(found[0])
        yield DecodedView(
            found[0].decode("ascii"),
            range(first, first + 2 * size, 2),
            range(first + 2, first + 2 * size + 2, 2),
        )
