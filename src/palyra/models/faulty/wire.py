"""Output of the faulty server: pieces of a chat completion stream, right ones and wrong ones."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

EVENTS = "text/event-stream"
JSON = "application/json"
DONE = b"data: [DONE]\n\n"


class Silence(Struct, frozen=True):
    """Silence of so many seconds; None: until the client leaves."""

    seconds: float | None = None


class HangUp(Struct, frozen=True):
    """The end of the connection, whatever was promised."""


class WireReply(Struct, frozen=True):
    """One response: a head, and what follows piece by piece."""

    parts: tuple[bytes | Silence | HangUp, ...]
    status: int = 200
    media_type: str = EVENTS
    headers: Mapping[str, str] = {}
    # What Content-Length says; None: the response ends with the connection.
    length: int | None = None
    # False: the connection ends without a head.
    head: bool = True


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    body = {"id": "faulty", "object": "chat.completion.chunk", "choices": [choice], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def text(*pieces: str, finish: str | None = "stop", **more: Any) -> tuple[bytes, ...]:
    """A streamed answer."""
    said = tuple(chunk({"content": piece}) for piece in pieces)
    return (*said, chunk(finish=finish, **more)) if finish else said


def call(
    name: str,
    arguments: Any,
    *,
    id: str | None = "call_1",
    index: int = 0,
    finish: str | None = "tool_calls",
) -> tuple[bytes, ...]:
    """A streamed tool call. Arguments that are text are sent as they are."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": given}
    made = {"index": index, "type": "function", "function": function}
    if id is not None:
        made["id"] = id
    said = (chunk({"tool_calls": [made]}),)
    return (*said, chunk(finish=finish)) if finish else said


def stream(*parts: bytes | Silence | HangUp) -> WireReply:
    """A stream that ends as it should."""
    return WireReply((*parts, DONE))


def refusal(status: int, message: str, **more: Any) -> WireReply:
    """An error in the form that most servers use."""
    headers = more.pop("headers", {})
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return WireReply((body,), status=status, media_type=JSON, headers=headers, length=len(body))


def page(status: int, body: str, **headers: str) -> WireReply:
    """A page of HTML."""
    data = body.encode()
    return WireReply(
        (data,), status=status, media_type="text/html", headers=headers, length=len(data)
    )
