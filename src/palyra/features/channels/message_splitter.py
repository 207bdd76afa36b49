"""Cutting a long answer into messages that fit a platform: code stays code, tables keep their
heads, no character is torn.

The rule: nothing is lost and nothing is invented but what a piece needs to stand alone: a fence
that is closed and opened again, a table's head that is repeated.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

Unit = Literal["characters", "utf16", "bytes"]
# A limit below this leaves no room for a fence and a word.
SMALLEST = 64
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_ROW = re.compile(r"\s*\|?.*\|.*")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_ENDS = (re.compile(r"[.!?…]['\")\]]*\s+"), re.compile(r"[,;:]\s+"), re.compile(r"\s+"))


class LengthLimit(Struct, frozen=True):
    """The most that one message may hold, in the units that the platform counts."""

    size: int
    unit: Unit = "characters"

    def of(self, text: str) -> int:
        match self.unit:
            case "characters":
                return len(text)
            case "utf16":
                return len(text) + sum(char > "\uffff" for char in text)
            case "bytes":
                return len(text.encode("utf-8", "surrogatepass"))


class _Block(Struct, frozen=True):
    """A stretch that is better not cut: a paragraph, fenced code, a table. `blank` lines stand
    before it.
    """

    kind: Literal["text", "code", "table"]
    lines: tuple[str, ...]
    blank: int = 0


def split(text: str, limit: LengthLimit) -> list[str]:
    """The text as messages, in order; one if it fits, none if there is nothing to say."""
    if limit.size < SMALLEST:
        raise ValueError(f"a message must hold at least {SMALLEST}")
    if not text.strip():
        return []
    text = text.strip("\n")
    if limit.of(text) <= limit.size:
        return [text]
    pieces: list[str] = []
    at = ""
    for block in _blocks(text.split("\n")):
        body = "\n".join(block.lines)
        joined = f"{at}{chr(10) * (block.blank + 1)}{body}" if at else body
        if limit.of(joined) <= limit.size:
            at = joined
            continue
        if limit.of(body) > limit.size:
            # It is cut anyhow: what is left of this message takes its beginning.
            *whole, at = _cut(block, at, limit)
            pieces += whole
        else:
            pieces.append(at)
            at = body
    return [piece for piece in (*pieces, at) if piece.strip()]


def _blocks(lines: list[str]) -> Iterator[_Block]:
    at = blank = 0
    while at < len(lines):
        if not lines[at].strip():
            blank, at = blank + 1, at + 1
            continue
        end, kind = _extent(lines, at)
        yield _Block(kind, tuple(lines[at:end]), blank)
        at, blank = end, 0


def _extent(lines: list[str], at: int) -> tuple[int, Literal["text", "code", "table"]]:
    """Return where the block that begins here ends, and its kind."""
    if (opened := _FENCE.match(lines[at])) is not None:
        return _closing(lines, at, opened[1]), "code"
    if _begins_table(lines, at):
        end = at + 2
        while (
            end < len(lines)
            and lines[end].strip()
            and _ROW.fullmatch(lines[end])
            and not _FENCE.match(lines[end])
        ):
            end += 1
        return end, "table"
    end = at + 1
    while (
        end < len(lines)
        and lines[end].strip()
        and not _FENCE.match(lines[end])
        and not _begins_table(lines, end)
    ):
        end += 1
    return end, "text"


def _closing(lines: list[str], at: int, fence: str) -> int:
    """Return the line behind the one that closes a fence: the same sign, at least as often, and
    nothing else. Without one, the end.
    """
    closes = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    for end in range(at + 1, len(lines)):
        if closes.match(lines[end]):
            return end + 1
    return len(lines)


def _begins_table(lines: list[str], at: int) -> bool:
    return (
        at + 1 < len(lines)
        and "|" in lines[at]
        and "|" in lines[at + 1]
        and _RULE.match(lines[at + 1]) is not None
    )


def _cut(block: _Block, before: str, limit: LengthLimit) -> list[str]:
    """The block in pieces that fit, the first of them behind what stands in its message already."""
    match block.kind:
        case "code":
            opened = _FENCE.match(block.lines[0])
            assert opened is not None
            closed = len(block.lines) > 1 and _closing(list(block.lines), 0, opened[1]) == len(
                block.lines
            )
            closed = (
                closed
                and block.lines[-1].strip()[:1] == opened[1][0]
                and _FENCE.match(block.lines[-1]) is not None
            )
            inside = block.lines[1:-1] if closed else block.lines[1:]
            # An opening line that is as long as the message is no way to open the next one.
            head = block.lines[0] if limit.of(block.lines[0]) * 3 < limit.size else opened[1]
            return _framed(inside, head, opened[1], before, block.blank, limit)
        case "table":
            head = "\n".join(block.lines[:2])
            if limit.of(head) * 2 < limit.size:
                return _framed(block.lines[2:], head, "", before, block.blank, limit)
    return _text(block, before, limit)


def _framed(
    lines: tuple[str, ...], head: str, foot: str, before: str, blank: int, limit: LengthLimit
) -> list[str]:
    """Lines between a head and a foot that every piece has. A line that is too long by itself is
    cut.
    """
    tail = f"\n{foot}" if foot else ""
    room = limit.size - limit.of(f"{head}\n{tail}")
    pieces: list[str] = []
    begun = f"{before}{chr(10) * (blank + 1)}{head}" if before else head
    at, filled = begun, False
    for line in [part for whole in lines for part in _slices(whole, limit, room)]:
        if limit.of(f"{at}\n{line}{tail}") > limit.size:
            if filled:
                pieces.append(at + tail)
            elif at is begun and before:
                # Not even one line of it fits behind what is there.
                pieces.append(before)
            at, filled = head, False
        at, filled = f"{at}\n{line}", True
    return [*pieces, at + tail]


def _text(block: _Block, before: str, limit: LengthLimit) -> list[str]:
    pieces: list[str] = [before] if before else []
    at = ""
    for line in block.lines:
        for number, part in enumerate(_slices(line, limit, limit.size)):
            joined = f"{at}\n{part}" if at and number == 0 else part if not at else ""
            if joined and limit.of(joined) <= limit.size:
                at = joined
            else:
                pieces.append(at)
                at = part
    return [*pieces, at]


def _slices(line: str, limit: LengthLimit, room: int) -> Iterator[str]:
    """A line in parts that have room, cut behind a sentence, a clause, a word, or at last between
    two characters.
    """
    while limit.of(line) > room:
        most = _fitting(line, lambda part: limit.of(part) <= room)
        at = next(
            (cut for ends in _ENDS if (cut := _last(ends, line, most)) > most // 2), 0
        ) or _between(line, most)
        yield line[:at]
        line = line[at:]
    yield line


def _last(pattern: re.Pattern[str], line: str, most: int) -> int:
    found = 0
    for match in pattern.finditer(line, 0, most):
        found = match.end()
    return found


def _fitting(line: str, fits: Callable[[str], bool]) -> int:
    """Return how many characters of a line fit."""
    low, high = 1, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(line[:middle]) else (low, middle - 1)
    return low


def _between(line: str, most: int) -> int:
    """A place to cut at which no accent loses its letter and no family its members."""
    at = most
    while at > 1 and at > most - 32 and (_clings(line[at]) or line[at - 1] == "\u200d"):
        at -= 1
    return at if at > most - 32 and at > 1 else most


def _clings(char: str) -> bool:
    return (
        char in "\u200d\ufe0f\ufe0e"
        or unicodedata.combining(char) != 0
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )
