"""Copying a journal from one database into another, table by table.

Every portion is committed with its rows, so a copy that was broken off goes on where it was. At the
end both sides are read once more and compared.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec import Struct

from palyra.core.errors import ChainBroken
from palyra.store import migrations
from palyra.store.dialect import Connection, Row
from palyra.store.sqlite import SqliteConnection
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.write_buffer import AppendTarget

TableProgress = Callable[[str, int], None]
_PORTION = 500
# What each database keeps for itself.
_OWN = frozenset({"migrations", "sqlite_sequence"})


class JournalTable(NamedTuple):
    """Table of the schema. Without a key its rows are copied in one piece."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.columns)

    @property
    def order(self) -> str:
        return ", ".join(f'"{name}"' for name in self.key or self.columns)


class TableReport(Struct, frozen=True):
    """Rows of a table, and the digest of all of them in their order."""

    table: str
    rows: int
    digest: str


def tables() -> list[JournalTable]:
    """Return the tables of a journal of this version."""
    template = SqliteConnection(apsw.Connection(":memory:"))
    try:
        migrations.apply(template, MIGRATIONS)
        found = []
        for (name,) in template.all(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        ):
            if name in _OWN:
                continue
            info = template.all(f"SELECT name, pk FROM pragma_table_info('{name}')")
            key = sorted((int(pk), str(column)) for column, pk in info if pk)
            found.append(
                JournalTable(
                    str(name),
                    tuple(str(column) for column, _ in info),
                    tuple(column for _, column in key),
                )
            )
        return found
    finally:
        template.close()


def copy(
    source: Connection,
    target: Connection,
    progress: TableProgress = lambda table, rows: None,
) -> list[TableReport]:
    """Copy what the target does not have yet, then compare. The source must be one that does not
    change, or be read in one transaction. Raise ChainBroken if they differ.
    """
    known = tables()
    for each in known:
        _copy_table(source, target, each, progress)
    reports = []
    for each in known:
        ours, theirs = summary(source, each), summary(target, each)
        if ours != theirs:
            raise ChainBroken(
                f"the copy of {each.name} differs: {ours.rows} rows there, {theirs.rows} here; the"
                " target is not used. Empty it and try again",
                table=each.name,
            )
        reports.append(ours)
    return reports


def count(connection: Connection) -> dict[str, int]:
    """Return how many rows each table has that has some."""
    found = {
        each.name: int(connection.all(f"SELECT count(*) FROM {each.name}")[0][0])
        for each in tables()
    }
    return {name: rows for name, rows in found.items() if rows}


def _copy_table(
    source: Connection,
    target: Connection,
    table: JournalTable,
    progress: TableProgress,
) -> None:
    into = AppendTarget(table.name, table.columns, "ON CONFLICT DO NOTHING")
    last = _last_key(target, table)
    if not table.key or (last is None and _born_with(target, table)):
        target.all("BEGIN")
        target.all(f"DELETE FROM {table.name}")
        target.all("COMMIT")
        last = None
    done = 0
    for portion in _portions(source, table, last):
        target.all("BEGIN")
        target.insert(into, portion)
        target.all("COMMIT")
        done += len(portion)
        progress(table.name, done)


def _born_with(target: Connection, table: JournalTable) -> bool:
    """Return whether a fresh journal has rows in a table: those of the source replace them."""
    return table.name == "learning_state"


def _last_key(target: Connection, table: JournalTable) -> Row | None:
    if not table.key or _born_with(target, table):
        return None
    keys = ", ".join(f'"{name}"' for name in table.key)
    downwards = ", ".join(f'"{name}" DESC' for name in table.key)
    found = target.all(f"SELECT {keys} FROM {table.name} ORDER BY {downwards} LIMIT 1")
    return found[0] if found else None


def _portions(
    connection: Connection, table: JournalTable, last: Row | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its key, those behind `last`."""
    if not table.key:
        rows = connection.all(f"SELECT {table.listed} FROM {table.name} ORDER BY {table.order}")
        if rows:
            yield rows
        return
    places = [table.columns.index(name) for name in table.key]
    compared = ", ".join(f":k{at}" for at in range(len(table.key)))
    while True:
        where, params = "", dict[str, Any](portion=_PORTION)
        if last is not None:
            where = f"WHERE ({table.order}) > ({compared})"
            params |= {f"k{at}": value for at, value in enumerate(last)}
        rows = connection.all(
            f"SELECT {table.listed} FROM {table.name} {where} ORDER BY {table.order}"
            " LIMIT :portion",
            params,
        )
        if rows:
            yield rows
        if len(rows) < _PORTION:
            return
        last = tuple(rows[-1][place] for place in places)


def summary(connection: Connection, table: JournalTable) -> TableReport:
    """Read a table once, in order."""
    digest, rows = sha256(), 0
    encode = msgspec.msgpack.Encoder().encode
    for portion in _portions(connection, table):
        for row in portion:
            digest.update(encode(row))
        rows += len(portion)
    return TableReport(table.name, rows, digest.hexdigest())
