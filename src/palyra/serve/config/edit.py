"""Change settings in the file, in place and all or nothing. What would not load is not written.
Files are 0600, folders 0700.

tomlkit keeps comments, order and spelling. Each result is parsed by tomllib and compared with what
was asked for before it is written, so a file that tomlkit does not understand is refused, never
damaged.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from palyra.core.errors import ConfigInvalid, InvalidInput, NotFound
from palyra.serve.config import reader
from palyra.system.private_files import write_private

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Item

_BARE_NEWLINE = re.compile(r"(?<!\r)\n")


def set_value(home: Path, key: str, value: Any) -> None:
    """Set one key, such as `server.http_port`. Text is read as the setting's type; comments and
    order stay.
    """
    set_values(home, {key: value})


def set_values(home: Path, changes: Mapping[str, Any]) -> None:
    """Set several keys together, where one alone would not be valid."""

    def edit(text: str) -> str:
        for key, value in changes.items():
            path, setting = reader.parse_key(key)
            try:
                good = (
                    reader.from_text(setting, value)
                    if isinstance(value, str)
                    else msgspec.convert(value, setting.type)
                )
            except msgspec.ValidationError as error:
                raise InvalidInput(f"{key} must be {setting.accepts}") from error
            text = assign(text, path, good)
        return text

    _change(home / reader.FILE, edit)


def unset_value(home: Path, key: str) -> None:
    """Remove one key from the file, so that its default is in force again."""
    path, _ = reader.parse_key(key)

    def edit(text: str) -> str:
        after = remove(text, path)
        if after is None:
            raise NotFound(f"{key} is not set in {home / reader.FILE}")
        return after

    _change(home / reader.FILE, edit)


def remove_table(home: Path, table: tuple[str, ...]) -> None:
    """Remove a whole table from the file, such as `mcp.git`."""

    def edit(text: str) -> str:
        after = remove(text, table)
        if after is None:
            raise NotFound(
                f"[{'.'.join(table)}] is not in {home / reader.FILE}; it may come from the"
                " environment"
            )
        return after

    _change(home / reader.FILE, edit)


def _change(path: Path, edit: Callable[[str], str]) -> None:
    try:
        text = edit(_read(path))
    except ValueError as error:
        raise ConfigInvalid(f"{path} is not valid TOML, fix it first: {error}") from error
    if problems := reader.check_text(path, text):
        raise reader.invalid(problems)
    write_private(path, text.encode())


def assign(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with `path` set to `value`. Raise InvalidInput if that would turn a table
    into a value, or back.
    """
    import tomlkit
    from tomlkit.items import InlineTable

    value = list(value) if isinstance(value, tuple) else value
    wanted = _with(reader.parse(text), path, value)

    def put(table: Any, name: str, given: Any) -> None:
        if isinstance(table, InlineTable) and name not in table:
            # Unlike an assignment, this puts a space behind the comma.
            table.add(name, given)
        else:
            table[name] = given

    def edit(document: "TOMLDocument", new_table: Callable[[], Any]) -> None:
        table: Any = document
        for name in path[:-1]:
            if name not in table:
                put(table, name, new_table())
            table = table[name]
        put(table, path[-1], value)

    # A table that is made of dotted keys, or is written in braces, cannot get a part with a header.
    for new_table in (tomlkit.table, tomlkit.inline_table):
        after = _edited(text, partial(edit, new_table=new_table))
        if _parsed(after) == wanted:
            return after
    raise InvalidInput(
        f"{'.'.join(path)} cannot be set without rewriting the file; change it by hand"
    )


def remove(text: str, path: tuple[str, ...]) -> str | None:
    """Return the text without a value or a table; None if the text has no `path`. A table that is
    empty then may stay.
    """
    wanted = _without(reader.parse(text), path)
    if wanted is None:
        return None

    def edit(document: "TOMLDocument") -> None:
        _pass_comments_on(document, path)
        table: Any = document
        for name in path[:-1]:
            table = table[name]
        del table[path[-1]]

    after = _edited(text, edit)
    left = _parsed(after)
    if left is None or _pruned(left) != _pruned(wanted):
        raise InvalidInput(
            f"{'.'.join(path)} cannot be removed without rewriting the file; change it by hand"
        )
    return after


def literal(value: Any) -> str:
    """Return a value as TOML writes it."""
    import tomlkit

    return str(tomlkit.item(list(value) if isinstance(value, tuple) else value).as_string())


def _edited(text: str, edit: Callable[["TOMLDocument"], None]) -> str:
    """Return the text after an edit, or the text unchanged if tomlkit cannot make it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        after = tomlkit.dumps(document)
    except (TOMLKitError, ValueError):
        return text
    # New lines end as the others do.
    return (
        after
        if _BARE_NEWLINE.search(text) or "\r\n" not in text
        else _BARE_NEWLINE.sub("\r\n", after)
    )


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return reader.parse(text)
    except ValueError:
        return None


def _pass_comments_on(document: "TOMLDocument", path: tuple[str, ...]) -> None:
    """Move the comments below the last key of a table to what follows: they stand above the next
    header, and belong to it.
    """
    from tomlkit.items import Comment, Table

    comments: list[Item] = []
    for where, item in list(reader.items(document)):
        inside = where[: len(path)] == path
        if inside and isinstance(item, Table):
            last = list(takewhile(lambda entry: entry[0] is None, reversed(item.value.body)))[::-1]
            comments += [
                each for _, each in dropwhile(lambda entry: not isinstance(entry[1], Comment), last)
            ]
        elif comments and not inside and not (isinstance(item, Table) and item.is_super_table()):
            item.trivia.indent = "".join(each.as_string() for each in comments) + item.trivia.indent
            comments = []
    for each in comments:
        document.add(each)


def _with(data: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a copy of the parsed data with one value changed."""
    name, rest = path[0], path[1:]
    old = data.get(name)
    if not rest:
        if isinstance(old, dict):
            raise InvalidInput(f"{name} is a table, not a value")
        return {**data, name: value}
    if old is not None and not isinstance(old, dict):
        raise InvalidInput(f"{name} is a value, not a table")
    return {**data, name: _with(old or {}, rest, value)}


def _without(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    """Return a copy of the parsed data without `path`; None if it is not there."""
    if path[0] not in data:
        return None
    if len(path) == 1:
        return {name: value for name, value in data.items() if name != path[0]}
    inner = data[path[0]]
    left = _without(inner, path[1:]) if isinstance(inner, dict) else None
    return None if left is None else {**data, path[0]: left}


def _pruned(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without empty tables: a header that lost its last key says the same as
    none.
    """
    kept = {
        name: _pruned(value) if isinstance(value, dict) else value for name, value in data.items()
    }
    return {name: value for name, value in kept.items() if value != {}}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}") from error
