"""Archives, unpacked within limits that hold whatever their headers say."""

import stat
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import IO, TYPE_CHECKING

from palyra.core.errors import InvalidInput, LimitExceeded
from palyra.tools.paths import printable

if TYPE_CHECKING:
    import zipfile


MOST_FILES = 512


MOST_FILE_BYTES = 8 << 20


MOST_BYTES = 16 << 20


_MOST_LISTED = 20_000


# An honest text packs about 4:1, a table 20:1; a bomb packs 1000:1. Small files may pack as well as
# they like.
MOST_RATIO = 100


_RATIO_FROM = 256 << 10


CHUNK = 64 << 10


class ByteBudget:
    """Counts bytes as they come; the limit holds whatever a header says."""

    def __init__(self) -> None:
        self._total = 0

    def read(self, file: IO[bytes], path: str, packed: int | None = None) -> bytes:
        data = bytearray()
        while chunk := file.read(CHUNK):
            data += chunk
            self._total += len(chunk)
            if len(data) > MOST_FILE_BYTES or self._total > MOST_BYTES:
                raise LimitExceeded(
                    f"it unpacks to more than {MOST_FILE_BYTES >> 20} MiB in a file or"
                    f" {MOST_BYTES >> 20} MiB in all",
                    path=printable(path),
                )
            if packed is not None and len(data) > max(_RATIO_FROM, packed * MOST_RATIO):
                raise LimitExceeded(
                    f"{printable(path)!r} unpacks to more than {MOST_RATIO} times its size",
                    path=printable(path),
                )
        return bytes(data)


BROKEN = (
    zlib.error,
    EOFError,
    NotImplementedError,
    struct.error,
    ValueError,
    UnicodeError,
    OSError,
)


def chosen(data: bytes, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The files of any archive whose names are wanted, under the same limits. The others are not
    unpacked.
    """
    import zipfile

    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            files, budget = dict[str, bytes](), ByteBudget()
            for entry in archive.infolist()[:_MOST_LISTED]:
                if not wanted(entry.orig_filename):
                    continue
                if len(files) == MOST_FILES:
                    raise LimitExceeded(f"more than {MOST_FILES} files")
                check_kind(entry, entry.orig_filename)
                with archive.open(entry) as file:
                    size = entry.compress_size
                    files[entry.orig_filename] = budget.read(file, entry.orig_filename, size)
            return files
    except (zipfile.BadZipFile, RuntimeError, *BROKEN) as error:
        raise InvalidInput(
            f"the archive cannot be read: {str(error)[:200] or type(error).__name__}"
        ) from None


def check_kind(entry: "zipfile.ZipInfo", name: str) -> None:
    import zipfile

    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.flag_bits & 0x1:
        raise InvalidInput(f"{printable(name)!r} is encrypted", path=printable(name))
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InvalidInput(
            f"{printable(name)!r} is a link or a device; a skill holds files only",
            path=printable(name),
        )
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(
            f"{printable(name)!r} is packed in a way that is not read here", path=printable(name)
        )
