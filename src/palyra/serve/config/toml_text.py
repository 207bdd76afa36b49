"""Changes one value in a TOML text and leaves every other byte alone: comments, order and spelling
belong to their author.

The result is parsed and compared with what was asked for before it is given back, so a text this
editor does not understand is refused, never damaged.
"""

import re
from typing import Any

from msgspec import Struct

from palyra.core.errors import InvalidInput

Path = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\r\n]*")


class Header(Struct, frozen=True):
    path: Path
    start: int
    end: int


class Assignment(Struct, frozen=True):
    """`start` and `end` are those of the value; `within` is the table the key was written in,
    `inline` whether in braces.
    """

    path: Path
    within: Path
    start: int
    end: int
    inline: bool = False


class Scan(Struct):
    headers: list[Header]
    assignments: list[Assignment]

    def line(self, text: str, path: Path) -> int | None:
        """The line on which this key, or the nearest table around it that is written down,
        stands.
        """
        for length in range(len(path), 0, -1):
            places = [
                each.start for each in self.assignments if each.path[:length] == path[:length]
            ]
            places += [each.start for each in self.headers if each.path[:length] == path[:length]]
            if places:
                return text.count("\n", 0, min(places)) + 1
        return None


def parse(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def scan(text: str) -> Scan:
    """Where everything is, in a text that is valid TOML."""
    found, at = Scan([], []), 0
    within: Path = ()
    while True:
        at = _skip(_BETWEEN, text, at)
        if at >= len(text):
            return found
        if text[at] == "[":
            start, double = at, text.startswith("[[", at)
            within, at = _key(text, at + (2 if double else 1))
            if double:
                # No setting of ours lives in an array of tables: a path nobody asks for keeps them
                # apart.
                within = (*within, f"\0{start}")
            at = _skip(_BLANK, text, at) + (2 if double else 1)
            found.headers.append(Header(within, start, at))
        else:
            at = _assignment(text, at, within, found, inline=False)


def assign(text: str, path: Path, value: Any) -> str:
    """The text with `path` set to `value`, and nothing else different."""
    before = parse(text)
    wanted = _with(before, path, value)
    after = _edit(text, path, literal(value))
    if parse(after) != wanted:
        raise InvalidInput(
            f"{'.'.join(path)} cannot be set without rewriting the file; change it by hand"
        )
    return after


def remove(text: str, path: Path) -> str | None:
    """The text without `path`, and nothing else different; None if it does not say `path`. An
    emptied table may stay.
    """
    before = parse(text)
    found = next((each for each in scan(text).assignments if each.path == path), None)
    if found is None:
        return None
    after = _cut_entry(text, found) if found.inline else _cut_line(text, found)
    if _pruned(parse(after)) != _pruned(_without(before, path)):
        raise InvalidInput(
            f"{'.'.join(path)} cannot be removed without rewriting the file; change it by hand"
        )
    return after


def remove_table(text: str, table: Path) -> str | None:
    """The text without a table and all that is in it; None if there is no such table."""
    before = parse(text)
    size = len(table)
    after, there = text, False
    # From the end, so that what is still to be cut stays where it was found.
    while found := next(
        (each for each in reversed(scan(after).assignments) if each.path[:size] == table), None
    ):
        after, there = (_cut_entry if found.inline else _cut_line)(after, found), True
    while header := next(
        (each for each in reversed(scan(after).headers) if each.path[:size] == table), None
    ):
        end = after.find("\n", header.end)
        after, there = after[: header.start] + (after[end + 1 :] if end >= 0 else ""), True
    if not there:
        return None
    if _pruned(parse(after)) != _pruned(_without(before, table)):
        raise InvalidInput(
            f"{'.'.join(table)} cannot be removed without rewriting the file; change it by hand"
        )
    return after


def literal(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return _quoted(value)
        case list() | tuple():
            return f"[{', '.join(literal(each) for each in value)}]"
        case _:
            raise InvalidInput(f"a {type(value).__name__} cannot be written as a setting")


def _edit(text: str, path: Path, value: str) -> str:
    found = scan(text)
    for each in found.assignments:
        if each.path == path:
            return text[: each.start] + value + text[each.end :]
    braces = [
        each
        for each in found.assignments
        if path[: len(each.path)] == each.path and text[each.start] == "{"
    ]
    if braces:
        return _into_braces(text, max(braces, key=lambda each: len(each.path)), path, value)
    parent = path[:-1]
    siblings = [
        each for each in found.assignments if not each.inline and each.path[: len(parent)] == parent
    ]
    beside = [each for each in siblings if len(each.within) <= len(parent)]
    header = next((each for each in found.headers if each.path == parent), None)
    if beside:
        # Next to its siblings, in the table they are written in: a table made of dotted keys may
        # not get a header as well.
        last = max(beside, key=lambda each: each.start)
        return _add_line(text, last.end, _dotted(path[len(last.within) :]), value)
    if header is not None:
        return _add_line(text, header.end, _dotted(path[-1:]), value)
    newline = _newline(text)
    if not parent:
        return f"{_dotted(path)} = {value}{newline}{text}"
    gap = "" if not text or text.endswith("\n") else newline
    return (
        f"{text}{gap}{newline if text else ''}[{_dotted(parent)}]{newline}{_dotted(path[-1:])} ="
        f" {value}{newline}"
    )


def _into_braces(text: str, table: Assignment, path: Path, value: str) -> str:
    inside = text[table.start + 1 : table.end - 1].strip()
    entry = f"{_dotted(path[len(table.path) :])} = {value}"
    return (
        text[: table.start]
        + (f"{{{inside}, {entry}}}" if inside else f"{{{entry}}}")
        + text[table.end :]
    )


def _add_line(text: str, after: int, key: str, value: str) -> str:
    newline, end = _newline(text), text.find("\n", after)
    if end < 0:
        return f"{text}{newline}{key} = {value}{newline}"
    return f"{text[: end + 1]}{key} = {value}{newline}{text[end + 1 :]}"


def _cut_line(text: str, found: Assignment) -> str:
    """Without the line, or the lines, of this value and the comment behind it."""
    start, end = text.rfind("\n", 0, found.start) + 1, text.find("\n", found.end)
    return text[:start] + (text[end + 1 :] if end >= 0 else "")


def _cut_entry(text: str, found: Assignment) -> str:
    """Without this entry of a table in braces, and without one of the commas around it."""
    start = max(text.rfind("{", 0, found.start), text.rfind(",", 0, found.start))
    end = _skip(_BETWEEN, text, found.end)
    if text[start] == ",":
        return text[:start] + text[found.end :]
    return text[: start + 1] + text[end + 1 if text[end] == "," else end :].lstrip(" ")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dotted(path: Path) -> str:
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)


def _quoted(text: str) -> str:
    import json

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the value is not valid text") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with(data: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy of the parsed data with one value changed."""
    name, rest = path[0], path[1:]
    old = data.get(name)
    if not rest:
        if isinstance(old, dict):
            raise InvalidInput(f"{name} is a table, not a value")
        return {**data, name: list(value) if isinstance(value, tuple) else value}
    if old is not None and not isinstance(old, dict):
        raise InvalidInput(f"{name} is a value, not a table")
    return {**data, name: _with(old or {}, rest, value)}


def _without(data: dict[str, Any], path: Path) -> dict[str, Any]:
    if len(path) == 1:
        return {name: value for name, value in data.items() if name != path[0]}
    return {**data, path[0]: _without(data[path[0]], path[1:])}


def _pruned(data: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing: a header that lost its last key says the same as none."""
    kept = {
        name: _pruned(value) if isinstance(value, dict) else value for name, value in data.items()
    }
    return {name: value for name, value in kept.items() if value != {}}


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise InvalidInput(
            f"the file cannot be edited: line {text.count(chr(10), 0, at) + 1} is not understood"
        )
    return match.end()


def _key(text: str, at: int) -> tuple[Path, int]:
    parts: list[str] = []
    while True:
        at = _skip(_BLANK, text, at)
        pattern = {'"': _BASIC, "'": _LITERAL}.get(text[at : at + 1], _BARE)
        end = _skip(pattern, text, at)
        word = text[at:end]
        parts.append(parse(f"k = {word}")["k"] if pattern is not _BARE else word)
        at = _skip(_BLANK, text, end)
        if text[at : at + 1] != ".":
            return tuple(parts), at
        at += 1


def _assignment(text: str, at: int, within: Path, found: Scan | None, *, inline: bool) -> int:
    key, at = _key(text, at)
    start = _skip(_BLANK, text, at + 1)
    path = (*within, *key)
    end = _value(text, start, path, found)
    # Tables inside a list have no path of their own, so nothing is recorded there.
    if found is not None:
        found.assignments.append(Assignment(path, within, start, end, inline))
    return end


def _value(text: str, at: int, path: Path, found: Scan | None) -> int:
    match text[at : at + 1]:
        case '"':
            return _skip(_LONG_BASIC if text.startswith('"""', at) else _BASIC, text, at)
        case "'":
            return _skip(_LONG_LITERAL if text.startswith("'''", at) else _LITERAL, text, at)
        case "[":
            return _items(text, at + 1)
        case "{":
            return _entries(text, at + 1, path, found)
        case _:
            end = _skip(_SCALAR, text, at)
            return at + len(text[at:end].rstrip())


def _items(text: str, at: int) -> int:
    while True:
        at = _skip(_BETWEEN, text, at)
        if text[at] == "]":
            return at + 1
        at = at + 1 if text[at] == "," else _value(text, at, (), None)


def _entries(text: str, at: int, path: Path, found: Scan | None) -> int:
    while True:
        at = _skip(_BETWEEN, text, at)
        if text[at] == "}":
            return at + 1
        at = at + 1 if text[at] == "," else _assignment(text, at, path, found, inline=True)
