"""Helpers that the dialects share when they write a request: legal tool names and call ids,
argument objects, image data.

Each mapping is made for one request and kept for its reply, so that a name that went out comes back
as the one we know.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from palyra.core.messages import (
    NO_CALL,
    AssistantMessage,
    Image,
    Message,
    ModelCall,
    ModelRequest,
    Native,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)

_NAME_LENGTH: Final = 64
_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]")
# The strictest of the big ones: OpenAI takes 40 characters, Anthropic this alphabet.
LEGAL_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}")
MISTRAL_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
# By these a refusal says that the model cannot look at images.
NO_VISION: Final = (
    "image_url",
    "input_image",
    "image input",
    "multimodal",
    "vision",
    "support image",
    "images are not",
)
_UNSEEN: Final = "[an image, not shown: this model cannot see images]"
_object: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class ToolNames:
    """A two-way map between our tool names and those a provider accepts, without collisions over
    one request.
    """

    def __init__(self, offered: Iterable[str] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        offered = tuple(offered)
        # Names that are legal as they are keep their name, so that a mangled one never takes it.
        for name in (*(name for name in offered if _legal(name)), *offered):
            self.to_wire(name)

    def copy(self) -> "ToolNames":
        names = ToolNames()
        names._wire, names._ours = self._wire.copy(), self._ours.copy()
        return names

    def to_wire(self, name: str) -> str:
        known = self._wire.get(name)
        if known is None:
            known = _ILLEGAL.sub("_", name)[:_NAME_LENGTH] or "_"
            if known in self._ours:
                known = f"{known[: _NAME_LENGTH - 9]}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"  # noqa: E501
            self._wire[name] = known
            self._ours[known] = name
        return known

    def to_ours(self, name: str) -> str:
        """A name the model invented comes back unchanged."""
        return self._ours.get(name, name)


def _legal(name: str) -> bool:
    return 0 < len(name) <= _NAME_LENGTH and not _ILLEGAL.search(name)


class CallIds:
    """Call ids for one request: legal, and unique over the conversation, where providers may have
    repeated theirs.
    """

    def __init__(self, legal: re.Pattern[str] = LEGAL_ID) -> None:
        self._legal = legal
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}

    def of_call(self, call: ModelCall) -> str:
        wire = call.id
        if wire in self._used or not self._legal.fullmatch(wire):
            number = len(self._used)
            while (wire := self._made_up(number)) in self._used:
                number += 1
        self._used.add(wire)
        self._latest[call.id] = wire
        return wire

    def of_result(self, message: ToolMessage) -> str:
        return self._latest.get(message.call_id, message.call_id)

    def _made_up(self, number: int) -> str:
        return f"{number:09d}" if self._legal is MISTRAL_ID else f"call_{number}"


def unique_ids(ids: list[str]) -> list[str]:
    """The ids of one reply; a missing or repeated one is replaced by `call_<n>`."""
    taken = set(ids)
    seen: set[str] = set()
    number = 0
    unique = []
    for found in ids:
        if not found or found in seen:
            while (found := f"call_{number}") in taken:
                number += 1
            taken.add(found)
        seen.add(found)
        unique.append(found)
    return unique


def arguments_object(arguments: str) -> dict[str, Any]:
    """A past call's arguments as the object most providers insist on, even where the model wrote
    something else.
    """
    if not arguments.strip():
        return {}
    try:
        return _object.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"malformed_arguments": arguments}


def arguments_text(arguments: str) -> str:
    try:
        _object.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.encode(
            arguments_object(arguments.encode("utf-8", "replace").decode())
        ).decode()
    return arguments


def schema_of(tool: ToolSchema) -> dict[str, Any]:
    return (
        tool.parameters
        if "type" in tool.parameters
        else {"type": "object", "properties": {}, **tool.parameters}
    )


def base64_of(image: Image) -> str:
    return b64encode(image.data).decode("ascii")


def data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{base64_of(image)}"


def without_images(request: ModelRequest) -> ModelRequest:
    """Replace images by words, for a server whose model cannot see."""

    def told(message: Message) -> Message:
        match message:
            case UserMessage(parts=parts):
                return UserMessage(
                    tuple(part if isinstance(part, Text) else Text(_UNSEEN) for part in parts)
                )
            case ToolMessage(images=images) if images:
                return msgspec.structs.replace(
                    message, text="\n".join((message.text, *[_UNSEEN] * len(images))), images=()
                )
            case _:
                return message

    return msgspec.structs.replace(request, messages=tuple(map(told, request.messages)))


def result_text(message: ToolMessage) -> str:
    """Return the text for dialects without a flag for failed tools or without empty results."""
    text = message.text or "(no output)"
    if message.is_error and not text.lower().startswith("error"):
        return f"error: {text}"
    return text


def native_items(message: AssistantMessage, dialect: str) -> list[Any]:
    """The provider's own record of this turn, if it is this dialect's and still fits what the turn
    says.
    """
    native = message.native
    if native is None or native.dialect != dialect:
        return []
    items = native.items
    if not all(isinstance(item, dict) for item in items):
        return []
    calls = sum(item.get("type") == "call" for item in items)
    characters = sum(item.get("characters", 0) for item in items if item.get("type") == "text")
    return items if calls == len(message.calls) and characters == len(message.text) else []


def native_of(dialect: str, items: list[dict[str, Any]]) -> Native | None:
    """Kept only if there is more in it than marks of where text and calls stood."""
    if all(item.get("type") in ("text", "call") for item in items):
        return None
    return Native(dialect=dialect, items=items)


# By these a refusal says that the form of an answer cannot be asked for, or not beside tools, or
# not with this schema.
NO_FORM: Final = (
    "response_format",
    "text.format",
    "json_schema",
    "json_object",
    "json mode",
    "json_mode",
    "mime type",
    "grammar",
)


def can_force_form(request: ModelRequest, *, beside_tools: bool) -> bool:
    """Many servers can hold a model to JSON only by keeping it from calling tools: then the words
    of the prompt must do.
    """
    return beside_tools or not request.tools or request.tool_choice == NO_CALL


JSON_SENTENCE: Final = "Answer with one JSON object and nothing else."


def instructions_of(request: ModelRequest) -> str:
    """OpenAI's JSON mode refuses a prompt that does not say JSON."""
    if request.json_mode and "json" not in request.instructions.lower():
        return f"{request.instructions}\n\n{JSON_SENTENCE}".strip()
    return request.instructions


Blocks = list[dict[str, Any]]


def in_order(items: list[Any], text: str, said: Callable[[str], Blocks], calls: Blocks) -> Blocks:
    """A turn in its own order where its record is at hand, everything else where it stood; else its
    text before its calls.
    """
    if not items:
        return [*said(text), *calls]
    turn: Blocks = []
    at = 0
    remaining = iter(calls)
    for item in items:
        match item:
            case {"type": "text", "characters": int() as length}:
                turn.extend(said(text[at : at + length]))
                at += length
            case {"type": "call"}:
                turn.append(next(remaining))
            case _:
                turn.append(item)
    return turn
