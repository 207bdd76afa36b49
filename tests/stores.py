"""The databases that a journal of a test may lie in: SQLite, or PostgreSQL for those that run on
both, and for all of them with STORE=postgres.
"""

import os
from pathlib import Path

from palyra.store.dialect import Dialect
from palyra.store.sqlite import Sqlite
from palyra.store.upkeep import FileUpkeep, Upkeep

SQLITE, POSTGRES = "sqlite", "postgres"
chosen = os.environ.get("STORE", SQLITE)


def choose(store: str) -> None:
    global chosen
    chosen = store


def address(path: Path) -> str:
    """Return where the journal lies that is named by a path, for settings: empty for the file."""
    if chosen == SQLITE:
        return ""
    from tests.postgres_server import server

    return server().database(path.absolute())


def upkeep(journal: Path) -> Upkeep:
    """Return what can be done to the journal that is named by a path."""
    if chosen == SQLITE:
        return FileUpkeep(journal)
    from palyra.store.postgres_upkeep import ServerUpkeep

    return ServerUpkeep(address(journal), journal)


def environment(home: Path) -> dict[str, str]:
    """Return what tells a daemon where the journal of its home lies."""
    found = address(home / "journal.db")
    return {"PALYRA_JOURNAL__STORE": found} if found else {}


def dialect(path: Path, *, vfs: str | None = None) -> Dialect:
    if chosen == SQLITE:
        return Sqlite(path, vfs=vfs)
    from palyra.store.postgres import Postgres

    return Postgres(address(path))
