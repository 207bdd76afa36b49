"""Seals of rows and files that give rights: a MAC by a key that does not lie beside them."""

import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

_encode = msgspec.msgpack.Encoder().encode
# The position and the hash of the entry that made the row; 0 and nothing in one from before rows
# said so.
_SEAL = ("entry", "entry_hash", "mac")


class Right(NamedTuple):
    """A table whose rows give rights. `key` names a row; `fields` are what its seal covers, beside
    the entry that made the row. `told_as` is how entries name it, if not by its key.
    """

    table: str
    key: tuple[str, ...]
    fields: tuple[str, ...]
    told_as: tuple[str, ...] = ()

    @property
    def columns(self) -> str:
        """Columns that a query selects, so that `RowSeals.holds` can check them."""
        return ", ".join((*self.fields, *_SEAL))

    @property
    def width(self) -> int:
        """Return how many columns that are."""
        return len(self.fields) + len(_SEAL)


class RowSeals:
    """Makes and checks seals with one key, and remembers what was refused.

    `adopts` is true for the first process that has the key: files from before there was one are
    sealed as they are.
    """

    def __init__(self, key: bytes, *, adopts: bool = False) -> None:
        self._key = key
        self.adopts = adopts
        # By table or kind of file, and the key or name; read by who watches over the daemon, on
        # another thread.
        self.refused: dict[tuple[str, str], None] = {}

    def mac(
        self, right: Right, values: Sequence[Any], entry: int = 0, digest: bytes = b""
    ) -> bytes:
        made = (entry, digest) if entry else ()
        return hmac.digest(self._key, _encode((right.table, *values, *made)), "sha256")

    def holds(self, right: Right, row: Sequence[Any]) -> bool:
        """Say if a row, selected by the right's columns, was written by the daemon."""
        *values, entry, digest, mac = row
        if isinstance(mac, bytes) and hmac.compare_digest(
            self.mac(right, values, entry, digest), mac
        ):
            return True
        self.refuse(right, row)
        return False

    def refuse(self, right: Right, row: Sequence[Any]) -> None:
        """Remember that a row is not honoured."""
        named = (row[right.fields.index(name)] for name in right.key)
        self.refused[right.table, " ".join(map(_text, named))] = None

    def file_mac(self, kind: str, name: str, content: bytes) -> str:
        """Return the seal of a file that gives a right, without the field that holds the seal."""
        return hmac.digest(self._key, _encode((kind, name, content)), "sha256").hex()

    def file_holds(self, kind: str, name: str, content: bytes, mac: str) -> bool:
        """Say if a file was written by the daemon."""
        if hmac.compare_digest(self.file_mac(kind, name, content).encode(), mac.encode()):
            return True
        self.refused[kind, name] = None
        return False


def _text(value: Any) -> str:
    return value.hex()[:16] if isinstance(value, bytes) else str(value)
