"""Who made a skill: an Ed25519 signature over the digest of all its files, and the keys an operator
trusts.

The rule: a signature says who, never what a skill may do; only a key from the operator's own list
lifts the quarantine.
"""

import base64
import binascii
import os
import re
import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput
from palyra.features.skills import package

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
    signed = Ed25519PrivateKey.from_private_bytes(private_key).sign(
        _message(package.read(folder).digest)
    )
    made = Signature(public_key(private_key), _text(signed))
    (folder / package.SIGNATURE).write_bytes(msgspec.json.encode(made) + b"\n")
    return made


def signer(skill: package.Package) -> str | None:
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
