"""The files of one skill, in memory and checked, before any of them touches the disk.

The rule: names are relative, plain and unmistakable on every file system, and all sizes are limited
while reading, so an archive or a folder cannot put a byte anywhere but below the folder that is
made for it.
"""

import os
import re
import stat
import struct
import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from palyra.core.errors import InvalidInput, LimitExceeded
from palyra.tools.archives import BROKEN, MOST_FILES, ByteBudget, check_kind
from palyra.tools.paths import printable

if TYPE_CHECKING:
    import zipfile

SIGNATURE = "skill.sig"
MOST_ARCHIVE = 16 << 20
_LONGEST = 240
_DEEPEST = 8
_DEVICES = frozenset(
    {
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        "clock$",
        *(f"{kind}{digit}" for kind in ("com", "lpt") for digit in "0123456789¹²³"),
    }
)
_FORBIDDEN = re.compile(r'[\\:*?"<>|\x00-\x1f\x7f]')


class Package(Struct, frozen=True):
    """Contents by path, with the signature file apart because it cannot cover itself."""

    files: dict[str, bytes]
    signature: bytes = b""

    @property
    def digest(self) -> str:
        return digest({path: sha256(data).hexdigest() for path, data in self.files.items()})


def digest(files: Mapping[str, str]) -> str:
    """One digest of all paths and contents. Lengths are part of it, so no two sets of files spell
    the same bytes.
    """
    whole = sha256(b"palyra skill v1\n")
    for path in sorted(files):
        name = path.encode()
        whole.update(struct.pack(">I", len(name)) + name + bytes.fromhex(files[path]))
    return whole.hexdigest()


def read(source: Path) -> Package:
    """A skill from a folder or from a zip file."""
    name = repr(printable(str(source)))
    try:
        if source.is_dir():
            return _package(_from_folder(source))
        # Not waiting: a pipe has no other end.
        with os.fdopen(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InvalidInput(f"{name} is neither a folder nor a zip file")
            if found.st_size > MOST_ARCHIVE:
                raise LimitExceeded(f"the archive is larger than {MOST_ARCHIVE >> 20} MiB")
            return _package(from_zip(file.read(MOST_ARCHIVE + 1)))
    except FileNotFoundError:
        raise InvalidInput(f"there is no folder or zip file {name}") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"{name} cannot be read: {(why or type(error).__name__).lower()}"
        ) from None


def of_archive(data: bytes) -> Package:
    """A skill from the bytes of a zip file."""
    return _package(from_zip(data))


def _package(files: dict[str, bytes]) -> Package:
    if "SKILL.md" not in files:
        raise InvalidInput("there is no SKILL.md in it")
    return Package(
        {path: data for path, data in files.items() if path != SIGNATURE}, files.get(SIGNATURE, b"")
    )


def check_path(path: str) -> str:
    """A path that means the same file on every system, or a refusal."""

    def refuse(why: str) -> InvalidInput:
        return InvalidInput(
            f"{printable(path)[:120]!r} is refused: {why}", path=printable(path)[:120]
        )

    if len(path.encode("utf-8", "surrogatepass")) > _LONGEST:
        raise refuse("the name is too long")
    if path.startswith("/") or _FORBIDDEN.search(path) or not path.isprintable():
        raise refuse("names are relative, with plain characters and '/' between folders")
    parts = path.split("/")
    if len(parts) > _DEEPEST:
        raise refuse("too many folders inside each other")
    for part in parts:
        if part in ("", ".", "..") or part != part.strip() or part.endswith("."):
            raise refuse("a part of it is empty, dots, or has spaces or a dot at the end")
        if part.partition(".")[0].casefold() in _DEVICES:
            raise refuse("it is the name of a device on some systems")
    return path


class _Names:
    """Refuses two names that are one on a file system that ignores case or composes characters."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: dict[str, str] = {}

    def add(self, path: str) -> None:
        check_path(path)
        key = _folded(path)
        if key in self._files or key in self._folders:
            raise InvalidInput(
                f"{printable(path)!r} is there twice, or differs only in case", path=printable(path)
            )
        self._files.add(key)
        if len(self._files) > MOST_FILES:
            raise LimitExceeded(f"more than {MOST_FILES} files")
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if (
                _folded(folder) in self._files
                or self._folders.setdefault(_folded(folder), folder) != folder
            ):
                raise InvalidInput(
                    f"{printable(folder)!r} is there twice, or differs only in case",
                    path=printable(folder),
                )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _from_folder(source: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    names, budget = _Names(), ByteBudget()
    for above, folders, found in os.walk(source, followlinks=False):
        folders.sort()
        for name in (*folders, *sorted(found)):
            where = Path(above, name)
            path = where.relative_to(source).as_posix()
            if where.is_symlink():
                raise InvalidInput(
                    f"{printable(path)!r} is a link; a skill holds files only", path=printable(path)
                )
        folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
        for name in sorted(found):
            path = Path(above, name).relative_to(source).as_posix()
            names.add(path)
            files[path] = _read_file(Path(above, name), path, budget)
    return files


def _read_file(where: Path, path: str, budget: ByteBudget) -> bytes:
    descriptor = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput(f"{printable(path)!r} is not a regular file", path=printable(path))
        return budget.read(file, path)


def from_zip(data: bytes) -> dict[str, bytes]:
    """The files of an archive. One folder around everything is taken off."""
    import zipfile

    if len(data) > MOST_ARCHIVE:
        raise LimitExceeded(f"the archive is larger than {MOST_ARCHIVE >> 20} MiB")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return _unwrapped(_unpack(archive))
    except (zipfile.BadZipFile, *BROKEN) as error:
        raise InvalidInput(
            f"the zip file cannot be read: {str(error)[:200] or type(error).__name__}"
        ) from None
    except RuntimeError as error:
        # What zipfile raises for an encrypted entry whose flag was hidden.
        raise InvalidInput(f"the zip file cannot be read: {str(error)[:200]}") from None


def _unpack(archive: "zipfile.ZipFile") -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES * 2:
        raise LimitExceeded(f"more than {MOST_FILES} files")
    names, budget, files = _Names(), ByteBudget(), {}
    for entry in entries:
        # zipfile cuts a name at a NUL and turns this system's separators; the name as it was stored
        # is what counts.
        name = entry.orig_filename
        check_kind(entry, name)
        if name.endswith("/"):
            check_path(name[:-1])
            continue
        names.add(name)
        with archive.open(entry) as file:
            files[name] = budget.read(file, name, entry.compress_size)
    return files


def _unwrapped(files: dict[str, bytes]) -> dict[str, bytes]:
    tops = {path.partition("/")[0] for path in files}
    if "SKILL.md" in files or len(tops) != 1:
        return files
    top = tops.pop() + "/"
    return {path.removeprefix(top): data for path, data in files.items() if path.startswith(top)}


def to_zip(files: Mapping[str, bytes]) -> bytes:
    """An archive of these files, without times or owners, so that the same files give the same
    bytes.
    """
    import zipfile

    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, files[path])
    return made.getvalue()
