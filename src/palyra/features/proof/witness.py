"""A witness: cosigns checkpoints of logs that it knows, and only such that continue what it has
cosigned before. The protocol is C2SP tlog-witness.

The rule: what was cosigned is on disk before the cosignature leaves. So a witness never vouches
for two histories of one log, whenever it is killed.
"""

import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from palyra.core import merkle, signed_notes
from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.signals import Signal
from palyra.core.signed_notes import COSIGNATURE, LogCheckpoint, NoteKey, SigningKey
from palyra.system.private_files import write_private

MOST_BYTES = 1 << 16
_MOST_HASHES = 63
SIZE_TYPE = "text/x.tlog.size"
TEXT_TYPE = "text/plain; charset=utf-8"


def witness_key(home: Path, name: str) -> SigningKey:
    """Return the key that a home cosigns with; it is made with this name the first time."""
    path = home / "keys" / "witness.key"
    if path.exists():
        return SigningKey.decode(path.read_text())
    if not signed_notes.name_is_valid(name):
        raise ConfigInvalid("this witness has no key yet: palyra witness key --name NAME")
    made = SigningKey(name, os.urandom(32), COSIGNATURE)
    write_private(path, made.encode().encode() + b"\n")
    return made


def open_witness(home: Path, logs: Sequence[str], now_s: Callable[[], int]) -> "Witness":
    """Return the witness of a home, for logs by their public keys. Raise ConfigInvalid if one is
    no key.
    """
    try:
        known = [NoteKey.decode(each) for each in logs]
    except InvalidInput as error:
        raise ConfigInvalid(f"a journal to be a witness of: {error.message}") from None
    key = witness_key(home, f"palyra.local/witness-{os.urandom(8).hex()}")
    return Witness(key, known, home / "witness", now_s)


class WitnessReply(Struct, frozen=True):
    """An HTTP status with its text."""

    status: int
    text: str
    media: str = TEXT_TYPE


class AddCheckpoint(Struct, frozen=True):
    """A request: the size that the log believes the witness has seen, a proof from there, and a
    signed checkpoint.
    """

    old: int
    proof: tuple[bytes, ...]
    note: str

    def encode(self) -> bytes:
        lines = [f"old {self.old}", *(b64encode(each).decode() for each in self.proof)]
        return ("\n".join(lines) + "\n\n" + self.note).encode()

    @classmethod
    def decode(cls, body: bytes) -> "AddCheckpoint":
        """Read a request. Raise InvalidInput if it is none."""
        try:
            head, gap, note = body.decode().partition("\n\n")
            first, *hashes = head.split("\n")
            proof = tuple(b64decode(each, validate=True) for each in hashes)
            word, _, old = first.partition(" ")
        except ValueError as error:
            raise InvalidInput("this is not a request to a witness") from error
        wrong = not gap or word != "old" or not old.isdecimal() or len(proof) > _MOST_HASHES
        if wrong or any(len(each) != merkle.HASH for each in proof):
            raise InvalidInput("this is not a request to a witness")
        return cls(int(old), proof, note)


class Witness:
    """Witness of logs known by their keys; it keeps the last checkpoint of each in a folder."""

    def __init__(
        self,
        key: SigningKey,
        logs: Sequence[NoteKey],
        folder: Path,
        now_s: Callable[[], int],
    ) -> None:
        self.key = key
        self._logs = tuple(logs)
        self._folder = folder
        self._now_s = now_s
        self._one_at_a_time = threading.Lock()
        # Why each log was refused last that changed its story, by its origin.
        self.refused: dict[str, str] = {}
        # Told in words when a log changes its story.
        self.on_refused = Signal[[str]]("a log that was refused")

    def add_checkpoint(self, body: bytes) -> WitnessReply:
        """Answer `POST /add-checkpoint`."""
        try:
            request = AddCheckpoint.decode(body)
            note = signed_notes.parse(request.note)
            said = LogCheckpoint.parse(note.text)
        except InvalidInput as error:
            return WitnessReply(400, f"{error.message}\n")
        known = [key for key in self._logs if key.name == said.origin]
        if not known:
            return WitnessReply(404, f"the log {said.origin} is not known here\n")
        if not any(note.signed_by(key) for key in known):
            return WitnessReply(403, f"this is not signed by a key of {said.origin}\n")
        with self._one_at_a_time:
            return self._cosign(request, said, note.text)

    def _cosign(self, request: AddCheckpoint, said: LogCheckpoint, text: str) -> WitnessReply:
        path = self._folder / f"{sha256(said.origin.encode()).hexdigest()}.checkpoint"
        last = self._last(path)
        size = last.size if last else 0
        if request.old != size:
            if said.size < size:
                why = f"{said.origin} had {size} entries, and has {said.size} now"
                self._changed_story(said.origin, why)
            return WitnessReply(409, f"{size}\n", SIZE_TYPE)
        if said.size < size:
            why = f"{said.origin} had {size} entries, and says that it has {said.size}"
            return self._refuse(400, said.origin, why)
        if last is not None and not merkle.proves_consistency(
            size, said.size, request.proof, last.root, said.root
        ):
            why = f"{said.origin} does not continue the {size} entries that it had: it forked"
            return self._refuse(422, said.origin, why)
        write_private(path, text.encode())
        return WitnessReply(200, self.key.line(text, self._now_s()))

    def _refuse(self, status: int, origin: str, why: str) -> WitnessReply:
        self._changed_story(origin, why)
        return WitnessReply(status, f"{why}\n")

    def _changed_story(self, origin: str, why: str) -> None:
        self.refused[origin] = why
        self.on_refused.send(why)

    def _last(self, path: Path) -> LogCheckpoint | None:
        try:
            return LogCheckpoint.parse(path.read_text())
        except FileNotFoundError:
            return None
