"""Markdown tables on a terminal: columns as wide as what is in them, narrower where the terminal
is, with cells that wrap.
"""

import re

from palyra.cli.safe_text import width_of

Styles = tuple[str, ...]
Run = tuple[str, Styles]
Line = list[Run]

_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_CELL = re.compile(r"(?<!\\)\|")
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*"
    r"|\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*"
    r"|\[(?P<label>[^\[\]]+)\]\((?P<link>[^()\s]+)\)"
)
_STYLES = {"code": "cyan", "strong": "bold", "emphasis": "italic"}
_BETWEEN = " │ "
_NARROWEST = 6


def is_table(lines: list[str]) -> bool:
    return len(lines) >= 2 and _DELIMITER.fullmatch(lines[1]) is not None


def table_lines(lines: list[str], width: int) -> list[Line] | None:
    """Return a table as lines of styled runs; None if the terminal is too narrow for it."""
    rows = [_cells(lines[0]), *(_cells(line) for line in lines[2:])]
    columns = max(map(len, rows))
    rows = [row + [""] * (columns - len(row)) for row in rows]
    sides = [_side(cell) for cell in _cells(lines[1])]
    sides += ["left"] * (columns - len(sides))
    runs = [[inline_runs(cell) for cell in row] for row in rows]
    widths = _widths([max(map(_width, column)) for column in zip(*runs, strict=True)], width)
    if widths is None:
        return None
    made: list[Line] = []
    for number, row in enumerate(runs):
        made += _row(row, widths, sides, ("bold",) if number == 0 else ())
        if number == 0:
            made.append([("─┼─".join("─" * each for each in widths), ("dim",))])
    return made


def inline_runs(text: str) -> Line:
    """Return a finished text as runs: code, strong, emphasis and links without their marks."""
    runs: Line = []
    at = 0
    for found in _INLINE.finditer(text):
        runs.append((text[at : found.start()], ()))
        kind = found.lastgroup or ""
        if kind == "link":
            runs += link_runs(found["label"], found["link"])
        else:
            runs.append((found[kind], (_STYLES[kind],)))
        at = found.end()
    runs.append((text[at:], ()))
    return [run for run in runs if run[0]]


def link_runs(label: str, address: str) -> Line:
    """Return a link with its address beside it: a terminal has nothing to hover over."""
    shown: Line = [(label, ("blue", "underline"))]
    return shown if label == address else [*shown, (f" ({address})", ("dim",))]


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(inner)]


def _side(delimiter: str) -> str:
    if delimiter.endswith(":"):
        return "middle" if delimiter.startswith(":") else "right"
    return "left"


def _width(runs: Line) -> int:
    return sum(width_of(text) for text, _ in runs)


def _widths(wanted: list[int], room: int) -> list[int] | None:
    """Return the widths of the columns: the widest give way until all fit."""
    widths = [max(1, each) for each in wanted]
    room -= len(_BETWEEN) * (len(widths) - 1)
    while sum(widths) > room:
        widest = max(widths)
        if widest <= _NARROWEST:
            return None
        at = widths.index(widest)
        second = max((each for each in widths if each < widest), default=_NARROWEST)
        give = min(widest - max(second, _NARROWEST), sum(widths) - room)
        widths[at] -= max(1, give)
    return widths


def _row(cells: list[Line], widths: list[int], sides: list[str], style: Styles) -> list[Line]:
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    made: list[Line] = []
    for number in range(max(map(len, wrapped))):
        line: Line = []
        for at, (cell, width, side) in enumerate(zip(wrapped, widths, sides, strict=True)):
            if at:
                line.append((_BETWEEN, ("dim",)))
            runs = cell[number] if number < len(cell) else []
            free = max(0, width - _width(runs))
            before = free if side == "right" else free // 2 if side == "middle" else 0
            line += [(" " * before, ()), *((text, (*style, *each)) for text, each in runs)]
            if at < len(widths) - 1:
                line.append((" " * (free - before), ()))
        made.append([run for run in line if run[0]])
    return made


def _wrapped(runs: Line, width: int) -> list[Line]:
    """Break a cell between words; a word that is too long is cut."""
    lines: list[Line] = [[]]
    used = 0
    for text, styles in runs:
        for piece in re.split(r"( )", text):
            for part in _parts(piece, width):
                size = width_of(part)
                if used + size > width and used:
                    lines.append([])
                    used = 0
                if part == " " and not used:
                    continue
                lines[-1].append((part, styles))
                used += size
    return lines


def _parts(word: str, width: int) -> list[str]:
    parts, part, used = [], "", 0
    for char in word:
        size = width_of(char)
        if used + size > width and part:
            parts.append(part)
            part, used = "", 0
        part += char
        used += size
    return [*parts, part] if part else parts
