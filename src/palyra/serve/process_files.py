"""The files by which a running daemon is known: its lock, its address, the local owner's token. All
of them 0600.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.api.auth import LOCAL, Access
from palyra.core.errors import Conflict, Forbidden, PalyraError
from palyra.core.ids import OWNER
from palyra.serve import config, restart

_LOCK = "daemon.lock"
_ADDRESS = "daemon.json"
_TOKEN = "owner.token"
_JOURNAL = "journal.db"
_LOGS = "logs"
_LOOK_S = 0.05


class DaemonFile(Struct, frozen=True, omit_defaults=True):
    """Content of daemon.json. `certificate`: the file with the one certificate that this daemon
    shows, if it shows one.

    `grpc`: the address of that door, if it is open.
    """

    pid: int
    url: str
    started_ms: int
    version: str
    certificate: str = ""
    grpc: str = ""


def check_home(home: Path) -> None:
    """Raise Forbidden for a home that somebody else owns or may change: they could write this
    daemon's rights and history.
    """
    try:
        found = home.stat()
    except FileNotFoundError:
        return  # It is made, for its owner alone.
    if found.st_uid != os.geteuid():
        raise Forbidden(
            f"{home} belongs to another user (number {found.st_uid}): run palyra as that user,"
            f" choose another folder with PALYRA_HOME, or take it over with chown -R {os.geteuid()}"
            f" {home}",
            home=str(home),
        )
    if found.st_mode & 0o022:
        raise Forbidden(
            f"{home} can be changed by other users of this machine: run chmod 700 {home}",
            home=str(home),
        )


@contextlib.contextmanager
def locked(
    home: Path, *, patience_s: float = 0.0, say: Callable[[str], None] = lambda line: None
) -> Iterator[None]:
    """One daemon per home folder. The kernel lets go of the lock with the process, however that
    ends.

    One that is just ending has taken its address away and may hold the lock for a while: so long it
    is waited for.
    """
    descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience_s
        taken = _take(descriptor)
        if not taken and patience_s and not (home / _ADDRESS).exists():
            say("another daemon of this home is just ending: waiting for it")
        while not taken and time.monotonic() < deadline and not (home / _ADDRESS).exists():
            time.sleep(_LOOK_S)
            taken = _take(descriptor)
        if not taken:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise Conflict(
                f"a daemon runs on {home} already (process {pid or 'unknown'}): use it, or end it"
                " with `palyra stop --daemon`",
                pid=int(pid) if pid.isdigit() else 0,
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(restart.service_pid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def first_start(home: Path) -> Iterator[Callable[[], None]]:
    """Remove what a first start has made if it fails before it calls what this gives: half a
    journal looks like a damaged one.

    The lock stays, since another process may wait for it, and the logs, which say why it failed.
    """
    if (home / _JOURNAL).exists():
        yield lambda: None
        return
    before, done = set(home.rglob("*")), []
    try:
        yield lambda: done.append(True)
    except BaseException:
        if not done:
            _remove_all_but(home, before)
        raise


def _remove_all_but(home: Path, kept: set[Path]) -> None:
    for path in sorted(set(home.rglob("*")) - kept, reverse=True):
        stays = path.name == _LOCK or path.relative_to(home).parts[0] == _LOGS
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            elif not stays:
                path.unlink()


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def announced(home: Path, running: DaemonFile) -> Iterator[None]:
    """daemon.json says where the daemon is for as long as it is there."""
    say_where(home, running)
    try:
        yield
    finally:
        (home / _ADDRESS).unlink(missing_ok=True)


def say_where(home: Path, running: DaemonFile) -> None:
    config.write_private(home / _ADDRESS, msgspec.json.encode(running))


async def ensure_owner_token(home: Path, access: Access) -> str:
    """The local command line's token: made at the first start, and again whenever it is no longer
    good. Its id.
    """
    path = home / _TOKEN
    with contextlib.suppress(OSError, PalyraError, UnicodeDecodeError):
        return access.identify(path.read_text("ascii").strip(), LOCAL).token_id
    secret, token = await access.mint(OWNER, "command line", "owner", principal=OWNER)
    config.write_private(path, secret.encode() + b"\n")
    return token.token_id
