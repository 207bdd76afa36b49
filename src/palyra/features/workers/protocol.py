"""Protocol between a daemon and a worker on another machine, whatever carries it: messages and
their frames.

The rule: a call is assigned under a lease, and one attempt of one call has one holder. The worker
keeps what came of a call until the daemon says that it is settled; a worker that hears nothing for
a lease's time stops what it does for it.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from palyra.core.errors import InvalidInput
from palyra.core.events import FileChange
from palyra.core.input_checks import DEEPEST, too_deep
from palyra.core.tools import Outcome, Tier

# Raised with every change that an older peer would misread; a daemon and its workers speak the same
# one.
PROTOCOL = 1
# The name in the certificate that the daemon shows to workers: they know it by this and by its
# authority, not by an address.
DAEMON_NAME = "workers.palyra.internal"
NAME_PATTERN = "^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"

MOST_FRAME = 4 << 20
# Of somebody who has not said who they are.
MOST_FIRST_FRAME = 512 << 10
MOST_TEXT = 2 << 20
PIECE_BYTES = 256 << 10
# Of one call: what is sent along, and what comes back.
MOST_FILES = 256
MOST_FILE_BYTES = 32 << 20
MOST_CALL_BYTES = 64 << 20
# Of one undo: calls, and files of all of them.
MOST_UNDONE = 1_000
MOST_UNDONE_FILES = 2_000

CallState = Literal["running", "finished", "lost"]
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Id = Annotated[str, Meta(pattern="^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Short = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Attempt = Annotated[int, Meta(ge=1, le=1_000)]


class WorkerMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is"):
    """Base of everything that is said. What an older peer does not know, it passes over."""


class Shipped(Struct, frozen=True, omit_defaults=True):
    """A file of a call, by the digest of its content. `path` is relative to where the call
    works.
    """

    path: Annotated[str, Meta(max_length=4_096)]
    sha256: Digest
    size: Annotated[int, Meta(ge=0, le=MOST_FILE_BYTES)]
    executable: bool = False


class HeldCall(Struct, frozen=True):
    """A call that a worker still has. `lost`: the worker was killed while it ran."""

    call_id: Id
    attempt: Attempt
    state: CallState


class AskAuthority(WorkerMessage, frozen=True, kw_only=True, tag="ask_authority"):
    """Request for the authority that signs your certificates. Sent before anything is trusted, and
    checked against what the owner said.
    """


class Enrol(WorkerMessage, frozen=True, kw_only=True, tag="enrol"):
    code: Annotated[str, Meta(max_length=64)]
    request: Annotated[str, Meta(max_length=16_384)]


class AskChallenge(WorkerMessage, frozen=True, kw_only=True, tag="ask_challenge"):
    """Request for something to sign, where the carrier does not show certificates."""


class Prove(WorkerMessage, frozen=True, kw_only=True, tag="prove"):
    """A certificate, and the challenge signed with its key."""

    certificate: Annotated[str, Meta(max_length=16_384)]
    signature: Annotated[bytes, Meta(max_length=512)]


class Hello(WorkerMessage, frozen=True, kw_only=True, tag="hello"):
    """`instance` names the worker's folder: another one knows nothing of the calls of the first."""

    protocol: int
    version: Short
    instance: Id
    platform: Short = ""
    tier: Tier = "none"
    tools: Annotated[tuple[Short, ...], Meta(max_length=64)] = ()
    slots: Annotated[int, Meta(ge=1, le=256)] = 1
    # It keeps what takes its calls back, and can be asked to.
    undoes: bool = False
    calls: Annotated[tuple[HeldCall, ...], Meta(max_length=4_096)] = ()


class Beat(WorkerMessage, frozen=True, kw_only=True, tag="beat"):
    number: int


class NeedContents(WorkerMessage, frozen=True, kw_only=True, tag="need"):
    """Contents that a call needs and the worker does not have."""

    call_id: Id
    attempt: Attempt
    digests: Annotated[tuple[Digest, ...], Meta(max_length=MOST_FILES)]


class ProgressReport(WorkerMessage, frozen=True, kw_only=True, tag="progress"):
    call_id: Id
    attempt: Attempt
    text: Text


class Finished(WorkerMessage, frozen=True, kw_only=True, tag="finished"):
    """Outcome of an attempt. Sent again after every reconnection, until it is settled."""

    call_id: Id
    attempt: Attempt
    outcome: Outcome
    text: Text
    data: Any = None
    files: Annotated[tuple[Shipped, ...], Meta(max_length=MOST_FILES)] = ()


class RolledBack(WorkerMessage, frozen=True, kw_only=True, tag="rolled_back"):
    """`conflict`: nothing was put back, because somebody else has changed a file since."""

    call_id: Id
    changes: Annotated[tuple[FileChange, ...], Meta(max_length=MOST_FILES)] = ()
    conflict: Short = ""


class TakenBack(Struct, frozen=True):
    """Changes that undoing one call made."""

    call_id: Id
    changes: Annotated[tuple[FileChange, ...], Meta(max_length=MOST_FILES)]


class TookBack(WorkerMessage, frozen=True, kw_only=True, tag="took_back"):
    """The answer to a TakeBack. `clashes` are files that somebody else has changed; `missing` calls
    that are not known any more.
    """

    ask_id: Id
    taken: Annotated[tuple[TakenBack, ...], Meta(max_length=MOST_UNDONE)] = ()
    clashes: Annotated[tuple[str, ...], Meta(max_length=MOST_UNDONE_FILES)] = ()
    missing: Annotated[tuple[Id, ...], Meta(max_length=MOST_UNDONE)] = ()
    diff: Text = ""
    failed: Short = ""


class Renew(WorkerMessage, frozen=True, kw_only=True, tag="renew"):
    """A certificate for a new key, please: the one that this link was opened with ends. Said again,
    it is answered the same.
    """

    request: Annotated[str, Meta(max_length=16_384)]


class Leaving(WorkerMessage, frozen=True, kw_only=True, tag="leaving"):
    """The worker ends when what it does is done; it takes nothing new."""


class Authority(WorkerMessage, frozen=True, kw_only=True, tag="authority"):
    certificate: Annotated[str, Meta(max_length=16_384)]


class Challenge(WorkerMessage, frozen=True, kw_only=True, tag="challenge"):
    nonce: Annotated[bytes, Meta(min_length=32, max_length=64)]


class Enrolled(WorkerMessage, frozen=True, kw_only=True, tag="enrolled"):
    name: Name
    certificate: Annotated[str, Meta(max_length=16_384)]


class Welcome(WorkerMessage, frozen=True, kw_only=True, tag="welcome"):
    name: Name
    lease_ms: Annotated[int, Meta(ge=200, le=3_600_000)]
    draining: bool = False
    # When to ask for a new certificate, by the clock that it ends by; None of a daemon that makes
    # none.
    renew_in_ms: Annotated[int, Meta(ge=0)] | None = None


class Renewed(WorkerMessage, frozen=True, kw_only=True, tag="renewed"):
    """A certificate for the new key; the old one is good until somebody comes with this. `refused`:
    why there is none now.
    """

    certificate: Annotated[str, Meta(max_length=16_384)] = ""
    refused: Annotated[str, Meta(max_length=2_000)] = ""


class CallRefused(WorkerMessage, frozen=True, kw_only=True, tag="refused"):
    code: Short
    message: Annotated[str, Meta(max_length=2_000)]


class Acknowledged(WorkerMessage, frozen=True, kw_only=True, tag="heard"):
    number: int


class Assign(WorkerMessage, frozen=True, kw_only=True, tag="assign"):
    call_id: Id
    attempt: Attempt
    session_id: Id
    tool: Short
    arguments: dict[str, Any]
    time_ms: int
    files: Annotated[tuple[Shipped, ...], Meta(max_length=MOST_FILES)] = ()
    results: Annotated[tuple[str, ...], Meta(max_length=MOST_FILES)] = ()


class CancelCall(WorkerMessage, frozen=True, kw_only=True, tag="cancel"):
    call_id: Id
    attempt: Attempt


class CallSettled(WorkerMessage, frozen=True, kw_only=True, tag="settled"):
    """The result is on the tape, or will never be: the worker may forget the call."""

    call_id: Id
    attempt: Attempt


class RollBack(WorkerMessage, frozen=True, kw_only=True, tag="roll_back"):
    call_id: Id
    session_id: Id


class TakeBack(WorkerMessage, frozen=True, kw_only=True, tag="take_back"):
    """Put back what these calls changed, oldest first; all of it or nothing. `look`: only say what
    that would be.
    """

    ask_id: Id
    session_id: Id
    calls: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=MOST_UNDONE)]
    look: bool = False
    force: bool = False


class Want(WorkerMessage, frozen=True, kw_only=True, tag="want"):
    digest: Digest


class Drain(WorkerMessage, frozen=True, kw_only=True, tag="drain"):
    on: bool = True


class Piece(WorkerMessage, frozen=True, kw_only=True, tag="piece"):
    """A part of a content. `gone`: there is no such content any more."""

    digest: Digest
    offset: Annotated[int, Meta(ge=0, le=MOST_FILE_BYTES)] = 0
    data: Annotated[bytes, Meta(max_length=PIECE_BYTES)] = b""
    last: bool = False
    gone: bool = False


Up = (
    AskAuthority
    | AskChallenge
    | Enrol
    | Prove
    | Hello
    | Beat
    | NeedContents
    | ProgressReport
    | Finished
    | RolledBack
    | TookBack
    | Renew
    | Leaving
    | Piece
)
Down = (
    Authority
    | Challenge
    | Enrolled
    | Welcome
    | Renewed
    | CallRefused
    | Acknowledged
    | Assign
    | CancelCall
    | CallSettled
    | RollBack
    | TakeBack
    | Want
    | Drain
    | Piece
)

encode = msgspec.msgpack.Encoder().encode


# Made when they are needed: a daemon without workers starts without them.
@cache
def _decoder(of: Any) -> "msgspec.msgpack.Decoder[Any]":
    return msgspec.msgpack.Decoder(of)


def from_worker(body: bytes) -> Up:
    """A worker's message. Data that is nested too deeply is left out of a result, which says so."""
    said: Up = _read(_decoder(Up), body)
    if isinstance(said, Finished) and too_deep(said.data):
        text = (
            f"{said.text[: MOST_TEXT - 200]}\n[the worker's data was left out: it is nested deeper"
            f" than {DEEPEST} levels]"
        )
        return msgspec.structs.replace(said, data=None, text=text)
    return said


def from_daemon(body: bytes) -> Down:
    said: Down = _read(_decoder(Down), body)
    return said


def _read(decoder: "msgspec.msgpack.Decoder[Any]", body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this is not a message of the worker protocol: {error}") from None


def challenge(nonce: bytes) -> bytes:
    """Return what is signed: it can be nothing that anybody else would ask to have signed."""
    return b"palyra worker link\0" + nonce


def frame(message: WorkerMessage) -> bytes:
    body = encode(message)
    if len(body) > MOST_FRAME:
        raise InvalidInput(f"a message has {len(body):,} bytes; at most {MOST_FRAME:,} can be sent")
    return len(body).to_bytes(4, "big") + body


class Frames:
    """Bytes as they come, cut into messages: each has its length in front. Raises InvalidInput for
    one that is too long.
    """

    def __init__(self, most: int = MOST_FRAME) -> None:
        self.most = most
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        found = []
        start = 0
        while len(self._buffer) - start >= 4:
            size = int.from_bytes(self._buffer[start : start + 4], "big")
            if size > self.most:
                raise InvalidInput(
                    f"a message of {size:,} bytes was announced; at most {self.most:,} are taken"
                )
            if len(self._buffer) - start - 4 < size:
                break
            found.append(bytes(self._buffer[start + 4 : start + 4 + size]))
            start += 4 + size
        del self._buffer[:start]
        return found


def pieces(digest: str, content: bytes) -> list[Piece]:
    """A content in parts that fit into frames; an empty one is one empty part."""
    starts = range(0, max(1, len(content)), PIECE_BYTES)
    return [
        Piece(
            digest=digest,
            offset=at,
            data=content[at : at + PIECE_BYTES],
            last=at + PIECE_BYTES >= len(content),
        )
        for at in starts
    ]
