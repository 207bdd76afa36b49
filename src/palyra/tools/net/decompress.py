"""Bodies as they were before they were compressed, never more than a limit of them, however small
they came in.
"""

import zlib

from palyra.core.errors import InvalidInput

# What we ask for and understand. Brotli and zstd are not in it: a body in them is refused, not
# guessed at.
ACCEPTED = "gzip, deflate"
_MOST_MEMBERS = 64


class Plain:
    """Passes a body through until `most` bytes have come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False

    def feed(self, data: bytes) -> bool:
        """Takes more of the body; false when nothing more is wanted."""
        room = self._most - self._size
        if len(data) > room:
            self.cut = True
            data = data[:room]
        self._parts.append(data)
        self._size += len(data)
        return not self.cut

    def finish(self) -> bytes:
        return b"".join(self._parts)


class Inflated(Plain):
    """Decompresses gzip and deflate piece by piece, so that a bomb costs no more than the limit."""

    def __init__(self, most: int, wbits: int) -> None:
        super().__init__(most)
        self._wbits = wbits
        self._inflater = zlib.decompressobj(wbits)
        self._members = 1

    def feed(self, data: bytes) -> bool:
        while data:
            if self._inflater.eof:
                # gzip files may be several in a row; what follows a deflate stream is padding.
                self._members += 1
                if self._wbits < 16 or self._members > _MOST_MEMBERS:
                    return True
                self._inflater = zlib.decompressobj(self._wbits)
            try:
                out = self._inflater.decompress(data, self._most - self._size + 1)
            except zlib.error:
                if self._members > 1:
                    return True  # Browsers overlook what follows a complete file, and so do we.
                raise InvalidInput("the body is not compressed as its header says") from None
            if not super().feed(out):
                return False
            data = self._inflater.unconsumed_tail or self._inflater.unused_data
        return True


class Deflated(Inflated):
    """`deflate` means zlib by the standard and raw deflate by custom; the first byte tells
    which.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most, zlib.MAX_WBITS)
        self._begun = False

    def feed(self, data: bytes) -> bool:
        if data and not self._begun:
            self._begun = True
            if data[0] & 0x0F != 8:
                self._wbits = -zlib.MAX_WBITS
                self._inflater = zlib.decompressobj(self._wbits)
        return super().feed(data)


def decoder(encoding: str, most: int) -> Plain:
    """What reads a body with this Content-Encoding."""
    match encoding.strip().lower():
        case "" | "identity":
            return Plain(most)
        case "gzip" | "x-gzip":
            return Inflated(most, 16 + zlib.MAX_WBITS)
        case "deflate":
            return Deflated(most)
        case _:
            raise InvalidInput(f"the body is encoded as {encoding[:40]!r}, which was not asked for")
