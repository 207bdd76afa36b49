"""Reads the answers of servers that speak Anthropic messages, streamed or whole, block by block."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from palyra.core.messages import Emit, ModelCall, ModelReply, StopReason, Usage
from palyra.models import failures, request, wire_format
from palyra.models.http import ProviderEndpoint
from palyra.models.usage_report import anthropic_usage
from palyra.models.wire_format import ToolNames


class _Delta(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Message(Struct):
    model: str | None = None
    content: list[Any] | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None
    type: str | None = None
    error: Any = None


class _Event(Struct):
    type: str | None = None
    index: int | None = None
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: _Message | str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_decoder: msgspec.json.Decoder[_Event] = msgspec.json.Decoder(_Event)
_messages: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_Message)

_STOPS: Final[dict[str, StopReason]] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
# What a delta is about, for servers that never announce a block.
_KINDS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class _Block:
    """One content block under construction: `start` as announced, `pieces` as they came."""

    __slots__ = ("kind", "pieces", "signature", "start")

    def __init__(self, start: dict[str, Any]) -> None:
        self.start = start
        self.kind = start.get("type")
        self.pieces: list[str] = []
        self.signature = ""

    def arguments(self) -> str:
        written = "".join(self.pieces).strip()
        given = self.start.get("input")
        return written or (msgspec.json.encode(given).decode() if given else "")


class MessagesParser(request.EventParser):
    def __init__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str
    ) -> None:
        self._names = names
        self._emit = emit
        self._endpoint = endpoint
        self._dialect = dialect
        # Blocks in the order in which they began; the index of the wire leads to the newest.
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}
        self._stop = ""
        self._usage: dict[str, Any] = {}
        self._model = ""
        self.complete = False

    def event(self, data: bytes) -> bool:
        event = request.decode(_decoder, _Event, data)
        if event is None:
            return False
        kind = event.type
        if kind == "content_block_delta":
            if event.delta is not None:
                self._delta(event.index, event.delta)
            return False
        if kind == "content_block_start":
            self._begin(event.index, event.content_block or {})
            return False
        if event.error is not None or kind == "error":
            raise failures.of_event(self._endpoint, event.error or msgspec.to_builtins(event))
        return self._outline(event)

    def _outline(self, event: _Event) -> bool:
        """The message around the blocks."""
        message = event.message
        if event.type == "message_start" and isinstance(message, _Message):
            self._model = message.model or ""
            self._count(message.usage)
        elif event.type == "message_delta":
            self._count(event.usage)
            if event.delta is not None and event.delta.stop_reason:
                self._stop = event.delta.stop_reason
                self.complete = True
        elif event.type == "message_stop":
            self.complete = True
            return True
        return False

    def whole(self, body: bytes) -> None:
        message = request.decode(_messages, _Message, body)
        if message is None or message.error is not None or message.type == "error":
            raise failures.of_event(self._endpoint, message and message.error)
        if message.content is None:
            raise failures.broken(self._endpoint, "no content")
        for at, block in enumerate(message.content):
            if isinstance(block, dict):
                self._begin(at, block)
        self._model = message.model or ""
        self._stop = message.stop_reason or ""
        self._count(message.usage)
        self.complete = True

    def _begin(self, index: int | None, start: dict[str, Any]) -> _Block:
        block = _Block(start)
        self._blocks.append(block)
        self._by_index[len(self._blocks) - 1 if index is None else index] = block
        match start:
            case {"type": "text", "text": str() as text} if text:
                self._emit("text", text)
                block.pieces.append(text)
            case {"type": "thinking"}:
                if thought := _string(start, "thinking"):
                    self._emit("reasoning", thought)
                    block.pieces.append(thought)
                block.signature = _string(start, "signature")
            case {"type": "tool_use", "name": str() as name}:
                self._emit("call", self._names.to_ours(name))
        return block

    def _delta(self, index: int | None, delta: _Delta) -> None:
        block = (
            self._blocks[-1] if index is None and self._blocks else self._by_index.get(index or 0)
        )
        if block is None:
            block = self._begin(index, {"type": _KINDS.get(delta.type or "", "unknown")})
        if delta.text:
            if block.kind == "text":
                self._emit("text", delta.text)
                block.pieces.append(delta.text)
        elif delta.partial_json:
            block.pieces.append(delta.partial_json)
        elif delta.thinking:
            self._emit("reasoning", delta.thinking)
            block.pieces.append(delta.thinking)
        elif delta.signature:
            block.signature += delta.signature

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Later counts replace earlier ones; a null does not."""
        if usage:
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def so_far(self) -> tuple[Usage, str]:
        written = "".join(
            piece for block in self._blocks if block.kind == "tool_use" for piece in block.pieces
        )
        return anthropic_usage(self._usage), written

    def reply(self) -> ModelReply:
        stop = _STOPS.get(self._stop, "end")
        tool_uses = [block for block in self._blocks if block.kind == "tool_use"]
        if tool_uses and stop == "end":
            stop = "tool_calls"
        # A call without arguments is complete, unless the reply was cut off before they could come.
        empty = "" if stop in ("length", "content_filter") else "{}"
        ids = wire_format.unique_ids([_string(block.start, "id") for block in tool_uses])
        calls = tuple(
            ModelCall(
                id=id,
                name=self._names.to_ours(_string(block.start, "name")),
                arguments=block.arguments() or empty,
            )
            for id, block in zip(ids, tool_uses, strict=True)
        )
        return ModelReply(
            text="".join(
                piece for block in self._blocks if block.kind == "text" for piece in block.pieces
            ),
            reasoning="".join(
                piece
                for block in self._blocks
                if block.kind == "thinking"
                for piece in block.pieces
            ),
            calls=calls,
            stop=stop,
            usage=anthropic_usage(self._usage),
            model=self._model,
            native=wire_format.native_of(
                self._dialect, [item for block in self._blocks if (item := _record(block))]
            ),
        )


def _string(start: dict[str, Any], key: str) -> str:
    value = start.get(key)
    return value if isinstance(value, str) else ""


def _record(block: _Block) -> dict[str, Any]:
    """Return how a block is remembered: thinking as it was signed, text and calls only by their
    place.
    """
    match block.kind:
        case "text":
            return {"type": "text", "characters": sum(map(len, block.pieces))}
        case "tool_use":
            return {"type": "call"}
        case "thinking":
            return {
                "type": "thinking",
                "thinking": "".join(block.pieces),
                "signature": block.signature,
            }
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": _string(block.start, "data")}
        case _:
            return {}
