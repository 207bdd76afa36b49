"""Names that a calling program knows runs, calls and responses by."""

import re

from msgspec import Struct

from palyra.core import ids
from palyra.core.errors import NotFound

_CALL = "call_"
_RESPONSE = "resp_"
_CONVERSATION = re.compile(r"conv_([0-9A-Z]{26})")
_NAMED = re.compile(r"resp_([0-9A-Z]{26})([0-9a-f]{1,12})")


class CallName(Struct, frozen=True):
    """A call as its program knows it: with its run, so that a result finds it by its name alone."""

    run_id: str
    call_id: str


class CallerRun(Struct, frozen=True):
    """The run that answers: watch its session from `seq`. `named`: somebody can come back to it, so
    it outlives its caller. `keyed`: the same request finds it again.
    """

    session_id: str
    run_id: str
    seq: int
    named: bool
    keyed: bool = False


def call_name(run_id: str, call_id: str) -> str:
    return f"{_CALL}{run_id}{call_id}"


def run_of_call(text: str) -> str:
    """The run that handed a call over, as far as its name says."""
    return text.removeprefix(_CALL)[:26]


def response_name(run_id: str, seq: int) -> str:
    return f"{_RESPONSE}{run_id}{seq:x}"


def named_call(text: str) -> CallName:
    name = text.removeprefix(_CALL)
    run_id, call_id = name[:26], name[26:]
    if not (ids.is_ulid(run_id) and ids.is_ulid(call_id)):
        raise NotFound(
            f"no call here is named {text[:80]!r}: bring results under the ids that the last answer"
            " gave"
        )
    return CallName(run_id, call_id)


def named_conversation(text: str) -> str:
    """The session of a conversation."""
    found = _CONVERSATION.fullmatch(text)
    if found is None or not ids.is_ulid(found[1]):
        raise NotFound(
            f"there is no conversation {text[:80]!r}: name the id of one that you were given"
        )
    return found[1]


def named_response(text: str) -> tuple[str, int]:
    """The run of a response, and where the tape stood before it."""
    found = _NAMED.fullmatch(text)
    if found is None or not ids.is_ulid(found[1]):
        raise NotFound(
            f"there is no response {text[:80]!r}: name the id of one that you were given"
        )
    return found[1], int(found[2], 16)
