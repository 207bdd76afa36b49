"""View of the machine for a sandboxed program: its programs and libraries, read-only, and little
else.

A list of what is shown, never of what is hidden: what is not named here does not exist inside.

The /etc that a sandbox has, made once as a folder: one mount costs a start less than a file here
and a mount there.

A copy, so nothing that is not on the list can be reached through it; only folders with many files
are mounted into it. It is made again when something on the list changes; commands that run keep the
one they began with. The mourner removes it after the daemon.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence

from msgspec import Struct

HOME = "/home/agent"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UID = 1000

PROGRAMS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
)
# What programs need to start, to know the time and to check certificates. No keys, no accounts, no
# name servers.
FILES = (
    *(
        "ld.so.cache",
        "localtime",
        "timezone",
        "locale.alias",
        "locale.conf",
        "mime.types",
        "services",
        "protocols",
    ),
    *("os-release", "debian_version", "ssl/openssl.cnf", "pki/tls/cert.pem"),
)
FOLDERS = (
    *(
        "alternatives",
        "ssl/certs",
        "pki/tls/certs",
        "pki/ca-trust/extracted",
        "crypto-policies",
        "fonts",
    ),
    # Debian's Chromium does not start without its folder of flags.
    *("chromium", "chromium.d"),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk"),
)

STUBS = {
    "/etc/passwd": (
        f"agent:x:{UID}:{UID}:agent:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    ),
    "/etc/group": f"agent:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/resolv.conf": "",
}


def folders() -> list[str]:
    return [path for path in (f"/etc/{name}" for name in FOLDERS) if os.path.isdir(path)]


def programs(more: Sequence[str] = ()) -> list[str]:
    return [path for path in (*PROGRAMS, *more) if os.path.isdir(path)]


def environment(given: dict[str, str], proxy: str = "") -> dict[str, str]:
    """The whole environment of a sandboxed program."""
    env = {
        "PATH": PATH,
        "HOME": HOME,
        "USER": "agent",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
    }
    if proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            env[name] = env[name.upper()] = proxy
        env["no_proxy"] = env["NO_PROXY"] = ""
    return env | given


_LARGEST_FILE = 1 << 20
_PREFIX = "palyra-etc-"
_MANY = 64


class EtcFolder(Struct, frozen=True):
    """A folder to be /etc, and the machine's own folders that are mounted over empty ones in it."""

    folder: str
    mounted: tuple[str, ...]


class Etc:
    """`private` are folders that no tool can touch: it lies in the first that can be written, else
    among temporary files.
    """

    def __init__(self, private: Sequence[str] = ()) -> None:
        self._private = tuple(private)
        # Everything made so far is below it.
        self.root = ""
        self._made: EtcFolder | None = None
        self._stamps: object = None

    @property
    def current(self) -> EtcFolder | None:
        """Folder that was made last, if it is still what the machine has."""
        return self._made if self._stamps == _stamps() else None

    def make(self) -> EtcFolder:
        if not self.root:
            where = next(
                (path for path in self._private if os.access(path, os.W_OK | os.X_OK)), None
            )
            _sweep(where or tempfile.gettempdir())
            self.root = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=where)
        stamps = _stamps()
        folder = tempfile.mkdtemp(dir=self.root)
        for path, text in STUBS.items():
            _write(folder + path.removeprefix("/etc"), text.encode())
        for name in FILES:
            _copy(f"/etc/{name}", f"{folder}/{name}")
        many = [path for path in folders() if len(os.listdir(path)) > _MANY]
        for path in folders():
            into = folder + path.removeprefix("/etc")
            os.makedirs(into) if path in many else _copy_folder(path, into)
        os.chmod(folder, 0o755)
        self._made, self._stamps = EtcFolder(folder, tuple(many)), stamps
        return self._made


def _sweep(where: str) -> None:
    """Remove what was left by a daemon that died together with its mourner."""
    for name in os.listdir(where):
        owner = name.removeprefix(_PREFIX).split("-")[0]
        if name.startswith(_PREFIX) and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(os.path.join(where, name), ignore_errors=True)


def _stamps() -> list[tuple[int, int] | None]:
    return [_stamp(f"/etc/{name}") for name in (*FILES, *FOLDERS)]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _copy_folder(source: str, target: str) -> None:
    """Links stay links: where one leads out of what a sandbox has, it leads nowhere inside."""
    os.makedirs(target, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            into = os.path.join(target, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), into)
            elif entry.is_dir():
                _copy_folder(entry.path, into)
            elif entry.is_file():
                _copy(entry.path, into)


def _copy(source: str, target: str) -> None:
    # A file that went away or may not be read does not exist inside either.
    with contextlib.suppress(OSError):
        if os.path.isfile(source) and os.path.getsize(source) <= _LARGEST_FILE:
            with open(source, "rb") as file:
                _write(target, file.read())


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o444)
