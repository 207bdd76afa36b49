"""Reads the answers of servers that speak OpenAI responses, streamed or whole.

Deltas are shown as they come; what counts is the finished items, because servers differ in which
ids their deltas carry.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from palyra.core.messages import Emit, ModelCall, ModelReply, StopReason, Usage
from palyra.models import failures, request, wire_format
from palyra.models.http import ProviderEndpoint
from palyra.models.usage_report import responses_usage
from palyra.models.wire_format import ToolNames


class _Event(Struct):
    type: str | None = None
    delta: Any = None
    output_index: int | None = None
    summary_index: int | None = None
    item: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    error: Any = None
    code: Any = None
    message: Any = None


_decoder: msgspec.json.Decoder[_Event] = msgspec.json.Decoder(_Event)
_ENDS: Final = frozenset(
    {
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
        "response.done",
    }
)
_THOUGHTS: Final = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)


class ResponsesParser(request.EventParser):
    def __init__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str
    ) -> None:
        self._names = names
        self._emit = emit
        self._endpoint = endpoint
        self._dialect = dialect
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._items: dict[int, dict[str, Any]] = {}
        self._arguments: list[str] = []
        self._response: dict[str, Any] = {}
        self.complete = False

    def event(self, data: bytes) -> bool:
        event = request.decode(_decoder, _Event, data)
        if event is None:
            return False
        kind = event.type
        delta = event.delta
        if kind == "response.output_text.delta" or kind == "response.refusal.delta":
            if isinstance(delta, str) and delta:
                self._emit("text", delta)
                self._text.append(delta)
        elif kind in _THOUGHTS:
            if isinstance(delta, str) and delta:
                self._think(delta)
        elif kind == "response.output_item.added":
            if event.item and event.item.get("type") == "function_call":
                self._emit("call", self._names.to_ours(str(event.item.get("name") or "")))
        elif kind == "response.output_item.done":
            if event.item:
                self._items[
                    len(self._items) if event.output_index is None else event.output_index
                ] = event.item
        else:
            return self._outline(event)
        return False

    def _outline(self, event: _Event) -> bool:
        """The response around the items."""
        kind = event.type
        if kind == "response.function_call_arguments.delta":
            if isinstance(event.delta, str):
                self._arguments.append(event.delta)
        elif kind == "response.reasoning_summary_part.added":
            if event.summary_index and self._reasoning:
                self._think("\n\n")
        elif kind in _ENDS:
            self._end(event.response or {})
            return True
        elif kind == "error" or event.error is not None:
            raise failures.of_event(
                self._endpoint, event.error or {"code": event.code, "message": event.message}
            )
        return False

    def whole(self, body: bytes) -> None:
        response = msgspec.json.decode(body)
        if not isinstance(response, dict) or not isinstance(response.get("output"), list):
            error = response.get("error") if isinstance(response, dict) else None
            if error or (isinstance(response, dict) and response.get("message")):
                raise failures.of_event(self._endpoint, error or response)
            raise failures.broken(self._endpoint, "no output")
        self._end(response)

    def _end(self, response: dict[str, Any]) -> None:
        if response.get("error") or response.get("status") in ("failed", "cancelled"):
            raise failures.of_event(
                self._endpoint,
                response.get("error") or {"type": "server_error", "message": "the response failed"},
            )
        self._response = response
        self.complete = True

    def _think(self, text: str) -> None:
        self._emit("reasoning", text)
        self._reasoning.append(text)

    def so_far(self) -> tuple[Usage, str]:
        return Usage(), "".join(self._arguments)

    def reply(self) -> ModelReply:
        items = self._output()
        text = self._settled(items)
        function_calls = [item for item in items if item.get("type") == "function_call"]
        stop = self._stop(function_calls)
        # A call without arguments is complete, unless the reply was cut off before they could come.
        empty = "" if stop in ("length", "content_filter") else "{}"
        ids = wire_format.unique_ids(
            [str(item.get("call_id") or item.get("id") or "") for item in function_calls]
        )
        calls = tuple(
            ModelCall(
                id=id,
                name=self._names.to_ours(str(item.get("name") or "")),
                arguments=_arguments(item) or empty,
            )
            for id, item in zip(ids, function_calls, strict=True)
        )
        usage = self._response.get("usage")
        return ModelReply(
            text=text,
            reasoning="".join(self._reasoning),
            calls=calls,
            stop=stop,
            usage=responses_usage(usage if isinstance(usage, dict) else {}),
            model=str(self._response.get("model") or ""),
            native=wire_format.native_of(
                self._dialect, [record for item in items if (record := _record(item))]
            ),
        )

    def _output(self) -> list[dict[str, Any]]:
        """The finished items: those of the final response, unless the server leaves them out
        there.
        """
        final = self._response.get("output")
        listed = (
            [item for item in final if isinstance(item, dict)] if isinstance(final, list) else []
        )
        return (
            listed
            if len(listed) >= len(self._items)
            else [item for _, item in sorted(self._items.items())]
        )

    def _settled(self, items: list[dict[str, Any]]) -> str:
        """The text of the items; what of it and of the reasoning was never streamed is shown
        now.
        """
        shown = "".join(self._text)
        text = "".join(_text_of(item) for item in items) or shown
        if text.startswith(shown) and len(text) > len(shown):
            self._emit("text", text[len(shown) :])
        if not self._reasoning:
            thoughts = [thought for item in items if (thought := _thought_of(item))]
            if thoughts:
                self._think("\n\n".join(thoughts))
        return text

    def _stop(self, function_calls: list[dict[str, Any]]) -> StopReason:
        details = self._response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        if reason == "content_filter":
            return "content_filter"
        if reason or self._response.get("status") == "incomplete":
            return "length"
        return "tool_calls" if function_calls else "end"


def _arguments(item: dict[str, Any]) -> str:
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        return arguments.strip()
    return msgspec.json.encode(arguments).decode() if arguments else ""


def _text_of(item: dict[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in _parts(content))


def _thought_of(item: dict[str, Any]) -> str:
    if item.get("type") != "reasoning":
        return ""
    parts = _parts(item.get("content")) or _parts(item.get("summary"))
    return "\n\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _parts(content: Any) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _record(item: dict[str, Any]) -> dict[str, Any]:
    """Return how an item is remembered: reasoning as it came, text and calls only by their
    place.
    """
    match item.get("type"):
        case "message":
            return {"type": "text", "characters": len(_text_of(item))}
        case "function_call":
            return {"type": "call"}
        case "reasoning":
            return {
                key: value for key, value in item.items() if key != "status" and value is not None
            }
        case _:
            return {}
