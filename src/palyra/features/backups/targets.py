"""Backup targets: a folder, an S3-compatible store, or another machine over SFTP.

The rule: a backup has its name only once it is complete. An interrupted one has another name, and
the next backup removes it.
"""

import os
import shutil
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.features.backups.home_copy import PARTIAL, require_space
from palyra.features.backups.model import (
    BackupSettings,
    Secret,
    StoredBackup,
    is_name,
    made_ms_of,
    missing,
)
from palyra.store.sqlite import sync_folder


class BackupTarget(Protocol):
    """Target where backups lie. Everything blocks; what goes wrong is Unavailable."""

    name: str

    def listing(self) -> list[StoredBackup]:
        """Return the backups there, of every home."""
        ...

    def put(self, archive: Path, name: str) -> None: ...

    def get(self, name: str, place: Path) -> None: ...

    def remove(self, name: str) -> None: ...

    def tidy(self, prefix: str) -> None:
        """Remove what was cut short, of the home whose names begin so."""
        ...


class FolderTarget:
    """A folder on this machine, or one that is mounted."""

    def __init__(self, folder: Path, *, own: bool = False) -> None:
        self.name = str(folder)
        self._folder = folder
        # The home's own folder is made; another one that is missing is a disk that is not there.
        self._own = own

    def listing(self) -> list[StoredBackup]:
        try:
            found = [each for each in os.scandir(self._there()) if is_name(each.name)]
            return [
                StoredBackup(each.name, each.stat().st_size, made_ms_of(each.name))
                for each in found
                if each.is_file(follow_symlinks=False)
            ]
        except OSError as error:
            raise self._failed("read", error) from error

    def put(self, archive: Path, name: str) -> None:
        folder = self._there()
        require_space(folder, archive.stat().st_size, "a backup")
        partial = folder / f"{name}{PARTIAL}"
        try:
            partial.unlink(missing_ok=True)
            with archive.open("rb") as source, open(partial, "xb", opener=_private) as file:
                shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
            os.rename(partial, folder / name)
            sync_folder(folder)
        except OSError as error:
            raise self._failed("written to", error) from error
        finally:
            partial.unlink(missing_ok=True)

    def get(self, name: str, place: Path) -> None:
        try:
            shutil.copyfile(self._there() / name, place)
        except FileNotFoundError:
            raise missing(name, self.name) from None
        except OSError as error:
            raise self._failed("read", error) from error

    def remove(self, name: str) -> None:
        try:
            (self._there() / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("written to", error) from error

    def tidy(self, prefix: str) -> None:
        for each in self._there().glob(f"{prefix}*{PARTIAL}"):
            each.unlink(missing_ok=True)

    def _there(self) -> Path:
        if self._own:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not self._folder.is_dir():
            raise Unavailable(
                f"the folder {self._folder} for backups is not there: is its disk mounted?"
            )
        return self._folder

    def _failed(self, what: str, error: OSError) -> Unavailable:
        why = (error.strerror or str(error)).lower()
        return Unavailable(f"the folder {self._folder} for backups cannot be {what}: {why}")


def open_target(settings: BackupSettings, home: Path, secret: Secret) -> BackupTarget:
    """Return the target that the settings name. Raise ConfigInvalid if they name none."""
    wanted = settings.target
    if not wanted:
        return FolderTarget(home / "backups", own=True)
    if wanted.startswith("/"):
        return FolderTarget(Path(wanted))
    address = urlsplit(wanted)
    # Late: most daemons have no such target.
    if address.scheme == "s3":
        from palyra.features.backups.s3 import S3Target

        return S3Target.of(settings, secret)
    if address.scheme == "sftp":
        from palyra.features.backups.sftp import SftpTarget

        return SftpTarget.of(settings)
    raise ConfigInvalid(
        f"{wanted[:100]!r} is no target for backups: use a folder from the root, as /mnt/backup,"
        " s3://BUCKET/PREFIX or sftp://USER@HOST/FOLDER"
    )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
