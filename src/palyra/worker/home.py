"""A worker's own folder: who it is, its key, what it was given, and a folder for each session that it works for.

What belongs to the worker lies in `state`, for its user alone; no command that it runs gets in there.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import msgspec
from msgspec import Struct

from palyra.domain.errors import ConfigInvalid, Conflict, NotFound

_UNUSED_S = 30 * 86_400


class Identity(Struct, frozen=True, kw_only=True):
    """Which worker this is, and where its daemon is. `instance` names this folder."""

    name: str
    host: str
    port: int
    instance: str


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.work = folder / "work"

    @property
    def key(self) -> Path:
        return self.state / "key.pem"

    @property
    def certificate(self) -> Path:
        return self.state / "certificate.pem"

    @property
    def authority(self) -> Path:
        return self.state / "authority.pem"

    def make(self) -> None:
        for folder in (self.folder, self.state, self.work, self.state / "calls", self.state / "contents"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def identity(self) -> Identity:
        try:
            return msgspec.json.decode((self.state / "worker.json").read_bytes(), type=Identity)
        except FileNotFoundError:
            raise NotFound(f"{self.folder} is no worker yet: enrol it with `palyra worker enrol`") from None
        except msgspec.DecodeError:
            raise ConfigInvalid(f"{self.state / 'worker.json'} is damaged: enrol this worker anew") from None

    def keep(self, identity: Identity) -> None:
        write(self.state / "worker.json", msgspec.json.encode(identity))

    def session(self, session_id: str) -> str:
        """The folder of a session; it stays for the next call of the same one."""
        folder = self.work / session_id
        folder.mkdir(mode=0o700, exist_ok=True)
        os.utime(folder)
        return str(folder.resolve())

    def tidy(self) -> None:
        """Remove folders of sessions that nobody has worked in for a month."""
        old = time.time() - _UNUSED_S
        for folder in self.work.iterdir():
            if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mtime < old:
                rmtree(folder, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process for one folder."""
        with open(self.state / "lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Conflict(f"a worker runs in {self.folder} already: stop it, or give this one another --folder") from None
            yield


def write(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all, also after a power cut, and that nobody else can read."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(part, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
