"""The same text in other clothes: escapes, base64, hex. Each view remembers where its characters came from."""

import binascii
import re
from collections.abc import Iterator, Sequence
from itertools import chain

# Worth a second reading only if an escape hides a printable character; %20 and \n hide nothing.
_HIDES = re.compile(
    r"\\u\{?00[2-7][0-9a-fA-F]|\\x(?:2[1-9a-fA-F]|[3-7][0-9a-fA-F])|%(?:2[1-9a-fA-F]|[3-7][0-9a-fA-F])|\\/|&\#x?[0-9a-fA-F]{2}|\x1b\["
)
_ESCAPE = re.compile(
    r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|\\([/\"'\\nrtbf])"
    r"|&(?:\#x([0-9a-fA-F]{1,4})|\#(\d{1,5})|(quot|amp|lt|gt|apos));|\x1b\[[\d;]{0,16}m"
)
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]{16,}")
_BASE64_WHOLE = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,128}[ \t]{0,4}\r?\n[ \t]{0,16})+[A-Za-z0-9+/]{2,128}={0,2}")
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}){12,}")
_PRINTABLE = re.compile(rb"[\x20-\x7e\r\n\t]{12,}")
_DIGIT = re.compile(r"\d")


class View:
    """Decoded text, with the span of the original each part of it came from."""

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        self.text = text
        self._starts = starts
        self._ends = ends

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self._starts[start], self._ends[end - 1]


def views(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[View]:
    """Every other reading of `text`. `runs` are its stretches without blanks or brackets, where encoded values live."""
    for start, end in _hiding(text):
        yield unescaped(text, start, end)
    longest = 0
    for start, end in runs:
        longest = max(longest, end - start)
        for found in _BASE64.finditer(text, start, end):
            yield from _from_base64(found[0], found.start())
        for found in _HEX.finditer(text, start, end):
            yield from _from_hex(found[0], found.start())
    if longest >= 40 and "\n" in text:
        for found in _WRAPPED.finditer(text):
            yield _joined(found[0], found.start())


def _hiding(text: str) -> Iterator[tuple[int, int]]:
    """The lines in which an escape hides something, neighbours together."""
    at = 0
    while found := _HIDES.search(text, at):
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        while end >= 0 and (more := text.find("\n", end + 1)) >= 0 and _HIDES.search(text, end, more):
            end = more
        at = len(text) if end < 0 else end
        yield start, at


def unescaped(text: str, low: int, high: int) -> View:
    parts: list[str] = []
    starts: list[range | tuple[int, ...]] = []
    ends: list[range | tuple[int, ...]] = []
    at = low
    for found in _ESCAPE.finditer(text, low, high):
        start, end = found.span()
        parts.append(text[at:start])
        starts.append(range(at, start))
        ends.append(range(at + 1, start + 1))
        char = _char(found)
        if char:
            parts.append(char)
            starts.append((start,))
            ends.append((end,))
        at = end
    parts.append(text[at:high])
    starts.append(range(at, high))
    ends.append(range(at + 1, high + 1))
    return View("".join(parts), list(chain.from_iterable(starts)), list(chain.from_iterable(ends)))


def _char(found: re.Match[str]) -> str:
    hexed = found[1] or found[2] or found[3] or found[5]
    if hexed:
        return chr(int(hexed, 16))
    if found[6]:
        return chr(min(int(found[6]), 0xFFFF))
    named = found[4] or found[7]
    return _NAMED.get(named, named) if named else ""


def _joined(block: str, at: int) -> View:
    kept = [i for i, c in enumerate(block) if not c.isspace()]
    return View("".join(block[i] for i in kept), [at + i for i in kept], [at + i + 1 for i in kept])


def _from_base64(run: str, at: int) -> Iterator[View]:
    """Readable stretches at any of the four alignments: a run may begin with characters that are not part of the encoding."""
    body = run.replace("-", "+").replace("_", "/")
    alignments = 4 if len(run) >= 24 and _DIGIT.search(run) else 1
    for skip in range(alignments):
        usable = (len(body) - skip) // 4 * 4
        rest = len(body) - skip - usable
        piece = body[skip : skip + usable] + (body[skip + usable :] + "=" * (4 - rest) if rest > 1 else "")
        data = binascii.a2b_base64(piece)
        for found in _PRINTABLE.finditer(data):
            yield _Quads(found[0].decode("ascii"), at + skip, found.start(), at + len(run))


class _Quads(View):
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
    """Whether the value is base64 of plain text: encoded, not drawn."""
    if len(value) % 4 or not _BASE64_WHOLE.fullmatch(value):
        return False
    return _PRINTABLE.fullmatch(binascii.a2b_base64(value)) is not None


def _from_hex(run: str, at: int) -> Iterator[View]:
    data = bytes.fromhex(run)
    for found in _PRINTABLE.finditer(data):
        first = at + 2 * found.start()
        size = len(found[0])
        yield View(found[0].decode("ascii"), range(first, first + 2 * size, 2), range(first + 2, first + 2 * size + 2, 2))
