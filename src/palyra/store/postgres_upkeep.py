"""Upkeep of a journal that lies in PostgreSQL. Its copies are files, like those of every other
journal: they can be verified, restored and opened anywhere.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from palyra.core.errors import ChainBroken, Conflict
from palyra.store import log_keys, migrations, segments, sqlite_files, transfer
from palyra.store.database import Tx
from palyra.store.dialect import Connection
from palyra.store.log_keys import LogTrust
from palyra.store.postgres import Postgres, shown
from palyra.store.postgres_schema import GUARDS, UNFINISHED
from palyra.store.sqlite import Sqlite, sync_folder
from palyra.store.transfer import JournalTable, TableReport
from palyra.store.upkeep import Progress, nobody
from palyra.store.verify import VerifyReport, verify
from palyra.store.verify_rows import WrongRow, wrong_rows

# What purging removes rows from.
_PURGED = (
    "memory_items",
    "memory_postings",
    "memory_vectors",
    "memory_codes",
    "candidates",
    "secrets",
    "archived_said",
)


class ServerUpkeep:
    """Upkeep of a journal in a PostgreSQL server. `path` is where it would lie as a file: beside
    it are its segments and keys.
    """

    def __init__(self, address: str, path: Path) -> None:
        self.path = path
        self._dialect = Postgres(address)

    @property
    def place(self) -> str:
        return shown(self._dialect.address)

    @property
    def is_file(self) -> bool:
        return False

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            connection = self._dialect.open_reader()
            try:
                connection.begin_read()
                yield connection
            finally:
                connection.close()
        except psycopg.Error as error:
            raise self._dialect.translate(error) or error from error

    def inspect(self, progress: Progress = nobody) -> VerifyReport:
        trust = log_keys.trust(self.path)
        report = self._walk(progress, trust)
        return report if report.ok else self._walk(progress, trust)

    def _walk(self, progress: Progress, trust: LogTrust) -> VerifyReport:
        with self._reading() as connection:
            return verify(Tx(connection, 0), progress, segments.folder_of(self.path), trust)

    def wrong_rows(self, progress: Progress = nobody) -> list[WrongRow]:
        with self._reading() as connection:
            folder, keys = segments.folder_of(self.path), log_keys.folder_of(self.path)
            return wrong_rows(Tx(connection, 0), progress, folder, keys)

    def page_problems(self) -> list[str]:
        """Return nothing: a page that is damaged there is an error when it is read."""
        return []

    def missing_guards(self) -> list[str]:
        with self._reading() as connection:
            found = connection.all(
                "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
            )
        return sorted(GUARDS - {str(name) for (name,) in found})

    def backup(self, target: Path) -> VerifyReport:
        trust = log_keys.trust(self.path)
        with self._copied(target) as partial:
            report = sqlite_files.inspect(partial, trust=trust)
            if not report.ok:
                raise ChainBroken(
                    f"the journal does not verify, and neither does its copy: {report.bad}"
                )
        return report

    def keep_evidence(self, target: Path) -> None:
        with self._copied(target):
            pass

    @contextmanager
    def _copied(self, target: Path) -> Iterator[Path]:
        """A copy that gets its name once the block is done with it."""
        if target.exists():
            raise Conflict(f"{target} exists already: choose another name", path=str(target))
        partial = target.with_name(target.name + sqlite_files.PARTIAL)
        partial.unlink(missing_ok=True)
        try:
            into = Sqlite(partial).open_writer()
            try:
                with self._reading() as source:
                    transfer.copy(source, into)
                sqlite_files.carry_segments(into, self.path)
                into.all("PRAGMA journal_mode=DELETE")
            finally:
                into.close()
            yield partial
            os.rename(partial, target)
            sync_folder(target.parent)
        finally:
            for suffix in ("", "-wal", "-shm"):
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)

    def schema(self) -> int:
        with self._reading() as connection:
            return migrations.newest(connection)

    def scrub(self) -> None:
        """Have the server overwrite what rows have left. Its log and its own backups keep it for
        as long as they are kept.
        """
        connection = self._dialect.open_writer_beside()
        try:
            for table in _PURGED:
                connection.all(f"VACUUM {table}")
        except psycopg.Error as error:
            raise self._dialect.translate(error) or error from error
        finally:
            connection.close()

    def receive(self, source: Connection, progress: transfer.TableProgress) -> list[TableReport]:
        """Copy a journal into the database, which must be empty or have the beginning of the same
        copy. It counts as a journal once all of it is there.
        """
        dialect = Postgres(self._dialect.address, receives=True)
        try:
            connection = dialect.open_writer()
            try:
                reports = transfer.copy(source, connection, progress)
                for each in transfer.tables():
                    _count_on(connection, each)
                connection.all(f"DROP TABLE {UNFINISHED}")
            finally:
                connection.close()
        except psycopg.Error as error:
            raise dialect.translate(error) or error from error
        return reports

    def give(self, target: Path, progress: transfer.TableProgress) -> list[TableReport]:
        """Copy the journal into a file, which may have the beginning of the same copy."""
        into = Sqlite(target).open_writer()
        try:
            with self._reading() as source:
                return transfer.copy(source, into, progress)
        finally:
            into.close()

    def count(self) -> dict[str, int]:
        """Return how many rows each table has."""
        with self._reading() as connection:
            return transfer.count(connection)

    def size(self) -> int:
        with self._reading() as connection:
            found = connection.all("SELECT pg_database_size(current_database())")
        return int(found[0][0])


def _count_on(connection: Connection, table: JournalTable) -> None:
    """Have the server number the next rows of a table behind those that came with the copy."""
    for name in table.key[:1]:
        found = connection.all(
            "SELECT pg_get_serial_sequence(:table, :name)", {"table": table.name, "name": name}
        )
        if found[0][0] is not None:
            connection.all(
                f"SELECT setval('{found[0][0]}', greatest(max(\"{name}\"), 1)) FROM {table.name}"
            )
