"""The files of one skill, in memory and checked, before any of them touches the disk.

The rule: names are relative, plain and unmistakable on every file system, and all sizes are limited
while reading, so an archive or a folder cannot put a byte anywhere but below the folder that is
made for it.

Who made a skill: an Ed25519 signature over the digest of all its files, and the keys an operator
trusts.

The rule: a signature says who, never what a skill may do; only a key from the operator's own list
lifts the quarantine.
"""

import base64
import binascii
import os
import re
import stat
import struct
import tomllib
import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded
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
    """Names, of which no two are one on a file system that ignores case or composes characters."""

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


_CONTEXT = b"palyra skill signature v1\0"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Signature(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of skill.sig. `key` and `signature` are base64 of 32 and 64 bytes."""

    key: str
    signature: str


def public_key(private_key: bytes) -> str:
    """The public half, as it stands in skill.sig and in publishers.toml."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _text(Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw())


def make_key(file: Path) -> str:
    """Write a new private key, in base64, to a file that only its owner can read; gives the public
    half.
    """
    key = os.urandom(32)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(
            f"{file} is there already: name another file, keys are not replaced"
        ) from None
    with os.fdopen(descriptor, "w") as opened:
        opened.write(_text(key) + "\n")
    return public_key(key)


def read_key(file: Path) -> bytes:
    try:
        return _bytes(file.read_text().strip(), 32)
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no key {str(file)!r}: `palyra skills keygen` makes one"
        ) from None
    except (ValueError, OSError):
        raise InvalidInput(f"{str(file)!r} is not a key that `palyra skills keygen` made") from None


def sign(folder: Path, private_key: bytes) -> Signature:
    """Sign the skill in a folder with a raw Ed25519 key of 32 bytes; writes skill.sig beside
    SKILL.md.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not folder.is_dir():
        raise InvalidInput(
            f"{str(folder)!r} is not a folder: unpack the skill, sign it, pack it again"
        )
    signed = Ed25519PrivateKey.from_private_bytes(private_key).sign(_message(read(folder).digest))
    made = Signature(public_key(private_key), _text(signed))
    (folder / SIGNATURE).write_bytes(msgspec.json.encode(made) + b"\n")
    return made


def signer(skill: Package) -> str | None:
    """The public key (base64) whose signature covers exactly these files; None for an unsigned
    skill. A wrong one is refused.
    """
    if not skill.signature:
        return None
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        told = msgspec.json.decode(skill.signature, type=Signature)
        key = _bytes(told.key, 32)
        Ed25519PublicKey.from_public_bytes(key).verify(
            _bytes(told.signature, 64), _message(skill.digest)
        )
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise InvalidInput("skill.sig cannot be read: remove it, or get the skill again") from None
    except InvalidSignature:
        raise InvalidInput(
            "the signature does not fit the files: they were changed after signing; get the skill"
            " again"
        ) from None
    return _text(key)


class Publishers:
    """The keys an operator trusts, by name, in a TOML file: `name = "base64 of the public key"`."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        try:
            return self._checked(tomllib.loads(self._file.read_text()))
        except FileNotFoundError:
            return {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{self._file.name}: {error}") from None

    def name_of(self, key: str | None) -> str:
        """The publisher with this key, or "" for none."""
        return (
            next((name for name, trusted in self.all().items() if trusted == key), "")
            if key
            else ""
        )

    def add(self, name: str, key: str) -> None:
        self._write({**self.all(), **self._checked({name: key})})

    def remove(self, name: str) -> bool:
        kept = self.all()
        found = kept.pop(name, None) is not None
        self._write(kept)
        return found

    def _write(self, keys: dict[str, str]) -> None:
        text = "".join(f'"{name}" = "{key}"\n' for name, key in sorted(keys.items()))
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._file.with_name(self._file.name + ".new")
        temporary.write_text(
            "# Publishers whose signed skills are trusted: name = public key (Ed25519, base64)\n"
            + text
        )
        temporary.replace(self._file)

    def _checked(self, table: dict[str, object]) -> dict[str, str]:
        for name, key in table.items():
            try:
                good = _NAME.fullmatch(name) and isinstance(key, str) and _bytes(key, 32)
            except ValueError:
                good = False
            if not good:
                raise InvalidInput(
                    f"{self._file.name}: {name[:64]!r} is not a name with an Ed25519 public key in"
                    " base64"
                )
        return {name: str(key) for name, key in table.items()}


def _message(digest: str) -> bytes:
    return _CONTEXT + bytes.fromhex(digest)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str, size: int) -> bytes:
    data = base64.b64decode(text, validate=True)
    # One spelling for one key, so that comparing texts is comparing keys.
    if len(data) != size or _text(data) != text:
        raise ValueError("wrong length or spelling")
    return data
