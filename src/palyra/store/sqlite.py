"""SQLite as the journal's database: connection settings, savepoints, and what its errors mean to a
person.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from palyra.core import errors
from palyra.core.errors import PalyraError, Unavailable
from palyra.store import migrations
from palyra.store.dialect import Connection, Row
from palyra.store.lease import LeaderLease
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.write_buffer import AppendTarget, StoreSilence


class NoText(apsw.CorruptError, UnicodeError):
    """A text in the file is none. SQLite does not look at texts, so only who reads it finds
    that.
    """


class SqliteConnection:
    """A connection of the SQLite dialect."""

    lost = False

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw
        self._execute = raw.execute
        self._position = -1
        self._saved_position = 0
        self._saved = False
        # Version of the file as the last transaction of `begin` has left it, if it was committed.
        self._version = -1
        self._writing = False

    def all(self, sql: str, params: dict[str, Any] | None = None) -> list[Row]:
        try:
            return self._execute(sql, params or None).fetchall()
        except UnicodeDecodeError as error:
            raise NoText(f"a text in it is not UTF-8: {error.reason}") from error

    def changes(self) -> int:
        return self.raw.total_changes()

    def has_table(self, name: str) -> bool:
        return bool(
            self.all(
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name}
            )
        )

    def has_column(self, table: str, name: str) -> bool:
        return bool(
            self.all(
                "SELECT 1 FROM pragma_table_info(:table) WHERE name = :name",
                {"table": table, "name": name},
            )
        )

    def many(self, sql: str, rows: Sequence[dict[str, Any]]) -> None:
        self.raw.executemany(sql, rows)

    def insert(self, into: AppendTarget, rows: Sequence[tuple[Any, ...]]) -> None:
        for begin, count in _portions(len(rows)):
            self._execute(
                _insert_of(into, count), tuple(chain.from_iterable(rows[begin : begin + count]))
            )

    def next_positions(self, count: int) -> int:
        first = self._position + 1
        self._position += count
        return first

    def begin_read(self) -> None:
        self._execute("BEGIN")

    def end_read(self) -> None:
        if self.raw.in_transaction:
            self._execute("COMMIT")

    def begin(self) -> bool:
        self._execute("BEGIN IMMEDIATE")
        known, self._version, self._writing = self._version, -1, True
        # Looked at under the write lock: a command-line tool may have appended while the daemon was
        # idle. Then the file has another version than this connection left behind.
        if self.raw.data_version() == known:
            return False
        last: int = self.all("SELECT coalesce(max(position), 0) FROM entries")[0][0]
        moved = last != self._position
        self._position = last
        return moved

    def commit(self) -> None:
        self._execute("COMMIT")
        # The version that this connection has made: another one's is only seen by the next `begin`.
        self._version = self.raw.data_version() if self._writing else -1
        self._writing = False

    def rollback(self) -> None:
        self._writing = False
        if self.raw.in_transaction:
            self._execute("ROLLBACK")

    def prove(self, number: int) -> None:
        # Nobody else uses it. Writing a row as it is would be left out.
        self._execute(f"PRAGMA user_version = {number % (1 << 31)}")

    def begin_step(self) -> None:
        self._saved_position = self._position
        self._saved = False

    def savepoint(self) -> None:
        self._execute("SAVEPOINT step")
        self._saved = True

    def end_step(self) -> None:
        if self._saved:
            self._execute("RELEASE step")

    def undo_step(self) -> None:
        if self._saved:
            self._execute("ROLLBACK TO step")
        self._position = self._saved_position

    def close(self) -> None:
        self.raw.close(True)


# Rows go in portions of these sizes, so that few different statements are ever prepared.
_PORTIONS = (64, 32, 16, 8, 4, 3, 2, 1)


def _portions(count: int) -> Iterator[tuple[int, int]]:
    """(where it begins, how many) of each portion."""
    begin = 0
    for size in _PORTIONS:
        while count - begin >= size:
            yield begin, size
            begin += size


@lru_cache
def _insert_of(into: AppendTarget, count: int) -> str:
    row = f"({', '.join('?' * len(into.columns))})"
    return (
        f"INSERT INTO {into.table} ({', '.join(into.columns)}) VALUES {', '.join([row] * count)}"
        f" {into.conflict}"
    )


def ready_to_restore(journal: Path) -> Path:
    """Return where a backup lies that is to take the journal's place."""
    return journal.with_name(journal.name + ".restore")


def finish_restore(journal: Path) -> None:
    """Put a backup that is ready in the journal's place. The old log must go first: it would be
    applied to the new file.
    """
    ready = ready_to_restore(journal)
    if not ready.exists():
        return
    for suffix in ("-wal", "-shm"):
        journal.with_name(journal.name + suffix).unlink(missing_ok=True)
    sync_folder(journal.parent)
    os.replace(ready, journal)
    sync_folder(journal.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Sqlite:
    """The dialect. `vfs` exists so that tests can put a failing disk underneath."""

    silence = StoreSilence("the disk", "check it with dmesg and df")

    # Nobody else writes a file that a daemon has open.
    lease: LeaderLease | None = None

    def __init__(self, path: Path, *, vfs: str | None = None) -> None:
        self.path = path
        self._vfs = vfs
        self._migrated = False

    def open_writer(self) -> Connection:
        finish_restore(self.path)
        # Nobody else may read the journal: the file is made with its mode, not changed afterwards.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = SqliteConnection(self._connect(apsw.SQLITE_OPEN_READWRITE))
        # Only of effect when the file is new: pages that become free can then be given back later,
        # a few at a time.
        connection.all("PRAGMA auto_vacuum=INCREMENTAL")
        connection.all("PRAGMA journal_mode=WAL")
        connection.all("PRAGMA synchronous=FULL")
        connection.all("PRAGMA wal_autocheckpoint=4000")
        connection.all("PRAGMA cache_size=-16000")
        # What is deleted is overwritten: a purged memory or a removed secret is not left in a free
        # page.
        connection.all("PRAGMA secure_delete=ON")
        if not self._migrated:
            migrations.apply(connection, MIGRATIONS)
            self._migrated = True
        return connection

    def open_reader(self) -> Connection:
        connection = SqliteConnection(self._connect(apsw.SQLITE_OPEN_READONLY))
        connection.all("PRAGMA query_only=ON")
        connection.all("PRAGMA cache_size=-4000")
        return connection

    def _connect(self, flags: int) -> apsw.Connection:
        raw = apsw.Connection(str(self.path), flags=flags, vfs=self._vfs, statementcachesize=200)
        raw.set_busy_timeout(5_000)
        # A plan that may depend on what is bound is made anew for every call, which costs more than
        # most calls do.
        raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        raw.execute("PRAGMA trusted_schema=OFF; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY")
        return raw

    def stop_waiting(self) -> None:
        """Nothing here waits for a file to come back."""

    def translate(self, error: BaseException) -> PalyraError | None:
        if not isinstance(error, apsw.Error) or isinstance(
            error, apsw.ConstraintError | apsw.SQLError | apsw.BindingsError
        ):
            return None
        where = str(self.path)
        if isinstance(error, apsw.FullError) or "ENOSPC" in str(error):
            return Unavailable(errors.full(where), path=where)
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return Unavailable(
                f"the journal {where} is damaged, or it is another kind of file ({error}): keep the"
                " file, run `palyra journal verify` to see what is readable, and `palyra journal"
                " restore BACKUP` to go back to a backup",
                path=where,
                damaged=True,
            )
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return Unavailable(
                f"another process holds the journal {where}: stop it and try again", path=where
            )
        if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
            return Unavailable(
                f"the journal {where} cannot be opened for writing: check the folder's permissions"
                f" ({error})",
                path=where,
            )
        return Unavailable(errors.failed(where, error), path=where)


class ScratchSqlite(Sqlite):
    """A journal that nobody misses: it need not survive a power cut."""

    def open_writer(self) -> Connection:
        connection = super().open_writer()
        connection.all("PRAGMA synchronous=OFF")
        return connection
