"""Putting changes into a text: exactly where they say if they fit there, else where they fit, else
not at all.

The rule: a change goes in only where its old lines are found. First to the letter, then with white
space ignored; each departure is reported, and a change that fits nowhere is refused with the
nearest text.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import Struct

from palyra.core.errors import Conflict
from palyra.tools.files.diffs import Hunk

_MOST_SHOWN = 12
_LONGEST_SHOWN = 160
_MOST_COMPARED = 4_000


class FileLines(Struct):
    """A file's lines without their ends, and whether the last one is ended. A return before the end
    stays part of the line.
    """

    lines: list[str]
    ended: bool = True

    @classmethod
    def of(cls, text: str) -> "FileLines":
        if not text:
            return cls([])
        lines = text.split("\n")
        ended = not lines[-1]
        return cls(lines[:-1] if ended else lines, ended)

    def __str__(self) -> str:
        return "\n".join(self.lines) + ("\n" if self.ended and self.lines else "")


class _Spot(Struct, frozen=True):
    at: int
    fuzzy: bool


def apply_hunks(text: FileLines, hunks: Sequence[Hunk], name: str) -> list[str]:
    """Change `text` by all the hunks in their order; returns remarks on those that did not fit to
    the letter.
    """
    remarks = []
    shift = floor = 0
    for hunk in hunks:
        old = hunk.old
        expected = None if hunk.start is None else max(hunk.start - 1, 0) + shift
        if not old:
            expected = _insertion(text, hunk, shift, name)
        spot = _locate(text.lines, old, expected, floor)
        if isinstance(spot, list):
            raise Conflict(
                f"{name}: hunk {hunk.number} fits in {len(spot)} places, lines {_numbers(spot)}:"
                " give it more context"
            )
        if spot is None:
            raise Conflict(
                f"{name}: hunk {hunk.number} {_misfit(text, hunk, floor)}",
                path=name,
                hunk=hunk.number,
            )
        new = _fitted(text.lines[spot.at : spot.at + len(old)], hunk) if spot.fuzzy else hunk.new
        _check_end(text, hunk, spot, name)
        reaches_end = spot.at + len(old) == len(text.lines)
        text.lines[spot.at : spot.at + len(old)] = new
        if reaches_end and (hunk.old_unended or hunk.new_unended):
            text.ended = not hunk.new_unended
        if expected is not None and spot.at != expected:
            remarks.append(
                f"hunk {hunk.number} applied {abs(spot.at - expected)} lines"
                f" {'below' if spot.at > expected else 'above'} its place"
            )
        if spot.fuzzy:
            remarks.append(f"hunk {hunk.number} applied ignoring white space")
        if hunk.start is not None:
            shift = (
                spot.at - max(hunk.start - 1, 0) + len(new) - len(old) if old else shift + len(new)
            )
        floor = spot.at + len(new)
    return remarks


def _insertion(text: FileLines, hunk: Hunk, shift: int, name: str) -> int:
    """Return where a hunk without old lines goes: after the line its header names."""
    at = (
        len(text.lines)
        if hunk.start is None and not text.lines
        else None
        if hunk.start is None
        else hunk.start + shift
    )
    if at is None or not 0 <= at <= len(text.lines):
        raise Conflict(
            f"{name}: hunk {hunk.number} only adds lines and does not say where: give it context"
            " lines"
        )
    return at


def _check_end(text: FileLines, hunk: Hunk, spot: _Spot, name: str) -> None:
    """A line that is said to be the last without an end must be the last, or lines would run
    together.
    """
    if hunk.new_unended and spot.at + len(hunk.old) != len(text.lines):
        raise Conflict(f"{name}: hunk {hunk.number} says that the file ends there, but it goes on")


def replace_once(text: str, search: str, new: str, name: str) -> tuple[str, str]:
    """`text` with its only occurrence of `search` replaced, and a remark if white space had to be
    ignored.
    """
    count = text.count(search)
    if count > 1:
        at, numbers = -1, []
        for _ in range(min(count, 20)):
            at = text.index(search, at + 1)
            numbers.append(text.count("\n", 0, at))
        raise Conflict(
            f"{name}: the search text occurs {count} times, at lines {_numbers(numbers)}: add lines"
            " around it or set all"
        )
    if count == 1:
        return text.replace(search, new), ""
    found = FileLines.of(text)
    old = FileLines.of(search).lines
    spot = _locate(found.lines, old, None, 0)
    if isinstance(spot, list):
        raise Conflict(
            f"{name}: the search text fits in {len(spot)} places, lines {_numbers(spot)}: add lines"
            " around it"
        )
    if spot is None:
        raise Conflict(
            f"{name}: the search text was not found; {_nearest(found.lines, old)}", path=name
        )
    change = Hunk(
        number=1,
        start=None,
        ops=[("-", line) for line in old] + [("+", line) for line in FileLines.of(new).lines],
    )
    found.lines[spot.at : spot.at + len(old)] = _fitted(
        found.lines[spot.at : spot.at + len(old)], change
    )
    return str(found), "white space was ignored"


def _locate(
    lines: list[str], old: list[str], expected: int | None, floor: int
) -> _Spot | list[int] | None:
    """The best place at or after `floor`; a list of places if none is better than the others."""
    if expected is not None and expected >= floor and lines[expected : expected + len(old)] == old:
        return _Spot(expected, False)
    if not old:
        return None
    for key in (None, str.rstrip, _collapsed):
        keyed = lines if key is None else [key(line) for line in lines]
        wanted = old if key is None else [key(line) for line in old]
        if key is not None and not any(wanted):
            continue
        found = _occurrences(keyed, wanted, floor)
        if key is _collapsed:
            found = [at for at in found if _indents(lines[at : at + len(old)], old) is not None]
        if expected is not None and found:
            return _Spot(min(found, key=lambda at: abs(at - expected)), key is not None)
        if found:
            return _Spot(found[0], key is not None) if len(found) == 1 else found
    return None


def _occurrences(lines: list[str], wanted: list[str], floor: int) -> list[int]:
    """Every place at or after `floor` where `wanted` stands. Each line is looked at once, however
    often it comes again.
    """
    if wanted[0] not in lines:
        return []
    borders = _borders(wanted)
    found: list[int] = []
    fits = 0
    for at in range(floor, len(lines)):
        while fits and lines[at] != wanted[fits]:
            fits = borders[fits - 1]
        fits += lines[at] == wanted[fits]
        if fits == len(wanted):
            found.append(at - len(wanted) + 1)
            fits = borders[fits - 1]
    return found


def _borders(wanted: list[str]) -> list[int]:
    """Return how much of each beginning of `wanted` is also its end (Knuth, Morris and Pratt)."""
    borders = [0] * len(wanted)
    for at in range(1, len(wanted)):
        border = borders[at - 1]
        while border and wanted[at] != wanted[border]:
            border = borders[border - 1]
        borders[at] = border + (wanted[at] == wanted[border])
    return borders


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _fitted(actual: list[str], hunk: Hunk) -> list[str]:
    """The new lines of a hunk that matched only with white space ignored: context as it is,
    additions in the file's manner.
    """
    indents = _indents(actual, hunk.old) or {}
    returns = bool(actual) and all(line.endswith("\r") for line in actual)
    fitted, position = [], 0
    for op, text in hunk.ops:
        if op == "+":
            line = _indented(text.removesuffix("\r"), indents)
            fitted.append(line + "\r" if returns else line)
            continue
        if op == " ":
            fitted.append(actual[position])
        position += 1
    return fitted


def _indents(actual: list[str], given: list[str]) -> dict[str, str] | None:
    """Return which indent of the model's text stands for which indent of the file; None if it is
    not one to one.
    """
    indents: dict[str, str] = {}
    for mine, theirs in zip(actual, given, strict=False):
        if theirs.strip() and indents.setdefault(_indent(theirs), _indent(mine)) != _indent(mine):
            return None
    return indents


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(line: str, indents: dict[str, str]) -> str:
    indent = _indent(line)
    known = max((each for each in indents if indent.startswith(each)), key=len, default=None)
    if known is None or not line.strip():
        return line
    return indents[known] + line[len(known) :]


def _misfit(text: FileLines, hunk: Hunk, floor: int) -> str:
    if hunk.added and _locate(text.lines, hunk.new, None, 0) is not None:
        return "looks as if it had been applied already"
    if floor and _locate(text.lines, hunk.old, 0, 0) is not None:
        return (
            "fits only before or inside the hunk above it: give hunks in the order of the file,"
            " without overlap"
        )
    return f"does not fit; {_nearest(text.lines, hunk.old)}"


def _nearest(lines: list[str], old: list[str]) -> str:
    """The part of the file that is most like what was looked for, with line numbers."""
    if not lines:
        return "the file is empty"
    stripped = [line.strip() for line in lines]
    places: dict[str, list[int]] = {}
    for index, line in enumerate(stripped):
        if line:
            places.setdefault(line, []).append(index)
    votes = Counter(
        at - offset for offset, line in enumerate(old) for at in places.get(line.strip(), ())[:50]
    )
    if votes:
        start = max(votes.most_common(1)[0][0], 0)
    else:
        wanted = next((line.strip() for line in old if line.strip()), "")
        close = get_close_matches(
            wanted[:_LONGEST_SHOWN],
            [line[:_LONGEST_SHOWN] for line in stripped[:_MOST_COMPARED]],
            n=1,
        )
        if not close:
            return "nothing in the file is like it: read the file again"
        start = next(
            index for index, line in enumerate(stripped) if line[:_LONGEST_SHOWN] == close[0]
        )
    shown = lines[start : start + min(len(old) + 1, _MOST_SHOWN)]
    numbered = "\n".join(
        f"{start + index + 1}: {line[:_LONGEST_SHOWN]}" for index, line in enumerate(shown)
    )
    return f"the nearest text is\n{numbered}"


def _numbers(spots: Sequence[int]) -> str:
    return ", ".join(str(at + 1) for at in spots[:8]) + (" …" if len(spots) > 8 else "")
