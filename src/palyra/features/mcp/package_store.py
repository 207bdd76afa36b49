"""Installed packages of MCP servers: each in a folder of its own, by name, version and digest.

The rules: a folder is there whole or not at all; what is started is, byte for byte, what a person
accepted; two servers with the same package share it.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, LimitExceeded, NotFound, Unavailable, trouble
from palyra.features.mcp import package_start
from palyra.features.mcp.package_start import PackageProgram, program_of
from palyra.features.mcp.packages import Ecosystem, PackagePart, PackagePin, package_of, pin_of
from palyra.features.mcp.settings import ServerConfig

PACKAGES = "packages"
MOST_FILES = 100_000
MOST_BYTES = 2 << 30
MANIFEST = "palyra-package.json"
_STAGING = ".new-"
_CHUNK = 1 << 20


class PackageManifest(Struct, frozen=True, kw_only=True):
    """Description of what was installed, a file among the others and part of the digest. `python`
    is the version that it was installed for.
    """

    ecosystem: Ecosystem
    name: str
    version: str
    packages: tuple[PackagePart, ...]
    python: str = ""


class InstalledPackage(Struct, frozen=True):
    folder: Path
    pin: PackagePin
    manifest: PackageManifest


class PackageStore:
    """Store of packages in a folder of the home. Every method may block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def staging(self) -> Iterator[tuple[Path, int]]:
        """Give an empty folder to install into, and the descriptor that says it is in use. Gone
        afterwards, unless it was kept.

        Processes that work in it get the descriptor: for as long as one of them lives, even after
        we were killed, nobody removes the folder under it.
        """
        try:
            place, descriptor = self._fresh()
        except OSError as error:
            raise _told(error, self._folder) from error
        try:
            tree = place / "tree"
            tree.mkdir(mode=0o700)
            yield tree, descriptor
        except OSError as error:
            raise _told(error, self._folder) from error
        finally:
            os.close(descriptor)
            shutil.rmtree(place, ignore_errors=True)

    def keep(self, tree: Path, manifest: PackageManifest) -> InstalledPackage:
        """Move what was installed to where it stays."""
        (tree / MANIFEST).write_bytes(msgspec.json.encode(manifest))
        pin = PackagePin(manifest.ecosystem, manifest.name, manifest.version, _digest(tree))
        place = self._place(pin)
        if place.exists() and not self._holds(place, pin):
            # Somebody damaged it: this is what was accepted.
            shutil.rmtree(place)
        if not place.exists():
            try:
                os.rename(tree, place)
            except OSError as error:
                # Another one has installed the same just now.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        return InstalledPackage(place, pin, manifest)

    def find(self, pin: PackagePin) -> InstalledPackage:
        """Return the package as it was accepted. Raise NotFound, or Conflict if it is another."""
        place = self._place(pin)
        if not place.is_dir():
            raise NotFound(f"{pin.short} is not installed")
        if not self._holds(place, pin):
            raise Conflict(
                f"{pin.short} is not what was accepted: its files were changed since then"
            )
        manifest = msgspec.json.decode((place / MANIFEST).read_bytes(), type=PackageManifest)
        return InstalledPackage(place, pin, manifest)

    def remove(self, pin: PackagePin) -> None:
        shutil.rmtree(self._place(pin), ignore_errors=True)

    def _fresh(self) -> tuple[Path, int]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        turn = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A folder that nobody has locked yet must not look like one that was left behind.
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._sweep()
            place = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._folder))
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(turn)
        return place, descriptor

    def _place(self, pin: PackagePin) -> Path:
        name = re.sub(r"[^A-Za-z0-9]+", "-", pin.name).strip("-")
        return self._folder / f"{pin.ecosystem}-{name}-{pin.version}-{pin.digest[:16]}"

    def _holds(self, place: Path, pin: PackagePin) -> bool:
        try:
            return _digest(place) == pin.digest
        except (OSError, Conflict, LimitExceeded):
            return False

    def _sweep(self) -> None:
        """Remove what a killed installation has left behind."""
        for place in self._folder.glob(f"{_STAGING}*"):
            try:
                descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            except OSError:
                continue  # Somebody works in it.
            finally:
                os.close(descriptor)


def started_program(config: ServerConfig, store: PackageStore) -> PackageProgram:
    """Return what a server's settings start: its program, or that of its package."""
    argv = (config.command, *config.args)
    command = package_of(argv)
    if command is None:
        if config.package:
            raise Conflict(
                f"the settings of {config.name} name a package, but its command fetches none:"
                f" palyra config unset mcp.{config.name}.package"
            )
        return PackageProgram(argv, ())
    update = f"palyra mcp update {config.name}"
    if not config.package:
        raise NotFound(
            f"{os.path.basename(config.command)} would fetch {command.wanted[0]} at each start:"
            f" install it once, and accept what it is, with: {update}"
        )
    pin = pin_of(config.package)
    if pin.ecosystem != command.ecosystem or command.name not in ("", pin.name):
        raise Conflict(
            f"the command names {command.wanted[0]}, but {pin.name} was accepted: {update}"
        )
    try:
        installed = store.find(pin)
        program = program_of(installed.folder, pin.name, command)
    except (NotFound, Conflict) as error:
        raise type(error)(f"{error.message}; install it again with: {update}") from error
    return PackageProgram(program.argv, (str(installed.folder), *program.readable))


def _told(error: OSError, where: Path) -> Unavailable:
    return Unavailable(
        trouble(error, where) or f"{where} cannot be written: {(error.strerror or '').lower()}"
    )


def _digest(tree: Path) -> str:
    """Return the digest of every name, kind and content in a folder."""
    total = sha256()
    size = 0
    for count, (path, about) in enumerate(_files(tree)):
        size += about.st_size
        if count >= MOST_FILES or size > MOST_BYTES:
            raise LimitExceeded(
                f"the package has more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GiB"
            )
        name = os.path.relpath(path, tree)
        if stat.S_ISLNK(about.st_mode):
            kind, body = "link", _link(path, tree)
        else:
            kind, body = "program" if about.st_mode & 0o100 else "file", _content(path)
        total.update(msgspec.json.encode([name, kind, body]))
    return total.hexdigest()


def _files(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    folders = [str(tree)]
    while folders:
        here = folders.pop()
        for entry in sorted(os.scandir(here), key=lambda each: each.name):
            # Made anew at each start, from what this machine has.
            if here == str(tree) and entry.name in package_start.MADE_AT_START:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            about = entry.stat(follow_symlinks=False)
            if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
                raise Conflict(f"the package holds {entry.name!r}, which is neither file nor link")
            yield entry.path, about


def _link(path: str, tree: Path) -> str:
    root = os.path.realpath(tree)
    if not os.path.realpath(path).startswith(f"{root}/"):
        raise Conflict(f"the package holds a link to a place outside it: {os.path.basename(path)}")
    return os.readlink(path)


def _content(path: str) -> str:
    found = sha256()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        while data := file.read(_CHUNK):
            found.update(data)
    return found.hexdigest()
