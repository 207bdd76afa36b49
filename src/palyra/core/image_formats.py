"""Image formats, recognized by an image's first bytes. The rule: an image is what its content says,
never what somebody calls it.
"""

from collections.abc import Iterator
from struct import unpack_from

from msgspec import Struct

# Frames of a JPEG that carry its size; the gaps are tables.
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Shape(Struct, frozen=True):
    media_type: str
    width: int
    height: int


def shape(data: bytes) -> Shape | None:
    """PNG, JPEG, GIF or WebP with its size in pixels, or None for anything else."""
    try:
        found = next(_shapes(data), None)
    except (IndexError, ValueError):
        return None
    return found if found is not None and found.width > 0 and found.height > 0 else None


def _shapes(data: bytes) -> Iterator[Shape]:
    if len(data) < 26:
        return
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        yield Shape("image/png", *unpack_from(">II", data, 16))
    elif data[:6] in (b"GIF87a", b"GIF89a"):
        yield Shape("image/gif", *unpack_from("<HH", data, 6))
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        yield from _webp(data)
    elif data.startswith(b"\xff\xd8\xff"):
        yield from _jpeg(data)


def _webp(data: bytes) -> Iterator[Shape]:
    match data[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
            yield Shape("image/webp", width, height)
        case b"VP8L" if data[20] == 0x2F:
            bits = int.from_bytes(data[21:25], "little")
            yield Shape("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = unpack_from("<HH", data, 26)
            yield Shape("image/webp", width & 0x3FFF, height & 0x3FFF)


def _jpeg(data: bytes) -> Iterator[Shape]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_SIZES:
            height, width = unpack_from(">HH", data, at + 5)
            yield Shape("image/jpeg", width, height)
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + int(unpack_from(">H", data, at + 2)[0])
