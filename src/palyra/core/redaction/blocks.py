"""Private keys written over several lines, whole or in part: escaped, quoted, commented, or with a
fence missing.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from palyra.core.redaction import encodings, shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import fluency

# A form body writes the blanks as +.
BEGIN = re.compile(
    r"-{2,5} ?BEGIN[ +](?:[A-Z0-9]{2,12}[ +]){0,4}PRIVATE[ +]KEY(?:[ +]BLOCK)? ?-{2,5}"
)
END = re.compile(r"-{2,5} ?END[ +](?:[A-Z0-9]{2,12}[ +]){0,4}PRIVATE[ +]KEY(?:[ +]BLOCK)? ?-{2,5}")
_EITHER = re.compile(BEGIN.pattern.replace("BEGIN", "(BEGIN|END)"))
_BODY = re.compile(r"[A-Za-z0-9+/=]{12}")
_PUBLIC = re.compile(r"-----BEGIN (?![A-Z0-9 ]*PRIVATE)[A-Z0-9 ]{3,40}-----")
_ANY_END = re.compile(r"-----END [A-Z0-9 ]{3,40}-----")
_PUTTY = re.compile(r"Private-Lines: \d+\r?\n(?:[A-Za-z0-9+/=]{4,80}\r?\n){1,200}")
LONGEST = 64 << 10
# What base64 makes of the number of a name's part (2.5.4.x), at each of its three alignments.
_IN_CERTIFICATE = ("BgNVBA", "GA1UEC", "YDVQQ")
_BASE64_LINES = re.compile(
    r"(?m)^[ \t\"']{0,16}[A-Za-z0-9+/=]{40,128}+(?:\\n)?[\"' \t]{0,4}\r?\n"
    r"(?:[ \t\"']{0,16}[A-Za-z0-9+/=]{4,128}+(?:\\n)?[\"' \t]{0,4}\r?\n?)*+"
)
# One line of a key body: base64 behind any comment marks or quotes, or a header such as DEK-Info.
_BODY_LINE = re.compile(
    r"[^\w\n]{0,40}(?:[A-Za-z0-9+/=\\]{12,}[^\w\n]{0,12}|(?:Proc-Type|DEK-Info|Version|Comment):"
    r" [^\n]{0,200})?(?:\n|\\n|$)"
)
# The end of a body, read backwards.
_GAP = re.compile(r"(?:n\\|[\s\"'+,#*/\\>|]){0,24}")
_BACK = re.compile(r"[A-Za-z0-9+/=]{16,}")
_STEP = 256
_SPREAD = 3.4
_ENCODED_FENCE = re.compile("LS0t|0tLS|tLS0")  # base64 of dashes: of a whole file, not of a key
_WORDS = 5.2  # of 64 characters drawn, hardly any are that fluent: words of a path are
_FENCE = 80  # no fence is longer
# PEM breaks at 64, OpenSSH at 70. A letter may be glued to it, or the mark of a diff.
_LINE = re.compile(
    r"(?<![A-Za-z0-9+/=_.\-])[A-Za-z+]?(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})(?![A-Za-z0-9+/=_\-])"
)


# The last line of a body is shorter. It is known by what stands around it: a comment that holds
# nothing else, a dated line of a log, a string that ends its line.
_FULL = re.compile(r"(?:\A|\n)([ \t]{0,16})[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6})?\r?\n\1\Z")
_SHORTER = re.compile(r"[A-Za-z0-9+/]{14,63}={0,2}")
_LEAST_SHORT, _SHORT, _LONGEST_SHORT = 16, 40, 66
_BEFORE = re.compile(
    r"[ \t]{0,16}(?:\*|\#{1,2}|//+|;|--)[ \t]+|\#\d{1,4} [\d.]{1,12} |\[\w{3,8}\] "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]{5,15}[Z\]]{0,2} "
)
_BEFORE_STRING = re.compile(r"[ \t]{0,32}(?:\+[ \t]{0,8})?[\"']")
_AFTER_STRING = re.compile(r"\\n[\"'][ \t]{0,8}(?:\+|;|,|\)){0,3}[ \t]{0,8}")


def find(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[FormatMatch]:
    yield from fenced(text)
    if "Private-Lines" in text:
        for found in _PUTTY.finditer(text):
            yield FormatMatch(*found.span(), "private-key")
    if runs:
        yield from _lines(text, runs)
        yield from _last_lines(text, runs)


def public_spans(text: str) -> list[tuple[int, int]]:
    """Certificates, public keys, signatures: base64 that is meant to be read."""
    begins = [begin.start() for begin in _PUBLIC.finditer(text)] if "-----BEGIN" in text else []
    ends = [end.end() for end in _ANY_END.finditer(text)] if begins else []
    return [
        *((begin, _next(ends, begin, min(len(text), begin + LONGEST))) for begin in begins),
        *_unfenced(text),
    ]


def _unfenced(text: str) -> Iterator[tuple[int, int]]:
    """Certificates without their fences: lines of base64 with the names of whom they were made for
    among them. No key has such.
    """
    if any(mark in text for mark in _IN_CERTIFICATE):
        for block in _BASE64_LINES.finditer(text):
            if any(mark in block[0] for mark in _IN_CERTIFICATE):
                yield block.span()


def _next(positions: Sequence[int], after: int, otherwise: int) -> int:
    at = bisect_right(positions, after)
    return positions[at] if at < len(positions) and positions[at] <= after + LONGEST else otherwise


def fenced(text: str) -> Iterator[FormatMatch]:
    """Private keys between their fences, or from the one fence that is there."""
    if "PRIVATE" not in text:
        return
    begins, ends = _fences(text)
    closing = [end for _, end in ends]
    opening = [start for start, _ in begins]
    for start, body in begins:
        end = _next(closing, start, 0)
        if end and not _BODY.search(text, body, end):
            continue  # a program that writes or looks for fences
        if not end or end > _next(opening, start, end):  # no end, or another key begins before it
            end = _unclosed(text, body)
        yield FormatMatch(start, end, "private-key")
    for start, end in ends:
        first = _unopened(text, start)
        if first < start:
            yield FormatMatch(first, end, "private-key")


def _fences(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Every fence at the beginning and at the end of a key, looked for around the word that all of
    them have.
    """
    begins: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    at, last = text.find("PRIVATE"), 0
    while at >= 0:
        fence = (
            _EITHER.search(text, max(at - _FENCE, last), at + _FENCE)
            if text.find("--", max(at - _FENCE, last), at) >= 0
            else None
        )
        if fence:
            last = fence.end()
            (begins if fence[1] == "BEGIN" else ends).append(fence.span())
        at = text.find("PRIVATE", max(at + 7, last))
    return begins, ends


def _unclosed(text: str, at: int) -> int:
    while at < len(text) and (line := _BODY_LINE.match(text, at)) and line.end() > at:
        at = line.end()
    return at


def _unopened(text: str, at: int) -> int:
    low = max(0, at - LONGEST)
    while at > low:
        back = text[max(low, at - _STEP) : at][::-1]
        gap = _GAP.match(back)
        body = _BACK.match(back, gap.end() if gap else 0)
        if body is None:
            break
        at -= body.end()
    return at


def _lines(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[FormatMatch]:
    """Single lines of a key body: PEM breaks base64 at 64, and hardly anything else does."""
    public: list[tuple[int, int]] | None = None
    for start, end in runs:
        for found in _LINE.finditer(text, start, end) if end - start >= 64 else ():
            if not _is_key_material(found[0]) or not (
                "/" in found[0] or "+" in found[0] or _ends_line(text, *found.span())
            ):
                continue
            public = public_spans(text) if public is None else public
            if not any(low <= found.start() < high for low, high in public):
                yield FormatMatch(*found.span(), "private-key")


def _last_lines(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[FormatMatch]:
    """Last lines of key bodies, each alone in its line but for what marks or dates the line."""
    for start, end in runs:
        quoted = text.endswith("\\n", start, end)
        stop = end - 2 if quoted else end
        size = stop - start
        if not _LEAST_SHORT <= size <= _LONGEST_SHORT or not (
            text[stop - 1] == "=" or (size >= _SHORT and not quoted)
        ):
            continue
        line = text.rfind("\n", max(0, start - _FENCE), start) + 1
        before = _BEFORE_STRING if quoted else _BEFORE
        if not _SHORTER.fullmatch(text, start, stop) or not (
            before.fullmatch(text, line, start)
            or (not quoted and _FULL.search(text, max(0, line - _FENCE), start))
        ):
            continue
        after = text.find("\n", stop, stop + _FENCE)
        if after >= 0 and text.startswith("-----END", after + 1):
            continue  # of a key it is found by its fence
        rest = text[stop : after if after >= 0 else stop + _FENCE]
        if _AFTER_STRING.fullmatch(rest) if quoted else not rest.strip():
            value = text[start:stop]
            if _is_short_material(value):
                yield FormatMatch(start, stop, "private-key")


def _is_short_material(value: str) -> bool:
    if len(value) % 4 not in ((0,) if value[-1] == "=" else (0, 1)):
        return False
    if _ENCODED_FENCE.search(value):
        return False
    if value[-1] != "=":
        return ("+" in value or "/" in value[1:]) and _is_key_material(value)
    return (
        any(map(str.isupper, value))
        and any(map(str.islower, value))
        and (any(map(str.isdigit, value)) or "+" in value or "/" in value)
        and shapes.entropy(value) >= _SPREAD
        and fluency(value) < _WORDS
        and not encodings.is_readable(value)
    )


def _ends_line(text: str, start: int, end: int) -> bool:
    """Alone, or the last thing in a line of a log: not what a name was given."""
    before = text[max(0, start - 8) : start]
    return (
        before[-1:] in ("", "\n", " ", "\t")
        and before.rstrip()[-1:] not in ("=", ":")
        and (text[end : end + 1] in ("", "\n", "\r") or text.startswith((" */", " -->"), end))
    )


def _is_key_material(line: str) -> bool:
    mixed = (
        any(c.isupper() for c in line)
        and any(c.islower() for c in line)
        and any(c.isdigit() for c in line)
    )
    return (
        mixed
        and shapes.entropy(line) >= 4.3
        and not shapes.is_filler(line)
        and not shapes.is_masked(line)
        and fluency(line) < _WORDS
    )
