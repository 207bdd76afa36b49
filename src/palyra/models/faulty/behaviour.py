"""Parts of faults. Each is a model that would list the folder and say what it found, but for one
named thing that goes wrong.

A fault that passes goes wrong at every other try, beginning with the first. `ends` says what a user
is owed: an answer, or a clear sentence instead of one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from palyra.models.faulty import wire
from palyra.models.faulty.wire import HangUp, Silence, WireReply, call, stream, text

ANSWER = "The folder was listed; that is all."


class Asked(Struct, frozen=True):
    """Content of a request: which turn it is, and which tools there are."""

    results: int
    tools: tuple[str, ...]
    attempt: int = 1

    @classmethod
    def read(cls, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any]) -> "Asked":
        # Text mode gives results back as the user's words.
        results = sum(
            each.get("role") == "tool"
            or (each.get("role") == "user" and "<tool_response" in str(each.get("content")))
            for each in messages
        )
        names = (str(each.get("function", {}).get("name", "")) for each in tools)
        return cls(results, tuple(names))

    def tried(self, attempt: int) -> "Asked":
        return replace(self, attempt=attempt)

    @property
    def again(self) -> bool:
        return self.attempt % 2 == 0

    @property
    def list_tool(self) -> str:
        return next((name for name in self.tools if name.endswith("list")), "fs.list")


Behaviour = Callable[[Asked], WireReply]


class Fault(Struct, frozen=True):
    says: str
    reply: Behaviour
    ends: Literal["answered", "failed"] = "answered"
    # What this is called on the run's tape; empty: nothing failed, and the tape says of nothing.
    tape: str = ""
    # What a person reads beside or instead of the answer.
    sees: str = ANSWER


def honest(asked: Asked) -> WireReply:
    """Return what a model that works replies."""
    if asked.results:
        return stream(*text(*re.findall(r"\S+\s*", ANSWER)))
    if not asked.tools:
        return stream(*text(as_text({"name": "fs.list", "arguments": {}})))
    return stream(*call(asked.list_tool, {}))


def as_text(made: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps(made)}\n</tool_call>"


def passing(bad: Behaviour) -> Behaviour:
    return lambda asked: honest(asked) if asked.again else bad(asked)


def always(reply: WireReply) -> Behaviour:
    return lambda asked: reply


def once(reply: WireReply) -> Behaviour:
    return passing(always(reply))


def calling(make: Callable[[Asked], Sequence[bytes]]) -> Behaviour:
    """A first turn that calls a tool in its own way, and an honest second one."""
    return lambda asked: honest(asked) if asked.results else stream(*make(asked))


def first_then_honest(make: Callable[[Asked], Sequence[bytes]]) -> Behaviour:
    """A first turn that calls in its own way and fails; then an honest call, then an answer."""

    def reply(asked: Asked) -> WireReply:
        match asked.results:
            case 0:
                return stream(*make(asked))
            case 1:
                return stream(*call(asked.list_tool, {}))
            case _:
                return honest(asked)

    return reply


def answering(*parts: bytes | Silence | HangUp, end: bool = True) -> Behaviour:
    """An honest first turn, and an answer in its own way."""
    reply = stream(*parts) if end else WireReply(parts)
    return lambda asked: reply if asked.results else honest(asked)


def answering_once(*parts: bytes | Silence | HangUp, end: bool = True) -> Behaviour:
    return passing(answering(*parts, end=end))


def split(data: bytes, size: int) -> tuple[bytes, ...]:
    return tuple(data[at : at + size] for at in range(0, len(data), size))


def whole(said: str, **message: Any) -> WireReply:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said, **message},
        "finish_reason": "stop",
    }
    body = json.dumps({"choices": [choice]}).encode()
    return WireReply((body,), media_type=wire.JSON, length=len(body))
