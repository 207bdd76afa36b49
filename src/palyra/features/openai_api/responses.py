"""POST /v1/responses: the same in OpenAI's newer words, where an answer is a list of items and the
next one names the last.
"""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Literal

from msgspec import Struct, field

from palyra.api.calls import SSE, ApiCall, HttpResponse, Nothing, StreamingResponse, encode, ok
from palyra.api.watch import HEARTBEAT
from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.events import ApprovalRequested
from palyra.core.messages import Usage
from palyra.features.openai_api import model_options, names, parse_request
from palyra.features.openai_api.answers import Answering, HandedCall
from palyra.features.openai_api.chat import question, where
from palyra.features.openai_api.run_stream import begin, follow, whole
from palyra.features.openai_api.sessions import Callers
from palyra.features.openai_api.wire_types import CachedTokens, ReasoningTokens, ResponseRequest
from palyra.system.clock import Clock

_Item = dict[str, Any]


class ResponseUsage(Struct, frozen=True, kw_only=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: CachedTokens
    output_tokens_details: ReasoningTokens


class Response(Struct, frozen=True, kw_only=True):
    id: str
    created_at: int
    model: str
    status: Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
    output: list[_Item]
    previous_response_id: str | None
    instructions: str | None
    usage: ResponseUsage | None = None
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = True
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    service_tier: str | None = None
    reasoning: dict[str, str | None] | None = None
    tool_choice: Any = "auto"
    tools: list[_Item] = []
    text: dict[str, Any] = field(default_factory=lambda: {"format": {"type": "text"}})
    background: bool | None = None
    conversation: dict[str, str] | None = None
    object: Literal["response"] = "response"
    palyra_session: str = ""


async def create(call: ApiCall[Nothing, ResponseRequest]) -> HttpResponse | StreamingResponse:
    answering, held = await begin(call, parse_request.responses)
    if call.body.stream:
        leave = partial(call.services.get(Callers).leave, call.principal, answering.begun)
        return StreamingResponse(
            SSE, _events(call, answering), HEARTBEAT, where(answering), left=leave, place=held
        )
    if call.body.background:
        # Its caller comes back for it.
        held.__exit__()
    else:
        await whole(call, answering, held)
    response = _response(call, answering, call.services.get(Clock).now_ms() // 1000)
    answer = ok(response)
    answer.headers = where(answering)
    return answer


class Wish(Struct, frozen=True, kw_only=True):
    """Request fields that a response repeats."""

    model: str = ""
    previous: str | None = None
    instructions: str | None = None
    tools: list[_Item] = []
    tool_choice: Any = "auto"
    form: _Item = field(default_factory=lambda: {"type": "text"})
    options: CallOptions = NOTHING
    background: bool | None = None
    conversation: str = ""


def function_tool(name: str, parameters: dict[str, Any] | None) -> _Item:
    return {"type": "function", "name": name, "parameters": parameters, "strict": False}


def _response(
    call: ApiCall[Nothing, ResponseRequest], answering: Answering, created: int
) -> Response:
    body = call.body
    wish = Wish(
        model=body.model,
        previous=body.previous_response_id,
        instructions=body.instructions,
        tools=[function_tool(each.name, each.parameters) for each in body.tools or ()],
        tool_choice=body.tool_choice or "auto",
        form=(body.text or {}).get("format") or {"type": "text"},
        options=model_options.of_response(body),
        background=body.background,
        conversation=parse_request.conversation_of(body),
    )
    return shown(wish, answering, created)


def shown(wish: Wish, answering: Answering, created: int) -> Response:
    begun = answering.begun
    cut_off = answering.finish in ("length", "content_filter")
    reason = "max_output_tokens" if answering.finish == "length" else "content_filter"
    error = answering.error
    cancelled = error is not None and error.details.get("reason") == "cancelled"
    return Response(
        id=names.response_name(begun.run_id, begun.seq),
        created_at=created,
        model=answering.model or wish.model or parse_request.AGENT,
        status=(
            "cancelled"
            if cancelled
            else "failed"
            if error
            else "in_progress"
            if not answering.over
            else "incomplete"
            if cut_off
            else "completed"
        ),
        output=output_of(answering) if answering.over else [],
        previous_response_id=wish.previous,
        instructions=wish.instructions,
        usage=_usage(answering.usage) if answering.over else None,
        error=(
            {"code": "server_error", "message": error.message} if error and not cancelled else None
        ),
        background=wish.background,
        conversation={"id": wish.conversation} if wish.conversation else None,
        incomplete_details={"reason": reason} if cut_off else None,
        tools=wish.tools,
        tool_choice=wish.tool_choice,
        text={"format": wish.form},
        temperature=wish.options.temperature,
        top_p=wish.options.top_p,
        max_output_tokens=wish.options.max_tokens,
        service_tier=wish.options.service_tier or None,
        reasoning={"effort": wish.options.effort} if wish.options.effort else None,
        palyra_session=begun.session_id,
    )


def output_of(answering: Answering) -> list[_Item]:
    """Items of an answer."""
    items = []
    if answering.text:
        items.append(_message(answering, "".join(answering.text), "completed"))
    return [*items, *(_function(answering, each, "completed") for each in answering.calls)]


def _message(answering: Answering, text: str | None, status: str) -> _Item:
    content = [] if text is None else [_part(text)]
    item_id = f"msg_{answering.begun.run_id}{answering.begun.seq:x}"
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _part(text: str) -> _Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _function(answering: Answering, call: HandedCall, status: str) -> _Item:
    item_id = f"fc_{call.name.removeprefix('call_')}"
    arguments = call.arguments if status == "completed" else ""
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": call.name,
        "name": call.tool,
        "arguments": arguments,
        "status": status,
    }


def _usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens_details=CachedTokens(usage.cached_tokens),
        output_tokens_details=ReasoningTokens(usage.reasoning_tokens),
    )


class _Teller:
    """Numbers the events of one stream."""

    def __init__(self) -> None:
        self._number = -1

    def __call__(self, kind: str, **more: Any) -> bytes:
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (
            kind.encode(),
            encode({"type": kind, "sequence_number": self._number, **more}),
        )


async def _events(
    call: ApiCall[Nothing, ResponseRequest], answering: Answering
) -> AsyncGenerator[bytes, None]:
    tell = _Teller()
    created = call.services.get(Clock).now_ms() // 1000
    response = _response(call, answering, created)
    yield tell("response.created", response=response) + tell(
        "response.in_progress", response=response
    )
    item_id = _message(answering, None, "")["id"]
    place: dict[str, Any] = {"item_id": item_id, "output_index": 0, "content_index": 0}
    speaking = False
    async for piece in follow(call.services, call.principal, answering):
        if isinstance(piece, ApprovalRequested):
            yield question(piece)
            continue
        begins = b""
        if not speaking:
            speaking = True
            begins = tell(
                "response.output_item.added",
                output_index=0,
                item=_message(answering, None, "in_progress"),
            )
            begins += tell("response.content_part.added", **place, part=_part(""))
        yield begins + tell("response.output_text.delta", **place, delta=piece, logprobs=[])
    if answering.error is not None:
        failed = _response(call, answering, created)
        yield tell("response.failed", response=failed)
        return
    told = b""
    if speaking:
        text = "".join(answering.text)
        told += tell("response.output_text.done", **place, text=text, logprobs=[])
        told += tell("response.content_part.done", **place, part=_part(text))
        told += tell(
            "response.output_item.done", output_index=0, item=_message(answering, text, "completed")
        )
    for index, each in enumerate(answering.calls, int(speaking)):
        item = _function(answering, each, "completed")
        at = {"item_id": item["id"], "output_index": index}
        told += tell(
            "response.output_item.added",
            output_index=index,
            item=_function(answering, each, "in_progress"),
        )
        told += tell("response.function_call_arguments.delta", **at, delta=each.arguments)
        told += tell(
            "response.function_call_arguments.done", **at, arguments=each.arguments, name=each.tool
        )
        told += tell("response.output_item.done", output_index=index, item=item)
    last = _response(call, answering, created)
    yield told + tell(f"response.{last.status}", response=last)
