"""POST /v1/chat/completions: the agent as a model that answers a chat."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from palyra.api.calls import (
    SSE,
    ApiCall,
    Headers,
    HttpResponse,
    Nothing,
    StreamingResponse,
    encode,
    ok,
)
from palyra.api.watch import HEARTBEAT
from palyra.core.events import ApprovalRequested
from palyra.core.messages import Usage
from palyra.features.openai_api import errors, parameters, parse_request
from palyra.features.openai_api.answers import Answering, HandedCall
from palyra.features.openai_api.run_stream import begin, follow, whole
from palyra.features.openai_api.sessions import Callers
from palyra.features.openai_api.wire_types import (
    CachedTokens,
    CalledFunction,
    ChatCompletion,
    ChatRequest,
    ChatUsage,
    Choice,
    CompletionMessage,
    ReasoningTokens,
    ToolCall,
)
from palyra.system.clock import Clock

DONE = b"data: [DONE]\n\n"


async def completions(call: ApiCall[Nothing, ChatRequest]) -> HttpResponse | StreamingResponse:
    answering, held = await begin(call, parse_request.chat)
    if call.body.stream:
        leave = partial(call.services.get(Callers).leave, call.principal, answering.begun)
        return StreamingResponse(
            SSE, _chunks(call, answering), HEARTBEAT, where(answering), left=leave, place=held
        )
    await whole(call, answering, held)
    content = "".join(answering.text)
    calls = [_tool_call(each) for each in answering.calls]
    message = CompletionMessage(
        content=content or None if calls else content, tool_calls=calls or UNSET
    )
    completion = ChatCompletion(
        id=_id(answering),
        created=call.services.get(Clock).now_ms() // 1000,
        model=answering.model or call.body.model or parse_request.AGENT,
        choices=[Choice(message=message, finish_reason=answering.finish)],
        usage=_usage(answering.usage),
        palyra_session=answering.begun.session_id,
    )
    answer = ok(completion)
    answer.headers = where(answering)
    return answer


def where(answering: Answering) -> Headers:
    ignored = parameters.header(answering.ignored)
    return (
        (b"x-palyra-session", answering.begun.session_id.encode()),
        (b"x-palyra-run", answering.begun.run_id.encode()),
        *(((b"x-palyra-ignored", ignored),) if ignored else ()),
    )


def question(asked: ApprovalRequested) -> bytes:
    """A comment for who looks into the stream; programs pass over it."""
    return b": waits for approval %b, see `palyra approvals`\n\n" % asked.approval_id.encode()


def _id(answering: Answering) -> str:
    return f"chatcmpl-{answering.begun.run_id}"


async def _chunks(
    call: ApiCall[Nothing, ChatRequest], answering: Answering
) -> AsyncGenerator[bytes, None]:
    options = call.body.stream_options
    head = {
        "id": _id(answering),
        "object": "chat.completion.chunk",
        "created": call.services.get(Clock).now_ms() // 1000,
        "model": call.body.model or parse_request.AGENT,
    }
    if options is not None and options.include_usage:
        head["usage"] = None

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return b"data: %b\n\n" % encode({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    async for piece in follow(call.services, call.principal, answering):
        yield question(piece) if isinstance(piece, ApprovalRequested) else chunk({"content": piece})
    if answering.error is not None:
        yield b"data: %b\n\n" % errors.body_of(answering.error)
        return
    if answering.calls:
        calls = [
            msgspec.structs.replace(_tool_call(each), index=index)
            for index, each in enumerate(answering.calls)
        ]
        yield chunk({"tool_calls": calls})
    last = chunk({}, answering.finish)
    if options is not None and options.include_usage:
        last += b"data: %b\n\n" % encode({**head, "choices": [], "usage": _usage(answering.usage)})
    yield last + DONE


def _tool_call(call: HandedCall) -> ToolCall:
    return ToolCall(id=call.name, function=CalledFunction(call.tool, call.arguments))


def _usage(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=CachedTokens(usage.cached_tokens),
        completion_tokens_details=ReasoningTokens(usage.reasoning_tokens),
    )
