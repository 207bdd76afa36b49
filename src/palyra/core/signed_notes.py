"""Signed notes and checkpoints, as C2SP signed-note, tlog-checkpoint and tlog-cosignature lay them
out, with Ed25519.

A note is text with signature lines below it. A checkpoint is a note whose text names a log, the
number of its entries and the root of its Merkle tree.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from struct import Struct as Packer
from typing import TYPE_CHECKING

from msgspec import Struct

from palyra.core.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# How a key signs: the note's text itself, or its text below a line with a time.
ED25519, COSIGNATURE = 1, 4
_NAME = re.compile(r"[^\s+]+")
_CHECKPOINT = re.compile(
    r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]{0,18})\n(?P<root>[^\n]+)\n"
    r"(?P<extensions>([^\n]+\n)*)"
)
_LINE = "\u2014 "
_TIME = Packer(">Q")
_SIZES = {ED25519: 64, COSIGNATURE: 72}
_MOST_BYTES = 1 << 20
_MOST_SIGNATURES = 100


class NoteKey(Struct, frozen=True):
    """A public key under a name. The text form is the one of Go's `sumdb/note`."""

    name: str
    public: bytes
    algorithm: int = ED25519

    @property
    def key_id(self) -> bytes:
        """The four bytes in front of a signature that say which key made it."""
        named = f"{self.name}\n".encode() + bytes([self.algorithm]) + self.public
        return sha256(named).digest()[:4]

    def encode(self) -> str:
        packed = b64encode(bytes([self.algorithm]) + self.public).decode()
        return f"{self.name}+{self.key_id.hex()}+{packed}"

    @classmethod
    def decode(cls, text: str) -> "NoteKey":
        name, _, rest = text.strip().partition("+")
        key_id, _, packed = rest.partition("+")
        body = _bytes(packed)
        if not _NAME.fullmatch(name) or len(body) != 33 or body[0] not in _SIZES:
            raise InvalidInput("this is not a note key: it has the form NAME+ID+BASE64")
        key = cls(name, body[1:], body[0])
        if key.key_id.hex() != key_id:
            raise InvalidInput(f"the key of {name} has id {key.key_id.hex()}, not {key_id[:16]}")
        return key

    def verifies(self, text: str, signature: bytes) -> bool:
        """Say if a signature, without the key id in front of it, is this key's for a text."""
        if len(signature) != _SIZES[self.algorithm]:
            return False
        message = text.encode()
        if self.algorithm == COSIGNATURE:
            message = _timed(message, _TIME.unpack(signature[:8])[0])
        # Late: loading it costs memory that a daemon without anything to sign can spare.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature[-64:], message)
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey(Struct, frozen=True, dict=True):
    """A private key under a name. `seed` is the private part."""

    name: str
    seed: bytes
    algorithm: int = ED25519

    @cached_property
    def _private(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @cached_property
    def verifier(self) -> NoteKey:
        return NoteKey(self.name, self._private.public_key().public_bytes_raw(), self.algorithm)

    def encode(self) -> str:
        packed = b64encode(bytes([self.algorithm]) + self.seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self.verifier.key_id.hex()}+{packed}"

    @classmethod
    def decode(cls, text: str) -> "SigningKey":
        prefix, _, rest = text.strip().partition("PRIVATE+KEY+")
        name, _, rest = rest.partition("+")
        key_id, _, packed = rest.partition("+")
        body = _bytes(packed)
        if prefix or not _NAME.fullmatch(name) or len(body) != 33 or body[0] not in _SIZES:
            raise InvalidInput("this is not a private note key")
        key = cls(name, body[1:], body[0])
        if key.verifier.key_id.hex() != key_id:
            raise InvalidInput(f"the private key of {name} does not fit its id {key_id[:16]}")
        return key

    def line(self, text: str, time_s: int = 0) -> str:
        """Return the signature line for a text. A cosignature says when it was made."""
        if self.algorithm == COSIGNATURE:
            signed = self._private.sign(_timed(text.encode(), time_s))
            signature = _TIME.pack(time_s) + signed
        else:
            signature = self._private.sign(text.encode())
        return f"{_LINE}{self.name} {b64encode(self.verifier.key_id + signature).decode()}\n"


class NoteSignature(Struct, frozen=True):
    name: str
    key_id: bytes
    signature: bytes

    @property
    def time_s(self) -> int:
        """Time of a cosignature, 0 for a plain signature."""
        return int(_TIME.unpack(self.signature[:8])[0]) if len(self.signature) == 72 else 0


class SignedNote(Struct, frozen=True):
    """A note as it was read: nothing about its signatures is known yet."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def signed_by(self, key: NoteKey) -> NoteSignature | None:
        """Return the signature of a key if there is one and it is good."""
        for each in self.signatures:
            if each.name == key.name and each.key_id == key.key_id:
                return each if key.verifies(self.text, each.signature) else None
        return None


def name_is_valid(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and len(name) <= 200


def sign(text: str, keys: Sequence[SigningKey]) -> str:
    return text + "\n" + "".join(key.line(text) for key in keys)


def parse(note: str) -> SignedNote:
    """Read a note. Raise InvalidInput if it is none."""
    head, gap, below = note.rpartition("\n\n")
    lines = below.split("\n")
    if not gap or lines[-1] or len(note) > _MOST_BYTES or len(lines) > _MOST_SIGNATURES:
        raise InvalidInput("this is not a signed note: a text, an empty line, and signatures")
    return SignedNote(head + "\n", tuple(_signature(line) for line in lines[:-1]))


def _signature(line: str) -> NoteSignature:
    name, gap, packed = line.removeprefix(_LINE).partition(" ")
    body = _bytes(packed)
    if not line.startswith(_LINE) or not gap or not _NAME.fullmatch(name) or len(body) < 5:
        raise InvalidInput(f"this is not a signature line of a note: {line[:80]!r}")
    return NoteSignature(name, body[:4], body[4:])


class LogCheckpoint(Struct, frozen=True):
    """The text of a checkpoint: which log, how many entries, and the root over them."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        lines = (self.origin, str(self.size), b64encode(self.root).decode(), *self.extensions)
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> "LogCheckpoint":
        """Read a checkpoint's text. Raise InvalidInput if it is none."""
        found = _CHECKPOINT.fullmatch(text)
        root = _bytes(found["root"]) if found else b""
        if found is None or len(root) != 32:
            raise InvalidInput("this is not a checkpoint: an origin, a size and a root")
        extensions = tuple(found["extensions"].splitlines())
        return cls(found["origin"], int(found["size"]), root, extensions)


def _timed(text: bytes, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n".encode() + text


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return b""
