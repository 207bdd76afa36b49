"""Secrets in tables: the name stands above the value, or in the list of columns before it. Each row
is read once.
"""

import re
from collections.abc import Iterator

from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.literals import Prefilter
from palyra.core.redaction.shapes import UNREAD, Work
from palyra.core.redaction.values import Kind, Value, is_secret

_MARKS = ("|", ",", ";", "\t")
_NAMES: dict[str, Kind] = {
    **dict.fromkeys(
        ("password", "passwd", "pass", "pw", "pwd", "passphrase", "passcode", "passwort"),
        "password",
    ),
    **dict.fromkeys(
        ("secret", "token", "api key", "api_key", "apikey", "access token", "access_token"),
        "secret",
    ),
    **dict.fromkeys(("client_secret", "secret key", "secret_key", "auth_token"), "secret"),
}
# A column of these names holds passwords only beside one that says whose: tests pass or fail, too.
_SHORT = frozenset({"pass", "pw", "pwd"})
_WHOSE = re.compile(
    r"(?:.*[_ ])?(?:user|user ?name|login|account|e-?mail|id|name|host|server|service|url|ip|site)"
)
_A_NAMED_CELL = (
    rf"(?m)(?:^|[|,;\t])[ \"'*`_]{{0,4}}({'|'.join(sorted(_NAMES, key=len, reverse=True))})"
    r"[ \"'*`_]{0,40}(?:[|,;\t\r]|$)"
)
_NAMED_CELL = re.compile(_A_NAMED_CELL)
_HAS_NAMED_CELL = Prefilter(_A_NAMED_CELL)
_RULE_ROW = re.compile(r"[\s|:+\-]+")
_MOST_ROWS = 2_000
_LONGEST_ROW = 1_000
_LOOKED_AT, _JUDGEMENT = 2, 20  # units of work
# INSERT INTO users (login, password) VALUES ('ann', '...')
_INSERT = re.compile(r"(?i)insert\s{1,4}into\s{1,4}[\w.`\"\[\]]{1,64}\s{0,4}\(([^()]{1,400})\)")
_VALUES = re.compile(r"(?i)\s{0,8}values\s{0,8}")
_TUPLE = re.compile(r"\(((?:[^()'\"]|'[^'\n]*'|\"[^\"\n]*\"){1,1000})\)\s{0,4},?\s{0,8}")
_CELL = re.compile(r"\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^,'\"]*))\s*(?:,|$)")


def find(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    """`lower` is `text` in lower case, character for character."""
    if "\n" in text and _HAS_NAMED_CELL.may_match(lower):
        yield from _rows(text, lower, work)
    if "insert" in lower and "values" in lower:
        yield from _inserts(text, work)


def _rows(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    at = 0
    for named in _NAMED_CELL.finditer(lower):
        if named.start(1) < at:
            continue  # in a row of the table before
        at = text.rfind("\n", 0, named.start(1)) + 1
        end = _end_of_line(text, at)
        header = _header(lower, at, end)
        work.spend(_LOOKED_AT)
        if header is None:
            at = end + 1
            continue
        mark, count, kinds = header
        at = end + 1
        for _ in range(_MOST_ROWS):
            end = _end_of_line(text, at)
            cells = _cells(text, at, end, mark) if at < end <= at + _LONGEST_ROW else []
            if len(cells) != count:
                break
            if not work.spend(_LOOKED_AT):
                yield FormatMatch(at, len(text), UNREAD)
                return
            if not _RULE_ROW.fullmatch(text, at, end):
                for place, kind in kinds.items():
                    yield from _judged(text, *cells[place], kind, work)
            at = end + 1


def _header(lower: str, at: int, end: int) -> tuple[str, int, dict[int, Kind]] | None:
    """Return the mark between cells, their number, and which columns hold secrets of which kind, if
    this line is the head of a table.
    """
    for mark in _MARKS if end - at <= _LONGEST_ROW else ():
        if lower.find(mark, at, end) < 0:
            continue
        cells = _cells(lower, at, end, mark)
        names = [lower[low:high].strip("_ ") for low, high in cells]
        is_sure = any(map(_WHOSE.fullmatch, names)) and "fail" not in names
        kinds = {
            place: kind
            for place, name in enumerate(names)
            if (is_sure or name not in _SHORT) and (kind := _NAMES.get(name)) is not None
        }
        if kinds and sum(map(bool, names)) > 1:
            return mark, len(cells), kinds
    return None


def _cells(text: str, at: int, end: int, mark: str) -> list[tuple[int, int]]:
    """Return where each cell begins and ends, without the blanks and quotes around it."""
    cells = []
    while True:
        stop = text.find(mark, at, end)
        low, high = at, stop if stop >= 0 else end
        while low < high and text[low] in " \t\r\"'`*":
            low += 1
        while high > low and text[high - 1] in " \t\r\"'`*":
            high -= 1
        cells.append((low, high))
        if stop < 0:
            return cells
        at = stop + len(mark)


def _judged(text: str, low: int, high: int, kind: Kind, work: Work) -> Iterator[FormatMatch]:
    value = Value(low, text[low:high], ":")
    work.spend(_JUDGEMENT)
    if high > low and is_secret(kind, value):
        yield FormatMatch(low, high, kind)


def _inserts(text: str, work: Work) -> Iterator[FormatMatch]:
    for insert in _INSERT.finditer(text):
        names = [name.strip(" \t\n`\"'[]").lower() for name in insert[1].split(",")]
        kinds = {place: kind for place, name in enumerate(names) if (kind := _NAMES.get(name))}
        values = _VALUES.match(text, insert.end()) if kinds else None
        at = values.end() if values else len(text)
        while (row := _TUPLE.match(text, at)) is not None:
            if not work.spend(_LOOKED_AT):
                yield FormatMatch(at, len(text), UNREAD)
                return
            for place, cell in enumerate(_CELL.finditer(text, row.start(1), row.end(1))):
                if place in kinds and cell.lastindex in (1, 2):
                    yield from _judged(text, *cell.span(cell.lastindex), kinds[place], work)
            at = row.end()


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)
