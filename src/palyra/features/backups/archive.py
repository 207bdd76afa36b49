"""A backup as one file: a copy of a home, packed, and encrypted where there is a passphrase.

The first line names the format, the second says in JSON how the rest is encrypted. The rest is a
gzipped tar whose first member, `contents.json`, has the digest of every other. Encrypted, it comes
in pieces, each sealed with AES-256-GCM and bound to the first lines, to its number and to whether
it is the last: none can be left out, moved or taken from elsewhere. The key comes from the
passphrase by scrypt.
"""

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import msgspec
from msgspec import Struct

import palyra
from palyra.core.errors import InvalidInput
from palyra.features.backups.home_copy import CopyReport, is_secret
from palyra.features.backups.model import BackupContents
from palyra.features.vault.keys import Sealing, Unopened
from palyra.system.private_files import make_private

FORMAT = b"palyra-backup-1\n"
_CONTENTS = "contents.json"
_PIECE = 1 << 20
_LENGTH = 4
_MOST_HEADER = 4_096
_COST = 15
_MOST_CONTENTS = 64 << 20


class ArchiveHeader(Struct, frozen=True):
    """Encryption parameters of an archive: `cipher` is `none` or `aes-256-gcm`; `salt` and `cost`
    derive the key from the passphrase.
    """

    cipher: str
    salt: str = ""
    cost: int = 0


def pack(copy: Path, report: CopyReport, target: Path, made_ms: int, passphrase: str) -> None:
    """Write a copy of a home into a new archive. Without a passphrase what is secret stays out."""
    files = [(name, path) for name, path in sorted(_all(copy)) if passphrase or not is_secret(name)]
    contents = BackupContents(
        made_ms=made_ms,
        version=palyra.__version__,
        schema=report.schema,
        entries=report.entries,
        keys=bool(passphrase),
        files={name: _digest(path) for name, path in files},
    )
    salt = os.urandom(16)
    header = (
        ArchiveHeader("aes-256-gcm", salt.hex(), _COST) if passphrase else ArchiveHeader("none")
    )
    with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        head = FORMAT + msgspec.json.encode(header) + b"\n"
        file.write(head)
        sealer = (
            _SealedWriter(file, Sealing(_key(passphrase, header)), head) if passphrase else None
        )
        out = cast("IO[bytes]", sealer or file)
        with (
            gzip.GzipFile("", "wb", 1, out, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add(tar, _CONTENTS, io.BytesIO(msgspec.json.encode(contents)))
            for name, path in files:
                with path.open("rb") as body:
                    _add(tar, name, body, mode=path.stat().st_mode & 0o700)
        if sealer is not None:
            sealer.finish()
        file.flush()
        os.fsync(file.fileno())


def unpack(archive: Path, folder: Path, passphrase: str = "") -> BackupContents:
    """Unpack an archive into a new folder. Raise InvalidInput if it is not whole, not what it was,
    or closed to this passphrase.
    """
    make_private(folder)
    try:
        with (
            archive.open("rb") as file,
            gzip.GzipFile(fileobj=_body(file, archive, passphrase)) as packed,
            tarfile.open(fileobj=packed, mode="r|") as tar,
        ):
            contents = _unpack(tar, folder, archive)
            while packed.read(_PIECE):
                pass  # To the end, where the sum of everything stands.
            return contents
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidInput(f"{archive.name} is damaged or not whole: {error}") from error


def is_encrypted(archive: Path) -> bool:
    with archive.open("rb") as file:
        return _header(file, archive)[1].cipher != "none"


def _unpack(tar: tarfile.TarFile, folder: Path, archive: Path) -> BackupContents:
    contents: BackupContents | None = None
    left: dict[str, str] = {}
    for member in tar:
        body = tar.extractfile(member) if member.isfile() else None
        if body is None:
            raise InvalidInput(f"{archive.name} has something in it that is no file: {member.name}")
        if contents is None:
            if member.name != _CONTENTS or member.size > _MOST_CONTENTS:
                raise InvalidInput(f"{archive.name} does not begin with its contents")
            contents = _decoded(body.read(), archive)
            left = dict(contents.files)
            continue
        # Only what the contents name, so no path leads out of the folder.
        wanted = left.pop(member.name, None)
        place = (folder / member.name).resolve()
        if wanted is None or not place.is_relative_to(folder.resolve()):
            raise InvalidInput(f"{archive.name} has a file that its contents do not name")
        make_private(place.parent)
        if _write(place, body, member.mode & 0o700) != wanted:
            raise InvalidInput(f"{archive.name}: {member.name} is not what was packed")
    if contents is None or left:
        raise InvalidInput(f"{archive.name} is not whole: {len(left)} files are missing")
    return contents


def _decoded(body: bytes, archive: Path) -> BackupContents:
    try:
        return msgspec.json.decode(body, type=BackupContents)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidInput(f"{archive.name} has no readable contents: {error}") from error


def _write(place: Path, body: IO[bytes], mode: int) -> str:
    found = hashlib.sha256()
    with open(place, "xb", opener=lambda path, flags: os.open(path, flags, 0o600 | mode)) as file:
        while piece := body.read(_PIECE):
            found.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return found.hexdigest()


def _all(copy: Path) -> Iterator[tuple[str, Path]]:
    for at, _, names in os.walk(copy):
        for name in names:
            path = Path(at) / name
            yield path.relative_to(copy).as_posix(), path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add(tar: tarfile.TarFile, name: str, body: IO[bytes], mode: int = 0o600) -> None:
    member = tarfile.TarInfo(name)
    member.size = body.seek(0, os.SEEK_END)
    member.mode = mode
    body.seek(0)
    tar.addfile(member, body)


def _header(file: IO[bytes], archive: Path) -> tuple[bytes, ArchiveHeader]:
    first, second = file.readline(_MOST_HEADER), file.readline(_MOST_HEADER)
    if first.startswith(b"SQLite format 3"):
        raise InvalidInput(
            f"{archive.name} is a copy of the journal alone: use `palyra journal restore`"
        )
    if first != FORMAT:
        raise InvalidInput(f"{archive.name} is no backup of Palyra", path=str(archive))
    try:
        return first + second, msgspec.json.decode(second, type=ArchiveHeader)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidInput(f"{archive.name} is damaged: its header cannot be read") from error


def _body(file: IO[bytes], archive: Path, passphrase: str) -> "IO[bytes] | io.BufferedReader":
    head, header = _header(file, archive)
    if header.cipher == "none":
        return file
    if not passphrase:
        raise InvalidInput(
            f"{archive.name} is encrypted: set backups.passphrase, or name where the passphrase is"
            " with --passphrase"
        )
    # A cost from outside must not make us work for ever.
    if header.cipher != "aes-256-gcm" or not 10 <= header.cost <= 20:
        raise InvalidInput(f"{archive.name} is encrypted in a way that this version does not know")
    opener = _SealedReader(file, Sealing(_key(passphrase, header)), head, archive)
    return io.BufferedReader(opener, _PIECE)


def _key(passphrase: str, header: ArchiveHeader) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    kdf = Scrypt(salt=bytes.fromhex(header.salt), length=32, n=1 << header.cost, r=8, p=1)
    return kdf.derive(passphrase.encode())


class _SealedWriter:
    """Writer that seals what is written, piece by piece."""

    def __init__(self, file: IO[bytes], sealing: Sealing, head: bytes) -> None:
        self._file = file
        self._sealing = sealing
        self._head = head
        self._waiting = bytearray()
        self._number = 0

    def write(self, data: bytes) -> int:
        self._waiting += data
        # One piece is held back: only the end tells which is the last.
        while len(self._waiting) > _PIECE:
            self._seal(bytes(self._waiting[:_PIECE]), last=False)
            del self._waiting[:_PIECE]
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self._seal(bytes(self._waiting), last=True)

    def _seal(self, piece: bytes, *, last: bool) -> None:
        sealed = self._sealing.seal(piece, _bound(self._head, self._number, last=last))
        self._file.write(len(sealed).to_bytes(_LENGTH) + sealed)
        self._number += 1


class _SealedReader(io.RawIOBase):
    """Reader that opens pieces in their order, to the last."""

    def __init__(self, file: IO[bytes], sealing: Sealing, head: bytes, archive: Path) -> None:
        self._file = file
        self._sealing = sealing
        self._head = head
        self._archive = archive
        self._number = 0
        self._open = b""
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        while not self._open and not self._over:
            self._open = self._next()
        given, self._open = self._open[: len(buffer)], self._open[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)

    def _next(self) -> bytes:
        length = int.from_bytes(self._file.read(_LENGTH))
        sealed = self._file.read(length) if 0 < length <= 2 * _PIECE else b""
        number, self._number = self._number, self._number + 1
        for last in (False, True):
            try:
                piece = self._sealing.open(sealed, _bound(self._head, number, last=last))
            except Unopened:
                continue
            self._over = last
            return piece
        why = "the passphrase is wrong, or it is damaged" if number == 0 else "it is not whole"
        raise InvalidInput(f"{self._archive.name} cannot be opened: {why}")


def _bound(head: bytes, number: int, *, last: bool) -> bytes:
    return head + number.to_bytes(8) + (b"\x01" if last else b"\x00")
