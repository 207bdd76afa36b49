"""What can be done to a journal as a whole, wherever it lies: verify it, copy it, leave nothing on
disk of what was deleted, look how large it is.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from palyra.store import log_keys, sqlite_files
from palyra.store.verify import VerifyReport
from palyra.store.verify_rows import WrongRow

Progress = Callable[[int], None]


def nobody(entries: int) -> None:
    """Tell nobody how far it has got."""


class Upkeep(Protocol):
    """Upkeep of one journal. `path` names its segments and what is told to people; each method
    may take long and belongs on a thread.
    """

    @property
    def path(self) -> Path: ...

    @property
    def place(self) -> str:
        """Say where the journal lies, without a password."""
        ...

    @property
    def is_file(self) -> bool: ...

    def inspect(self, progress: Progress = nobody) -> VerifyReport:
        """Verify all of it, twice if need be."""
        ...

    def wrong_rows(self, progress: Progress = nobody) -> list[WrongRow]: ...

    def page_problems(self) -> list[str]:
        """Return what the database itself finds wrong, a few lines."""
        ...

    def missing_guards(self) -> list[str]:
        """Return the append-only triggers that someone dropped."""
        ...

    def backup(self, target: Path) -> VerifyReport:
        """Copy it into a file, consistently, and verify the copy."""
        ...

    def keep_evidence(self, target: Path) -> None:
        """Copy it into a file as it is, whatever is wrong with it."""
        ...

    def schema(self) -> int: ...

    def scrub(self) -> None:
        """Leave nothing of what was deleted where the database keeps its rows."""
        ...

    def size(self) -> int: ...


class FileUpkeep:
    """Upkeep of a journal that is a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def is_file(self) -> bool:
        return True

    def inspect(self, progress: Progress = nobody) -> VerifyReport:
        return sqlite_files.inspect(self.path, progress, trust=log_keys.trust(self.path))

    def wrong_rows(self, progress: Progress = nobody) -> list[WrongRow]:
        return sqlite_files.inspect_rows(self.path, progress)

    def page_problems(self) -> list[str]:
        return sqlite_files.page_problems(self.path)

    def missing_guards(self) -> list[str]:
        return sqlite_files.missing_guards(self.path)

    def backup(self, target: Path) -> VerifyReport:
        return sqlite_files.backup(self.path, target)

    def keep_evidence(self, target: Path) -> None:
        sqlite_files.keep_evidence(self.path, target)

    def schema(self) -> int:
        return sqlite_files.schema(self.path)

    def scrub(self) -> None:
        sqlite_files.fold_log(self.path)

    def size(self) -> int:
        total = 0
        for suffix in ("", "-wal"):
            with suppress(OSError):
                total += os.stat(f"{self.path}{suffix}").st_size
        return total
