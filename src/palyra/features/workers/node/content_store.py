"""Contents by their digest: what came from the daemon or is to go there. What is here already is
not sent again.
"""

import os
import secrets
from pathlib import Path

from palyra.features.workers.file_transfer import digest
from palyra.features.workers.protocol import MOST_FILE_BYTES, Piece, pieces

# Beyond this the ones that were not used for longest go.
_MOST_BYTES = 1 << 30
_MOST_ARRIVING = 64


class Contents:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arriving: dict[str, bytearray] = {}

    def has(self, known: str) -> bool:
        return (self._folder / known).exists()

    def get(self, known: str) -> bytes:
        path = self._folder / known
        os.utime(path)
        return path.read_bytes()

    def put(self, content: bytes) -> None:
        """Not synced: what a power cut destroys is asked for again, because its digest is looked
        at.
        """
        known = digest(content)
        # Several calls may make or get the same content at once.
        part = self._folder / f"{known}.{secrets.token_hex(4)}.part"
        try:
            part.write_bytes(content)
            part.replace(self._folder / known)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def receive(self, piece: Piece, size: int) -> bool:
        """Put a part where it belongs; whether the content is whole now. What does not fit into its
        `size` is passed over.
        """
        if piece.offset == 0:
            if len(self._arriving) >= _MOST_ARRIVING:
                self._arriving.clear()
            self._arriving[piece.digest] = bytearray()
        so_far = self._arriving.get(piece.digest)
        if (
            so_far is None
            or piece.offset != len(so_far)
            or len(so_far) + len(piece.data) > min(size, MOST_FILE_BYTES)
        ):
            return False
        so_far += piece.data
        if not piece.last:
            return False
        del self._arriving[piece.digest]
        content = bytes(so_far)
        if digest(content) != piece.digest:
            return False
        self.put(content)
        return True

    def told(self, known: str) -> list[Piece]:
        try:
            content = self.get(known)
        except FileNotFoundError:
            return [Piece(digest=known, gone=True)]
        return (
            pieces(known, content) if digest(content) == known else [Piece(digest=known, gone=True)]
        )

    def tidy(self) -> None:
        found = sorted(
            ((path.stat().st_mtime, path.stat().st_size, path) for path in self._folder.iterdir()),
            reverse=True,
        )
        total = 0
        for _, size, path in found:
            total += size
            if total > _MOST_BYTES or path.suffix == ".part":
                path.unlink(missing_ok=True)
