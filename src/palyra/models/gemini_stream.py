"""Reads Gemini's answers, streamed or whole. Each chunk holds parts; a call comes in one piece."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from palyra.core.messages import Emit, ModelCall, ModelReply, Native, StopReason, Usage
from palyra.models import failures, request, wire_format
from palyra.models.http import ProviderEndpoint
from palyra.models.usage_report import gemini_usage
from palyra.models.wire_format import ToolNames


class _Called(Struct):
    name: str | None = None
    args: dict[str, Any] | None = None
    id: str | None = None


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Called | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = 0


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Chunk(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: dict[str, Any] | None = None
    model_version: str | None = None
    error: Any = None


_decoder: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)

_STOPS: Final[dict[str, StopReason]] = {
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
}
# Reasons by which it says that the model wrote nothing usable.
_MALFORMED: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    }
)
_UNSAID: Final = "FINISH_REASON_UNSPECIFIED"


class _Piece:
    """A part of the turn as it is remembered: a stretch of text, or a call."""

    __slots__ = ("call", "signature", "text")

    def __init__(self, call: _Called | None = None) -> None:
        self.call = call
        self.text: list[str] = []
        self.signature = ""

    def item(self) -> dict[str, Any]:
        sealed = {"thoughtSignature": self.signature} if self.signature else {}
        if self.call is not None:
            return {"type": "call", **sealed}
        return {"type": "text", "characters": sum(map(len, self.text)), **sealed}


class GeminiParser(request.EventParser):
    def __init__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str
    ) -> None:
        self._names = names
        self._emit = emit
        self._endpoint = endpoint
        self._dialect = dialect
        self._pieces: list[_Piece] = []
        self._reasoning: list[str] = []
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._model = ""
        self.complete = False

    def event(self, data: bytes) -> bool:
        chunk = request.decode(_decoder, _Chunk, data)
        if chunk is not None:
            self._chunk(chunk)
        # There is no mark behind the last chunk: the server ends the stream.
        return False

    def whole(self, body: bytes) -> None:
        chunk = request.decode(_decoder, _Chunk, body)
        self._chunk(chunk or _Chunk())
        if chunk is None or not chunk.candidates:
            raise failures.broken(self._endpoint, "no candidates")
        self.complete = True

    def _chunk(self, chunk: _Chunk) -> None:
        if chunk.error is not None:
            raise failures.of_event(self._endpoint, chunk.error)
        if chunk.usage_metadata:
            # Each is the sum so far.
            self._usage.update(chunk.usage_metadata)
        self._model = self._model or chunk.model_version or ""
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            why = (
                feedback.block_reason_message or f"the prompt was blocked: {feedback.block_reason}"
            )
            raise failures.of_event(self._endpoint, {"type": "content_filter", "message": why})
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidate(candidate)

    def _candidate(self, candidate: _Candidate) -> None:
        content = candidate.content
        parts = (content.parts if content is not None else None) or ()
        if parts:
            # Old models finish with every chunk: only the last one counts.
            self.complete = False
        for part in parts:
            self._part(part)
        reason = candidate.finish_reason
        if not reason or reason == _UNSAID:
            return
        if reason in _MALFORMED:
            why = candidate.finish_message or f"finish reason {reason}"
            raise failures.of_event(
                self._endpoint, {"type": "malformed_function_call", "message": why}
            )
        self._finish = reason
        self.complete = True

    def _part(self, part: _Part) -> None:
        text, signature = part.text or "", part.thought_signature or ""
        if part.function_call is not None:
            piece = _Piece(part.function_call)
            self._pieces.append(piece)
            self._emit("call", self._names.to_ours(part.function_call.name or ""))
        elif part.thought:
            if text:
                self._emit("reasoning", text)
                self._reasoning.append(text)
            if not signature:
                return
            piece = _Piece()
            self._pieces.append(piece)
        else:
            if text:
                self._emit("text", text)
            piece = self._stretch(sealed=bool(signature))
            piece.text.append(text)
        piece.signature = signature or piece.signature

    def _stretch(self, *, sealed: bool) -> _Piece:
        """The text that this continues. What is signed is a part of its own, as it came."""
        last = self._pieces[-1] if self._pieces else None
        if last is None or last.call is not None or last.signature or sealed:
            last = _Piece()
            self._pieces.append(last)
        return last

    def so_far(self) -> tuple[Usage, str]:
        return gemini_usage(self._usage), "".join(
            msgspec.json.encode(piece.call.args).decode()
            for piece in self._pieces
            if piece.call is not None and piece.call.args
        )

    def reply(self) -> ModelReply:
        called = [piece.call for piece in self._pieces if piece.call is not None]
        stop = _STOPS.get(self._finish, "end")
        if called and stop == "end":
            stop = "tool_calls"
        # A call without arguments is complete, unless the reply was cut off before they could come.
        empty = "" if stop in ("length", "content_filter") else "{}"
        ids = wire_format.unique_ids([call.id or "" for call in called])
        return ModelReply(
            text="".join(text for piece in self._pieces for text in piece.text),
            reasoning="".join(self._reasoning),
            calls=tuple(
                ModelCall(
                    id=id,
                    name=self._names.to_ours(call.name or ""),
                    arguments=empty
                    if call.args is None
                    else msgspec.json.encode(call.args).decode(),
                )
                for id, call in zip(ids, called, strict=True)
            ),
            stop=stop,
            usage=gemini_usage(self._usage),
            model=self._model,
            native=self._native(),
        )

    def _native(self) -> Native | None:
        """Kept only for its signatures."""
        if not any(piece.signature for piece in self._pieces):
            return None
        return Native(dialect=self._dialect, items=[piece.item() for piece in self._pieces])
