"""The keys that a journal's checkpoints are signed with, in the `keys` folder beside it.

`journal.key` is the private key, or names where it lies in the keyring of the operating system;
`journal.pub` is every public key there ever was, the newest first, `journal.rotations` the notes by
which each key was replaced, signed by the old and the new one. `journal.checkpoint` is the largest
checkpoint that was ever signed: somebody who puts an older copy of the database in its place does
not reach it.
"""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

import msgspec
from msgspec import Struct

from palyra.core import signed_notes
from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.signed_notes import LogCheckpoint, NoteKey, SigningKey
from palyra.system.os_keyring import in_keyring, read_secret, write_secret
from palyra.system.private_files import write_private

_KEY, _PUBLIC, _MARK = "journal.key", "journal.pub", "journal.checkpoint"
_ROTATIONS, _SET_ASIDE = "journal.rotations", "journal.checkpoint.set-aside"
_WITNESSES, _ANCHORS = "journal.witnesses", "journal.anchors"
_ROTATION = "palyra key rotation 1"


class KeptNote(Struct, frozen=True):
    """An anchor that can be read: where it keeps its checkpoint, and the checkpoint when it was
    read.
    """

    name: str
    path: str
    note: str = ""


class LogTrust(Struct, frozen=True):
    """Trust that a journal is verified against: the daemon's public keys, newest first, the largest
    checkpoint that was signed, the witnesses by their keys, and what anchors keep.
    """

    keys: tuple[NoteKey, ...] = ()
    mark: str = ""
    witnesses: tuple[NoteKey, ...] = ()
    anchors: tuple[KeptNote, ...] = ()

    @property
    def of_a_copy(self) -> "LogTrust":
        """Trust for a copy of the journal: it may have fewer entries than were signed since."""
        return LogTrust(self.keys, "", self.witnesses)


def folder_of(journal: Path) -> Path:
    return journal.parent / "keys"


def trust(journal: Path) -> LogTrust:
    """Return what is known of a journal's keys. Nothing is made."""
    folder = folder_of(journal)
    return LogTrust(
        tuple(NoteKey.decode(line) for line in _lines(folder / _PUBLIC)),
        _text(folder / _MARK),
        tuple(NoteKey.decode(line) for line in _lines(folder / _WITNESSES)),
        tuple(_anchors(folder / _ANCHORS)),
    )


def remember_witnesses(journal: Path, keys: tuple[NoteKey, ...]) -> None:
    """Keep the keys of witnesses, so that a journal can be verified without its settings."""
    path = folder_of(journal) / _WITNESSES
    wanted = "".join(f"{key.encode()}\n" for key in keys)
    if wanted != _text(path):
        write_private(path, wanted.encode())


def remember_anchors(journal: Path, anchors: tuple[KeptNote, ...]) -> None:
    """Keep where anchors that can be read lie, so that a journal is held against them."""
    path = folder_of(journal) / _ANCHORS
    wanted = msgspec.json.encode(anchors).decode() if anchors else ""
    if wanted != _text(path):
        write_private(path, wanted.encode())


def begin_again(journal: Path, entries: int) -> None:
    """Start a log of its own if a state with fewer entries than were signed for is to take the
    journal's place.
    """
    folder = folder_of(journal)
    mark = _text(folder / _MARK)
    if mark and LogCheckpoint.parse(signed_notes.parse(mark).text).size > entries:
        LogKeys(folder).begin_again()


class LogKeys:
    """The keys of one journal, in the process that signs for it. `keyring`: the private one is kept
    in the keyring of the operating system, or no longer; None: where it is.
    """

    def __init__(self, folder: Path, origin: str = "", *, keyring: bool | None = None) -> None:
        self._folder = folder
        self._origin = origin
        self._keyring = keyring
        self._lock = Lock()
        self._signer: SigningKey | None = None

    @property
    def signer(self) -> SigningKey:
        """The key in use, made or read when it is first asked for: what reads keys takes memory."""
        with self._lock:
            if self._signer is None:
                self._signer = self._open(self._origin)
            return self._signer

    def _open(self, origin: str) -> SigningKey:
        path = self._folder / _KEY
        if not path.exists():
            name = origin or f"palyra.local/{secrets.token_hex(8)}"
            return self._make(name)
        try:
            signer = SigningKey.decode(read_secret(path))
        except (InvalidInput, UnicodeDecodeError) as error:
            raise ConfigInvalid(
                f"the key file {path} is damaged: restore it from a backup of the keys folder"
            ) from error
        if self._keyring is not None and self._keyring != in_keyring(path):
            self._write(signer)
        # A crash may have come between the two files.
        self._remember(signer.verifier)
        if origin and origin != signer.name:
            return self.rotate(origin)
        return signer

    def _make(self, name: str) -> SigningKey:
        if not signed_notes.name_is_valid(name):
            raise ConfigInvalid(f"{name!r} cannot be the origin of a log: it has a space or a plus")
        signer = SigningKey(name, os.urandom(32))
        self._write(signer)
        self._remember(signer.verifier)
        return signer

    def _write(self, signer: SigningKey) -> None:
        path = self._folder / _KEY
        keyring = in_keyring(path) if self._keyring is None else self._keyring
        write_secret(path, signer.encode() + "\n", keyring=keyring)

    def _remember(self, key: NoteKey) -> None:
        lines = _lines(self._folder / _PUBLIC)
        if key.encode() not in lines:
            body = "\n".join([key.encode(), *lines]) + "\n"
            write_private(self._folder / _PUBLIC, body.encode())

    @property
    def public(self) -> tuple[NoteKey, ...]:
        """Every key there ever was, the newest first."""
        return tuple(NoteKey.decode(line) for line in _lines(self._folder / _PUBLIC))

    @property
    def mark(self) -> str:
        """The largest checkpoint that was ever signed, empty if there is none."""
        return _text(self._folder / _MARK)

    @property
    def rotations(self) -> list[str]:
        """The notes by which keys were replaced, oldest first."""
        text = _text(self._folder / _ROTATIONS)
        return [f"{_ROTATION}{each}" for each in text.split(_ROTATION)[1:]]

    def sign(self, checkpoint: LogCheckpoint) -> str:
        """Sign a checkpoint and keep it as the largest. Raise InvalidInput if a larger one was
        signed before, which only a journal that lost entries asks for.
        """
        if self.mark:
            largest = LogCheckpoint.parse(signed_notes.parse(self.mark).text)
            if checkpoint.size < largest.size:
                raise InvalidInput(
                    f"a checkpoint over {largest.size} entries was signed before: one over"
                    f" {checkpoint.size} would revoke them"
                )
        note = signed_notes.sign(checkpoint.text(), [self.signer])
        write_private(self._folder / _MARK, note.encode())
        return note

    def rotate(self, origin: str = "") -> SigningKey:
        """Replace the key by a new one, which the old one signs for."""
        old = SigningKey.decode(read_secret(self._folder / _KEY))
        new = SigningKey(origin or old.name, os.urandom(32))
        if not signed_notes.name_is_valid(new.name):
            raise ConfigInvalid(f"{origin!r} cannot be the origin of a log")
        text = f"{_ROTATION}\n{old.verifier.encode()}\n{new.verifier.encode()}\n"
        notes = _text(self._folder / _ROTATIONS) + signed_notes.sign(text, [old, new])
        write_private(self._folder / _ROTATIONS, notes.encode())
        # First the public part: what the new key signs can be verified from the beginning.
        self._remember(new.verifier)
        self._write(new)
        self._signer = new
        return new

    def begin_again(self) -> None:
        """Start a log of its own from the present state, because the owner has put an older state
        of the journal in its place. The largest checkpoint of before is set aside, not lost.
        """
        if self.mark:
            kept = _text(self._folder / _SET_ASIDE) + self.mark
            write_private(self._folder / _SET_ASIDE, kept.encode())
            base, _, number = self.signer.name.partition("~")
            self.rotate(f"{base}~{int(number or 1) + 1}")
            (self._folder / _MARK).unlink(missing_ok=True)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _anchors(path: Path) -> Iterator[KeptNote]:
    try:
        found = msgspec.json.decode(_text(path) or "[]", type=list[KeptNote])
    except msgspec.DecodeError:
        raise ConfigInvalid(
            f"the file {path} is damaged: remove it, the daemon writes it when it starts"
        ) from None
    return (msgspec.structs.replace(each, note=_kept(Path(each.path))) for each in found)


def _kept(path: Path) -> str:
    """Return what an anchor keeps; nothing if its disk is not there."""
    try:
        return _text(path)
    except (OSError, UnicodeDecodeError):
        return ""


def _lines(path: Path) -> list[str]:
    return _text(path).split()
