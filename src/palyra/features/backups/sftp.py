"""Backups on another machine, by the system's `sftp`: its keys, its known hosts and its settings
are the user's own.
"""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.features.backups.home_copy import PARTIAL
from palyra.features.backups.model import (
    BackupSettings,
    StoredBackup,
    is_name,
    made_ms_of,
    missing,
)

_SECONDS = 3_600.0
_CONNECT_S = 30
# A line of `ls -l`: rights, links, owner, group, size, then the date and the name.
_LINE = re.compile(r"-\S+\s+\S+\s+\S+\s+\S+\s+(\d+)\s.*?([^\s/]+)\s*", re.ASCII)
_SAFE = re.compile(r"[A-Za-z0-9._@%+=:,/~-]+", re.ASCII)


class SftpTarget:
    """A folder on another machine. Whoever runs the daemon must be able to log in there without
    being asked anything.
    """

    def __init__(self, host: str, port: int, folder: str, identity: str = "") -> None:
        self.name = f"sftp://{host}{f':{port}' if port else ''}/{folder.lstrip('/')}"
        self._host = host
        self._port = port
        self._folder = folder.rstrip("/") or "/"
        self._identity = identity

    @classmethod
    def of(cls, settings: BackupSettings) -> "SftpTarget":
        address = urlsplit(settings.target)
        user = f"{unquote(address.username)}@" if address.username else ""
        # As in `sftp://host/~/folder`: below the home of who logs in.
        folder = unquote(address.path).removeprefix("/~/") or "."
        good = address.hostname and not address.password and not folder.startswith("-")
        host = f"{user}{address.hostname}"
        if not good or host.startswith("-") or not _SAFE.fullmatch(f"{host}{folder}"):
            raise ConfigInvalid(
                f"{settings.target[:100]!r} cannot be used: write sftp://USER@HOST/FOLDER, without"
                " a password and with letters, digits and ._@%+=:,~- only"
            )
        return cls(host, address.port or 0, folder, settings.identity)

    def listing(self) -> list[StoredBackup]:
        found = []
        for line in self._batch(f"ls -l {self._folder}").splitlines():
            at = _LINE.fullmatch(line)
            if at and is_name(at[2]):
                found.append(StoredBackup(at[2], int(at[1]), made_ms_of(at[2])))
        return found

    def put(self, archive: Path, name: str) -> None:
        there = f"{self._folder}/{name}"
        self._batch(f'put "{archive}" {there}{PARTIAL}', f"rename {there}{PARTIAL} {there}")

    def get(self, name: str, place: Path) -> None:
        if not any(each.name == name for each in self.listing()):
            raise missing(name, self.name)
        self._batch(f'get {self._folder}/{name} "{place}"')

    def remove(self, name: str) -> None:
        self._batch(f"rm {self._folder}/{name}")

    def tidy(self, prefix: str) -> None:
        # A line that begins with a dash may fail: there is mostly nothing to remove.
        self._batch(f"-rm {self._folder}/{prefix}*{PARTIAL}")

    def _batch(self, *lines: str) -> str:
        command = ["sftp", "-b", "-", "-oBatchMode=yes", f"-oConnectTimeout={_CONNECT_S}"]
        command += [f"-oPort={self._port}"] if self._port else []
        command += ["-i", self._identity] if self._identity else []
        try:
            done = subprocess.run(
                [*command, "--", self._host],
                input="".join(f"{line}\n" for line in lines),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Unavailable(
                "backups over SFTP need the program sftp: install the OpenSSH client"
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self.name} cannot be reached: {error}") from error
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"sftp ended with {done.returncode}"
            raise Unavailable(f"{self.name}: {said[:300]}")
        return done.stdout
