"""The vendors' own SDKs and our adapters read the same recorded bytes and must come to the same
reply.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from palyra.core.messages import ModelReply, StopReason, Usage
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.usage_report import anthropic_usage, chat_usage, responses_usage
from tests.fake_provider import SSE, Answer, FakeProvider
from tests.material import material
from tests.model_reading import Recording, asks, recordings

KEY = "sk-test"
STOPS: dict[str | None, StopReason] = {
    "stop": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
Seen = tuple[str, list[tuple[str, Any]], StopReason, Usage]


def seen(text: str, calls: list[tuple[str, Any]], stop: str | None, usage: Usage) -> Seen:
    """A reply that ends with calls waits for them, whatever its stop reason is called."""
    meant = STOPS.get(stop, "end")
    return text, calls, "tool_calls" if calls and meant == "end" else meant, usage


def parsed(arguments: str | None) -> Any:
    return json.loads(arguments or "{}")


async def by_openai_chat(url: str, streamed: bool) -> Seen:
    import openai

    async with openai.AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        if not streamed:
            whole = await client.chat.completions.create(**asked)
            choice = whole.choices[0]
            calls = [
                (call.function.name, parsed(call.function.arguments))
                for call in choice.message.tool_calls or ()
            ]
            return seen(
                choice.message.content or "",
                calls,
                choice.finish_reason,
                chat_usage(dump(whole.usage)),
            )
        text, finish = "", None
        usage: dict[str, Any] = {}
        by_index: dict[int, list[str]] = {}
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            usage = dump(chunk.usage) or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for piece in choice.delta.tool_calls or ():
                    name_and_arguments = by_index.setdefault(piece.index, ["", ""])
                    name_and_arguments[0] += piece.function.name or ""
                    name_and_arguments[1] += piece.function.arguments or ""
    return seen(
        text,
        [(name, parsed(arguments)) for name, arguments in by_index.values()],
        finish,
        chat_usage(usage),
    )


async def by_openai_responses(url: str, streamed: bool) -> Seen:
    import openai

    async with openai.AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        if streamed:
            response = None
            async for event in await client.responses.create(model="m", input="hi", stream=True):
                if event.type in ("response.completed", "response.incomplete"):
                    response = event.response
            assert response is not None
        else:
            response = await client.responses.create(model="m", input="hi")
    calls = [
        (item.name, parsed(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]
    stop = "length" if response.status == "incomplete" else "stop"
    return seen(response.output_text, calls, stop, responses_usage(dump(response.usage)))


async def by_anthropic(url: str, streamed: bool) -> Seen:
    import anthropic

    async with anthropic.AsyncAnthropic(
        api_key=KEY, base_url=url.removesuffix("/v1"), max_retries=0
    ) as client:
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 10,
            "messages": [{"role": "user", "content": "hi"}],
        }
        if streamed:
            async with client.messages.stream(**asked) as stream:
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return seen(text, calls, message.stop_reason, anthropic_usage(dump(message.usage)))


SDKS: dict[str, Callable[[str, bool], Awaitable[Seen]]] = {
    "openai-chat": by_openai_chat,
    "openai-responses": by_openai_responses,
    "anthropic": by_anthropic,
}


def dump(usage: Any) -> dict[str, Any]:
    return usage.model_dump() if usage is not None else {}


async def by_us(dialect: Dialect, url: str) -> tuple[ModelReply, str]:
    http = HttpClient()
    shown: list[str] = []
    provider = open_provider(
        dialect, ProviderEndpoint(name="fake", base_url=url, api_key=KEY), http
    )
    try:
        reply = await provider.stream(
            asks(), lambda channel, text: shown.append(text) if channel == "text" else None
        )
    finally:
        await http.close()
    return reply, "".join(shown)


async def compare(recording: Recording) -> None:
    kind = SSE if recording.streamed else "application/json"
    async with FakeProvider(Answer(recording.body, content_type=kind, pieces=37)) as provider:
        theirs = await SDKS[recording.dialect](provider.url, recording.streamed)
        reply, shown = await by_us(recording.dialect, provider.url)  # type: ignore[arg-type]
    ours = (
        reply.text,
        [(call.name, parsed(call.arguments)) for call in reply.calls],
        reply.stop,
        reply.usage,
    )
    assert ours == theirs, recording.name
    assert shown == reply.text
    assert len({call.id for call in reply.calls}) == len(reply.calls)


@pytest.mark.parametrize("dialect", SDKS)
def test_our_adapter_and_the_vendors_sdk_read_a_recording_alike(dialect: str) -> None:
    found = [each for each in recordings(material("cassettes")) if each.dialect == dialect]
    assert found

    async def all_of_them() -> None:
        async with asyncio.timeout(60):
            for recording in found:
                await compare(recording)

    asyncio.run(all_of_them())


WHOLE: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "so",
                    "tool_calls": [
                        {
                            "id": "a",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"x": 1}'},
                        }
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1},
        },
    },
    "openai-responses": {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "so", "annotations": []}],
            },
            {
                "type": "web_search_call",
                "id": "w",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            {
                "type": "function_call",
                "id": "f1",
                "call_id": "a",
                "name": "f",
                "arguments": '{"x": 1}',
                "status": "completed",
            },
        ],
        "usage": {
            "input_tokens": 3,
            "output_tokens": 2,
            "total_tokens": 5,
            "input_tokens_details": {"cached_tokens": 1},
            "output_tokens_details": {"reasoning_tokens": 1},
        },
    },
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "so"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        ],
        "usage": {
            "input_tokens": 3,
            "output_tokens": 2,
            "cache_read_input_tokens": 1,
            "cache_creation_input_tokens": 4,
        },
    },
}


@pytest.mark.parametrize("dialect", WHOLE)
def test_an_answer_that_was_not_streamed_is_read_alike_too(dialect: str) -> None:
    recording = Recording("whole", dialect, json.dumps(WHOLE[dialect]).encode(), streamed=False)
    asyncio.run(asyncio.wait_for(compare(recording), 30))
