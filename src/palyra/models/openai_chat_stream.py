"""Reads the answers of chat completion servers, streamed or whole. The common delta costs one
decode, one emit, one append.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from palyra.core.messages import Emit, ModelCall, ModelReply, Native, StopReason, Usage
from palyra.models import failures, request, wire_format
from palyra.models.http import ProviderEndpoint
from palyra.models.usage_report import chat_usage
from palyra.models.wire_format import ToolNames


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | list[Any] | None = None


class _Call(Struct):
    index: int | float | str | None = None
    id: str | int | None = None
    type: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Delta(Struct):
    """`content` is a list of typed parts at Mistral; reasoning has three names, and details at
    OpenRouter and behind it.
    """

    content: str | list[Any] | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: str | None = None
    function_call: _Function | None = None


class _Choice(Struct):
    index: int | None = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | int | None = None
    error: Any = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    error: Any = None
    # Groq puts usage here, other servers a bare error object.
    x_groq: dict[str, Any] | None = None
    object: str | None = None
    message: Any = None
    detail: Any = None
    # llama.cpp says how far it has read the prompt.
    prompt_progress: Any = None


_decoder: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)
_list_decoder: msgspec.json.Decoder[list[_Chunk]] = msgspec.json.Decoder(list[_Chunk])
_END: Final = b"[DONE]"

_STOPS: Final[dict[str, StopReason]] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "sensitive": "content_filter",
    "refusal": "content_filter",
}
# Finish reasons by which a server says that it failed.
_FAILURES: Final = {
    "error": "server_error",
    "network_error": "server_error",
    "insufficient_system_resource": "overloaded",
    "malformed_function_call": "malformed_function_call",
    "function_call_filter: malformed_function_call": "malformed_function_call",
}


def percent_read(progress: Any) -> str:
    """Return llama.cpp's progress in reading the prompt, in percent; empty if it reports none."""
    match progress:
        case {"total": int(total), "processed": int(done)} if total > 0 and 0 <= done <= total:
            return str(done * 100 // total)
    return ""


class _Slot:
    """One tool call under construction."""

    __slots__ = ("arguments", "extra", "foreign", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Any = None
        # A tool the server runs by itself: shown by some gateways, never ours to run.
        self.foreign = False

    def is_whole(self) -> bool:
        try:
            msgspec.json.decode("".join(self.arguments))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


def _starts_another(slot: _Slot, id: str, name: str) -> bool:
    """Servers that number every call 0 send each in one piece; others repeat name and id with every
    piece.
    """
    if id and id == slot.id:
        return False
    if slot.arguments:
        return slot.is_whole()
    return bool(id and slot.id) and name != slot.name


class ChatParser(request.EventParser):
    def __init__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str
    ) -> None:
        self._names = names
        self._emit = emit
        self._endpoint = endpoint
        self._dialect = dialect
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._slots: list[_Slot] = []
        self._by_index: dict[str, _Slot] = {}
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._model = ""
        self.complete = False

    def event(self, data: bytes) -> bool:
        chunk = request.decode(_decoder, _Chunk, data)
        if chunk is None:
            if data.strip() != _END:
                return False
            self.complete = True
            return True
        self._chunk(chunk)
        return False

    def events(self, found: Sequence[bytes]) -> bool:
        ended = bool(found) and found[-1].strip() == _END
        chunks = request.decode_all(_list_decoder, found[:-1] if ended else found)
        if chunks is None:
            return super().events(found)
        for chunk in chunks:
            self._chunk(chunk)
        self.complete = self.complete or ended
        return ended

    def whole(self, body: bytes) -> None:
        chunk = request.decode(_decoder, _Chunk, body)
        if chunk is None or not chunk.choices:
            self._chunk(chunk or _Chunk())
            raise failures.broken(self._endpoint, "no choices")
        self._chunk(chunk)
        self.complete = True

    def _chunk(self, chunk: _Chunk) -> None:
        if chunk.error:
            raise failures.of_event(self._endpoint, chunk.error)
        if chunk.usage is not None or chunk.x_groq is not None:
            self._keep_usage(chunk)
        if chunk.prompt_progress is not None and (read := percent_read(chunk.prompt_progress)):
            self._emit("progress", read)
        if not chunk.choices:
            if chunk.choices is None and (chunk.object == "error" or chunk.message or chunk.detail):
                raise failures.of_event(self._endpoint, msgspec.to_builtins(chunk))
            return
        if not self._model and chunk.model:
            self._model = chunk.model
        for choice in chunk.choices:
            if not choice.index:
                self._choice(choice)

    def _choice(self, choice: _Choice) -> None:
        delta = choice.delta if choice.delta is not None else choice.message
        if delta is not None:
            content = delta.content
            if content:
                if isinstance(content, str):
                    self._emit("text", content)
                    self._text.append(content)
                else:
                    self._parts(content)
            if delta.tool_calls:
                for call in delta.tool_calls:
                    self._call(call)
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._reason(delta)
            if delta.refusal:
                self._say(delta.refusal)
            if delta.function_call is not None:
                self._call(_Call(index="function_call", function=delta.function_call))
        if choice.finish_reason or choice.error:
            self._finished(choice)

    def _finished(self, choice: _Choice) -> None:
        if choice.error:
            raise failures.of_event(self._endpoint, choice.error)
        reason = str(choice.finish_reason).lower()
        if reason in _FAILURES:
            raise failures.of_event(
                self._endpoint, {"type": _FAILURES[reason], "message": f"finish reason {reason}"}
            )
        self._finish = reason
        self.complete = True

    def _say(self, text: str) -> None:
        self._emit("text", text)
        self._text.append(text)

    def _think(self, text: str) -> None:
        self._emit("reasoning", text)
        self._reasoning.append(text)

    def _parts(self, parts: list[Any]) -> None:
        for part in parts:
            match part:
                case {"type": "thinking", "thinking": str() as thought}:
                    self._think(thought)
                case {"type": "thinking", "thinking": [*thoughts]}:
                    for thought in thoughts:
                        if isinstance(thought, dict) and isinstance(thought.get("text"), str):
                            self._think(thought["text"])
                case {"text": str() as text} | (str() as text):
                    self._say(text)

    def _reason(self, delta: _Delta) -> None:
        """Some servers send the same thought under two names: the first one that is text counts."""
        details = delta.reasoning_details
        if isinstance(details, list):
            self._keep_details(details)
        for field, thought in (
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
        ):
            if isinstance(thought, str) and thought:
                self._reasoning_field = field
                self._think(thought)
                return
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                thought = detail.get("text") or detail.get("summary")
                if isinstance(thought, str) and thought:
                    self._think(thought)

    def _keep_details(self, details: list[Any]) -> None:
        """Pieces of one detail are put together again, as it must be sent back."""
        for piece in details:
            if not isinstance(piece, dict):
                continue
            last = self._details[-1] if self._details else None
            if last is None or (last.get("type"), last.get("index")) != (
                piece.get("type"),
                piece.get("index"),
            ):
                self._details.append(dict(piece))
                continue
            for key, value in piece.items():
                if key in ("text", "summary", "data") and isinstance(value, str):
                    last[key] = (last.get(key) or "") + value
                elif value is not None:
                    last[key] = value

    def _call(self, piece: _Call) -> None:
        function = piece.function or _Function()
        name = function.name or ""
        slot = self._slot(piece, "" if piece.id is None else str(piece.id), name)
        if piece.type not in (None, "", "function"):
            slot.foreign = True
        if piece.extra_content is not None:
            slot.extra = piece.extra_content
        if name and name != slot.name and not slot.arguments:
            slot.name += name
            if not slot.foreign:
                self._emit("call", self._names.to_ours(slot.name))
        arguments = function.arguments
        if arguments:
            slot.arguments.append(
                arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            )

    def _slot(self, piece: _Call, id: str, name: str) -> _Slot:
        """Return which call a piece belongs to. By index where that can be believed, else by id,
        else it continues the last one.
        """
        slots = self._slots
        if piece.index is not None:
            key = str(piece.index)
            slot = self._by_index.get(key)
            if slot is not None and name and _starts_another(slot, id, name):
                slot = None
        else:
            key = ""
            slot = next((slot for slot in slots if id and slot.id == id), None)
            if slot is None and slots and not id and (not name or not slots[-1].name):
                slot = slots[-1]
        if slot is None:
            slot = _Slot()
            slots.append(slot)
        if key:
            self._by_index[key] = slot
        if id and not slot.id:
            slot.id = id
        return slot

    def _keep_usage(self, chunk: _Chunk) -> None:
        usage = chunk.usage or (chunk.x_groq or {}).get("usage")
        if isinstance(usage, dict) and any(
            isinstance(value, int | float) for value in usage.values()
        ):
            self._usage = usage

    def so_far(self) -> tuple[Usage, str]:
        return chat_usage(self._usage), "".join(
            piece for slot in self._slots for piece in slot.arguments
        )

    def reply(self) -> ModelReply:
        slots = [slot for slot in self._slots if not slot.foreign and (slot.name or slot.arguments)]
        stop = _STOPS.get(self._finish, "end")
        if slots and stop == "end":
            stop = "tool_calls"
        ids = wire_format.unique_ids([slot.id for slot in slots])
        # A call without arguments is complete, unless the reply was cut off before they could come.
        empty = "" if stop in ("length", "content_filter") else "{}"
        calls = tuple(
            ModelCall(
                id=id,
                name=self._names.to_ours(slot.name),
                arguments="".join(slot.arguments).strip() or empty,
            )
            for id, slot in zip(ids, slots, strict=True)
        )
        return ModelReply(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=calls,
            stop=stop,
            usage=chat_usage(self._usage),
            model=self._model,
            native=self._native(slots),
        )

    def _native(self, slots: list[_Slot]) -> Native | None:
        """Return what this server wants back with this turn: thought signatures, reasoning details,
        reasoning by its own name.
        """
        record: dict[str, Any] = {}
        extra = {str(at): slot.extra for at, slot in enumerate(slots) if slot.extra is not None}
        if extra:
            record["extra_content"] = extra
        if self._details:
            record["reasoning_details"] = self._details
        elif self._reasoning_field and slots:
            record["reasoning_field"] = self._reasoning_field
        return (
            Native(dialect=self._dialect, items=[record | {"calls": len(slots)}])
            if record
            else None
        )
