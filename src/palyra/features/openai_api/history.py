"""Conversations as programs send them: all of it, with each request, and no word for sessions.

The rule: a history is known by a digest of its turns, each with its role, its calls and its files,
after secrets were taken out. Instructions, tools and the model are no part of it. What the
assistant said last is not in the digest: it is compared with what the run really said.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palyra.core.events import GivenCall, GivenTurn
from palyra.features.openai_api.answers import Answering
from palyra.features.openai_api.wire_types import ContentPart

_DIGEST_BYTES = 16
_object: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.encode


class HistoryCall(Struct, frozen=True):
    call_id: str
    name: str
    arguments: str


class HistoryTurn(Struct, frozen=True):
    """A turn as the program tells it. `files` are the parts that are no text."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[HistoryCall, ...] = ()
    files: tuple[ContentPart, ...] = ()
    call_id: str = ""


class History(Struct, frozen=True):
    """All turns of a request, the first `behind` of which were before it, without secrets.
    `digests[n]` stands for the first n turns.
    """

    turns: tuple[HistoryTurn, ...] = ()
    behind: int = 0
    digests: tuple[str, ...] = ()
    instructions: str = ""

    @property
    def digest(self) -> str:
        return self.digests[-1]

    @property
    def instructed(self) -> str:
        return sha256(self.instructions.encode()).hexdigest()[: 2 * _DIGEST_BYTES]

    @property
    def answered(self) -> list[int]:
        """The places of the assistant's turns, the newest first."""
        places = range(self.behind - 1, 0, -1)
        return [at for at in places if self.turns[at].role == "assistant"]


def read(
    scope: Sequence[str],
    turns: Sequence[HistoryTurn],
    behind: int,
    instructions: str,
    redact: Callable[[str], str],
) -> History:
    """Return the history of one caller, who is part of every digest."""
    digest = sha256(_encode(scope)).digest()
    digests, clean = [_shown(digest)], []
    for turn in turns:
        words = _clean(turn, redact)
        marks = [sha256(_encode(part)).hexdigest() for part in turn.files]
        digest = sha256(digest + _encode((words, marks))).digest()
        digests.append(_shown(digest))
        # The files themselves are decoded only if somebody is to see them.
        clean.append(replace(words, files=turn.files))
    return History(tuple(clean), behind, tuple(digests), redact(instructions))


def _shown(digest: bytes) -> str:
    return digest.hex()[: 2 * _DIGEST_BYTES]


def _clean(turn: HistoryTurn, redact: Callable[[str], str]) -> HistoryTurn:
    calls = tuple(
        HistoryCall(redact(each.call_id), redact(each.name), redact(each.arguments))
        for each in turn.calls
    )
    return HistoryTurn(turn.role, redact(turn.text), calls, call_id=redact(turn.call_id))


def repeats(turn: HistoryTurn, answering: Answering) -> bool:
    """Return whether an assistant's turn is what a run answered. Of an answer that was broken off
    the program may have heard the beginning only; words beside calls are left out by some.
    """
    said, told = "".join(answering.text).strip(), turn.text.strip()
    if {each.call_id for each in turn.calls} != {each.name for each in answering.calls}:
        return False
    if said == told:
        return answering.over
    if answering.calls:
        return not told
    return answering.error is not None and bool(told) and said.startswith(told)


def told(turns: Iterable[HistoryTurn], notes: Sequence[str]) -> tuple[GivenTurn, ...]:
    """Return the turns as the tape and the model get them; `notes`: of each, on its files."""
    return tuple(
        GivenTurn(
            role=turn.role,
            text="\n".join(filter(None, (turn.text, note))),
            calls=tuple(
                GivenCall(each.call_id, each.name or "tool", _arguments(each.arguments))
                for each in turn.calls
            ),
            call_id=turn.call_id,
        )
        for turn, note in zip(turns, notes, strict=True)
    )


def _arguments(text: str) -> dict[str, Any]:
    try:
        return _object.decode(text or "{}")
    except msgspec.DecodeError:
        return {"input": text}


def size(turns: Iterable[HistoryTurn]) -> int:
    return sum(
        len(turn.text) + sum(len(each.name) + len(each.arguments) for each in turn.calls)
        for turn in turns
    )
