"""Dialects of the databases behind the journal, and what is asked of a connection to one."""

from collections.abc import Sequence
from typing import Any, Protocol

from palyra.core.errors import PalyraError
from palyra.store.lease import LeaderLease
from palyra.store.write_buffer import AppendTarget, StoreSilence

Row = tuple[Any, ...]


class Connection(Protocol):
    """One connection of a dialect. SQL is written once, with `:name` parameters."""

    @property
    def lost(self) -> bool:
        """Return whether the database has closed the connection while nothing was asked of it."""
        ...

    def all(self, sql: str, params: dict[str, Any] | None = None) -> list[Row]: ...

    def changes(self) -> int: ...  # How many rows it has changed so far.

    def has_table(self, name: str) -> bool: ...

    def has_column(self, table: str, name: str) -> bool: ...

    def many(self, sql: str, rows: Sequence[dict[str, Any]]) -> None: ...

    def insert(self, into: AppendTarget, rows: Sequence[tuple[Any, ...]]) -> None:
        """Put rows into a table, many to a statement."""
        ...

    def next_positions(self, count: int) -> int:
        """Reserve `count` global positions and return the first."""
        ...

    def begin_read(self) -> None: ...

    def end_read(self) -> None: ...

    def begin(self) -> bool:
        """Begin to write. Whether somebody else may have written since the last commit of this
        connection.
        """
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def prove(self, number: int) -> None:
        """Change something that means nothing, so that committing it shows that the disk takes
        it.
        """
        ...

    def begin_step(self) -> None:
        """From here on, `undo_step` takes back the positions, and what was done behind
        `savepoint`.
        """
        ...

    def savepoint(self) -> None: ...

    def end_step(self) -> None: ...

    def undo_step(self) -> None: ...

    def close(self) -> None: ...


class Dialect(Protocol):
    """Differences between the databases behind the journal."""

    silence: StoreSilence
    # Of a node that leads those that share the journal; None: nobody else has it.
    lease: LeaderLease | None

    def open_writer(self) -> Connection: ...

    def open_reader(self) -> Connection: ...

    def stop_waiting(self) -> None:
        """Give up what waits for the database to come back: the daemon ends."""
        ...

    def translate(self, error: BaseException) -> PalyraError | None:
        """Our error for a failure of the store itself, or None if the error is not the store's."""
        ...
