"""Written by scripts/clients.py from the route table: types of the verbs about backups."""

from msgspec import Struct

__all__ = ["BackupStatus", "CheckedBackup", "HomeBackupList", "MadeBackup", "StoredBackup"]


class MadeBackup(Struct, frozen=True, kw_only=True):
    """A backup that was made. `removed` are older ones that made room for it."""

    name: str
    target: str
    bytes: int
    entries: int
    encrypted: bool
    keys: str
    made_ms: int
    removed: tuple[str, ...] = ()


class CheckedBackup(Struct, frozen=True, kw_only=True):
    """A backup that was restored into a scratch home and verified. `problem` is empty if it can be
    relied on.
    """

    name: str
    ok: bool
    entries: int = 0
    schema: int = 0
    version: str = ""
    files: int = 0
    encrypted: bool = False
    keys: bool = False
    checked_ms: int = 0
    problem: str = ""


class BackupStatus(Struct, frozen=True, kw_only=True):
    """Outcome of the last backup and the last drill. `problem` is why the last try failed, after
    `failures` failed tries in a row.
    """

    last: MadeBackup | None = None
    problem: str = ""
    failed_ms: int = 0
    failures: int = 0
    drill: CheckedBackup | None = None


class StoredBackup(Struct, frozen=True, kw_only=True):
    """A backup at its target."""

    name: str
    bytes: int
    made_ms: int


class HomeBackupList(Struct, frozen=True, kw_only=True):
    """`problem`: why the target cannot be listed now."""

    every: str
    keep: int
    drill: str
    target: str
    encrypted: bool
    status: BackupStatus
    backups: list[StoredBackup]
    problem: str = ""
