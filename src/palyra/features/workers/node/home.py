"""A worker's own folder: who it is, its key, what it was given, and a folder for each session that
it works for.

What belongs to the worker lies in `state`, for its user alone; no command that it runs gets in
there.
"""

import fcntl
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import msgspec
from msgspec import Struct

from palyra.api.listen_sockets import Pair, split
from palyra.core.errors import ConfigInvalid, Conflict, NotFound

_UNUSED_S = 30 * 86_400


class Identity(Struct, frozen=True, kw_only=True):
    """Identity of a worker, and where its daemon is. `instance` names this folder."""

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
    def certificate(self) -> Path:
        """Return the file with certificate and key: they are there together or not at all."""
        return self.state / "certificate.pem"

    @property
    def renewed(self) -> Path:
        """The next certificate with its key, until the daemon has taken it."""
        return self.state / "renewed.pem"

    @property
    def asked(self) -> Path:
        """The key for which a certificate was asked, and the request."""
        return self.state / "renewal.json"

    @property
    def authority(self) -> Path:
        return self.state / "authority.pem"

    def make(self) -> None:
        for folder in (
            self.folder,
            self.state,
            self.work,
            self.state / "calls",
            self.state / "contents",
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def identity(self) -> Identity:
        try:
            return msgspec.json.decode((self.state / "worker.json").read_bytes(), type=Identity)
        except FileNotFoundError:
            raise NotFound(
                f"{self.folder} is no worker yet: enrol it with `palyra worker enrol`"
            ) from None
        except msgspec.DecodeError:
            raise ConfigInvalid(
                f"{self.state / 'worker.json'} is damaged: enrol this worker again"
            ) from None

    def keep(self, identity: Identity) -> None:
        write(self.state / "worker.json", msgspec.json.encode(identity))

    def show(self, context: ssl.SSLContext, *, older: bool = False) -> None:
        """Have a connection show who we are."""
        path = self._shown(older=older)
        context.load_cert_chain(path, None if split(path) else self._key)

    def pair(self, *, older: bool = False) -> Pair:
        path = self._shown(older=older)
        return split(path) or Pair(path.read_bytes(), self._key.read_bytes())

    def settle(self, *, older: bool) -> None:
        """The daemon has taken what we showed: of two certificates the other is over."""
        if not self.renewed.exists():
            return
        if older:
            self.renewed.unlink()
        else:
            os.replace(self.renewed, self.certificate)
            self._key.unlink(missing_ok=True)
        _sync(self.state)

    def begin(self, authority: str, pair: Pair) -> None:
        """A new enrolment, in place of what was here."""
        for path in (self.renewed, self.asked):
            path.unlink(missing_ok=True)
        write(self.authority, authority.encode())
        write(self.certificate, pair.together)
        self._key.unlink(missing_ok=True)

    def _shown(self, *, older: bool) -> Path:
        return self.certificate if older or not self.renewed.exists() else self.renewed

    @property
    def _key(self) -> Path:
        """Return the key of a folder from before keys and certificates were kept together."""
        return self.state / "key.pem"

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
                raise Conflict(
                    f"a worker runs in {self.folder} already: stop it, or give this one another"
                    " --folder"
                ) from None
            yield


def write(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all, also after a power cut, and that nobody else can
    read.
    """
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
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
