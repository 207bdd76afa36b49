"""Numbered migrations, each applied once and locked by its checksum: a schema is never changed
behind a journal's back.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from palyra.core.errors import ConfigInvalid
from palyra.store.dialect import Connection


class Migration(NamedTuple):
    number: int
    name: str
    statements: tuple[str, ...]

    @property
    def checksum(self) -> str:
        return sha256("\n;\n".join(self.statements).encode()).hexdigest()


def newest(connection: Connection) -> int:
    """Return the number of the last migration that a journal has, 0 if it has none."""
    if not connection.has_table("migrations"):
        return 0
    return int(connection.all("SELECT coalesce(max(number), 0) FROM migrations")[0][0])


def apply(
    connection: Connection,
    known: tuple[Migration, ...],
    translated: Callable[[str], str] = lambda statement: statement,
) -> list[int]:
    """Bring the schema up to date in one transaction; returns the numbers that were applied now.
    `translated` gives a statement as the database takes it.
    """
    connection.all(
        "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
        " checksum TEXT NOT NULL)"
    )
    applied = {
        int(number): str(checksum)
        for number, checksum in connection.all("SELECT number, checksum FROM migrations")
    }
    newest = max((migration.number for migration in known), default=0)
    if applied and max(applied) > newest:
        raise ConfigInvalid(
            f"the journal was written by a newer palyra (schema {max(applied)}, this one knows"
            f" {newest}): upgrade palyra"
        )
    for migration in known:
        if migration.number in applied and applied[migration.number] != migration.checksum:
            raise ConfigInvalid(
                f"migration {migration.number} ({migration.name}) differs from the one this journal"
                " was made with"
            )
    todo = [migration for migration in known if migration.number not in applied]
    if todo:
        # Not Connection.begin: that reads tables which the first migration is about to make.
        connection.all("BEGIN")
        for migration in todo:
            for statement in migration.statements:
                connection.all(translated(statement))
            record(connection, migration)
        connection.all("COMMIT")
    return [migration.number for migration in todo]


def record(connection: Connection, migration: Migration) -> None:
    """Note that a journal has a step of the schema."""
    connection.all(
        "INSERT INTO migrations (number, name, checksum) VALUES (:number, :name, :checksum)",
        {"number": migration.number, "name": migration.name, "checksum": migration.checksum},
    )
