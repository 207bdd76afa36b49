"""The adapters on the wire: what they send, how they fail, when they let go."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest

from palyra.core.call_options import CallOptions
from palyra.core.messages import (
    NO_CALL,
    AssistantMessage,
    FailureClass,
    Image,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Native,
    Text,
    ToolMessage,
    UserMessage,
)
from palyra.models.call_limits import silence
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, Script
from tests.model_reading import asks

KEY = "sk-very-secret"
DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
EVERY = pytest.mark.parametrize("dialect", DIALECTS)
HELLO = (UserMessage((Text("hi"),)),)
SCRIPT = Script(text=("Hel", "lo"), calls=(("a", "f", ('{"x"', ": 1}")),))
T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


async def ask(
    dialect: Dialect, url: str, request: ModelRequest | None = None, **endpoint: Any
) -> ModelReply:
    http = HttpClient()
    provider = open_provider(
        dialect,
        ProviderEndpoint(**({"name": "fake", "base_url": url, "api_key": KEY} | endpoint)),
        http,
    )
    try:
        return await provider.stream(request or asks(messages=HELLO), lambda channel, text: None)
    finally:
        await http.close()


def failure_of(dialect: Dialect, answer: Answer, **endpoint: Any) -> ModelFailure:
    async def work() -> ModelFailure:
        async with FakeProvider(answer) as server:
            with pytest.raises(ModelFailure) as caught:
                await ask(dialect, server.url, **endpoint)
            return caught.value

    failure = run(work)
    assert KEY not in str(failure)
    return failure


def sent(dialect: Dialect, request: ModelRequest, **endpoint: Any) -> Request:
    """The request as it arrives at the server."""

    async def work() -> Request:
        async with FakeProvider(Answer(WRITERS[dialect](SCRIPT))) as server:
            await ask(dialect, server.url, request, **endpoint)
            return server.requests[0]

    return run(work)


@EVERY
@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (401, "auth"),
        (403, "permission"),
        (429, "rate_limited"),
        (529, "overloaded"),
        (404, "bad_request"),
        (302, "bad_request"),
    ],
)
def test_a_status_becomes_its_class_with_the_wait_the_server_asks_for(
    dialect: Dialect, status: int, failure: FailureClass
) -> None:
    caught = failure_of(
        dialect,
        Answer(
            b'{"error": {"message": "no"}}',
            status,
            headers={"Retry-After": "3", "Location": "http://x/"},
        ),
    )
    assert (caught.failure, caught.retry_after_ms) == (failure, 3000)


@EVERY
def test_a_stream_that_is_dropped_is_a_network_failure(dialect: Dialect) -> None:
    body = WRITERS[dialect](SCRIPT)
    for cut in (0, 10, len(body) // 2):
        assert failure_of(dialect, Answer(body, cut=cut)).failure == "network"


@EVERY
def test_a_connection_that_is_dropped_after_the_end_mark_loses_nothing(dialect: Dialect) -> None:
    body = WRITERS[dialect](SCRIPT)

    async def work() -> ModelReply:
        async with FakeProvider(Answer(body, cut=len(body))) as server:
            return await ask(dialect, server.url)

    (call,) = run(work).calls
    assert (call.id, call.name, msgspec.json.decode(call.arguments)) == ("a", "f", {"x": 1})


@EVERY
@pytest.mark.parametrize("hang", [0, 100])
def test_silence_is_a_timeout(dialect: Dialect, hang: int) -> None:
    assert (
        failure_of(
            dialect, Answer(WRITERS[dialect](SCRIPT), hang=hang), limits=silence(0.05)
        ).failure
        == "timeout"
    )


@EVERY
def test_a_server_that_does_not_hang_up_after_the_end_mark_is_not_waited_for(
    dialect: Dialect,
) -> None:
    body = WRITERS[dialect](SCRIPT)

    async def work() -> ModelReply:
        async with FakeProvider(Answer(body, hang=len(body))) as server:
            reply = await ask(dialect, server.url)
            await server.client_left.wait()
            return reply

    assert run(work).text == "Hello"


@EVERY
def test_a_server_that_is_not_there_is_a_network_failure(dialect: Dialect) -> None:
    async def work() -> ModelFailure:
        async with FakeProvider(Answer()) as server:
            url = server.url
        with pytest.raises(ModelFailure) as caught:
            await ask(dialect, url)
        return caught.value

    assert run(work).failure == "network"


@EVERY
@pytest.mark.parametrize(
    ("url", "failure"), [("not a url", "bad_request"), ("http://[::1/v1", "bad_request")]
)
def test_an_address_that_is_none_is_a_bad_request(
    dialect: Dialect, url: str, failure: FailureClass
) -> None:
    with pytest.raises(ModelFailure) as caught:
        run(lambda: ask(dialect, url))
    assert caught.value.failure == failure


@EVERY
def test_a_key_with_a_line_break_is_refused_without_showing_it(dialect: Dialect) -> None:
    with pytest.raises(ModelFailure) as caught:
        run(lambda: ask(dialect, "http://127.0.0.1:1/v1", api_key=f"{KEY}\nX: y"))
    assert caught.value.failure == "auth"
    assert KEY not in str(caught.value)


@EVERY
def test_cancelling_closes_the_connection_so_that_the_server_stops(dialect: Dialect) -> None:
    async def work() -> None:
        heard = asyncio.Event()
        body = WRITERS[dialect](SCRIPT)
        http = HttpClient()
        shown = body.index(b"\n\n", body.index(b"Hel")) + 2
        async with FakeProvider(Answer(body, hang=shown)) as server:
            provider = open_provider(
                dialect, ProviderEndpoint(name="fake", base_url=server.url), http
            )
            task = asyncio.create_task(
                provider.stream(asks(messages=HELLO), lambda channel, text: heard.set())
            )
            await heard.wait()
            assert not server.client_left.is_set()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(20):
                await server.client_left.wait()
        await http.close()

    run(work)


@EVERY
def test_one_connection_serves_request_after_request(dialect: Dialect) -> None:
    async def work() -> int:
        http = HttpClient()
        async with FakeProvider(Answer(WRITERS[dialect](SCRIPT), pieces=37)) as server:
            provider = open_provider(
                dialect, ProviderEndpoint(name="fake", base_url=server.url), http
            )
            for _ in range(5):
                await provider.stream(asks(messages=HELLO), lambda channel, text: None)
            await http.close()
            return server.connections

    assert run(work) == 1


def test_a_part_that_the_server_refuses_is_left_out_and_stays_out() -> None:
    body = WRITERS["openai-chat"](SCRIPT)

    def picky(request: Request) -> Answer:
        asked = request.json()
        for part in ("stream_options", "temperature"):
            if part in asked:
                return Answer(
                    f'{{"detail": [{{"loc": ["body", "{part}"], "msg": "Extra inputs are not permitted"}}]}}'.encode(),
                    422,
                )
        if "max_tokens" in asked:
            return Answer(
                b'{"error": {"message": "Unsupported parameter: \'max_tokens\'. Use \'max_completion_tokens\' instead."}}',
                400,
            )
        return Answer(body)

    async def work() -> list[set[str]]:
        http = HttpClient()
        async with FakeProvider(picky) as server:
            provider = open_provider(
                "openai-chat", ProviderEndpoint(name="fake", base_url=server.url), http
            )
            for _ in range(2):
                await provider.stream(
                    asks(messages=HELLO, options=CallOptions(temperature=0.5), max_output_tokens=9),
                    lambda channel, text: None,
                )
            await http.close()
            return [
                set(request.json()) - {"model", "messages", "stream"} for request in server.requests
            ]

    assert run(work) == [
        {"stream_options", "temperature", "max_tokens"},
        {"temperature", "max_tokens"},
        {"max_tokens"},
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    ]


def test_a_refusal_that_no_part_explains_is_given_up_after_one_request() -> None:
    async def work() -> int:
        async with FakeProvider(
            Answer(b'{"error": {"message": "temperature: stream_options: messages: nope"}}', 400)
        ) as server:
            with pytest.raises(ModelFailure):
                await ask("anthropic", server.url)
            return len(server.requests)

    assert run(work) == 1


@pytest.mark.parametrize(
    ("dialect", "refusal"),
    [
        ("openai-chat", "Invalid content type. image_url is only supported by certain models."),
        ("openai-chat", "this/model is not a multimodal model"),
        ("openai-responses", "Invalid value: 'input_image'. Supported values are: 'input_text'"),
        ("anthropic", "messages.0.content.1: this model does not support image input"),
    ],
)
def test_a_server_whose_model_cannot_see_gets_words_instead_of_images(
    dialect: Dialect, refusal: str
) -> None:
    def blind(request: Request) -> Answer:
        if PICTURE_URL.partition(",")[2] in request.body.decode():
            return Answer(msgspec.json.encode({"error": {"message": refusal}}), 400)
        return Answer(WRITERS[dialect](SCRIPT))

    async def work() -> list[str]:
        async with FakeProvider(blind) as server:
            assert (await ask(dialect, server.url, asks(messages=TALK))).text == "Hello"
            return [request.body.decode() for request in server.requests]

    with_images, without = run(work)
    assert with_images.count("iVBORw==") == 2
    assert without.count("[an image, not shown: this model cannot see images]") == 2


PICTURE = Image("image/png", b"\x89PNG")
PICTURE_URL = "data:image/png;base64,iVBORw=="
TALK = (
    UserMessage((Text("look"), PICTURE)),
    UserMessage((Text("closely"),)),
    AssistantMessage(
        text="I will",
        reasoning="hm",
        calls=(ModelCall("a", "fs.read", '{"x": 1}'), ModelCall("b", "fs.read", "{broken")),
    ),
    ToolMessage("a", "fs.read", "gone", is_error=True),
    ToolMessage("b", "fs.read", "", images=(PICTURE,)),
    UserMessage((Text("go on"),)),
)
CONVERSATION = asks(
    "fs.read",
    messages=TALK,
    max_output_tokens=99,
    options=CallOptions(temperature=0.5),
    json_mode=True,
    tool_choice=NO_CALL,
    cache_key="s1",
)
BROKEN = '{"malformed_arguments":"{broken"}'
SCHEMA = {"type": "object", "properties": {}}
ASKED_FOR_JSON = "be brief\n\nAnswer with one JSON object and nothing else."


def test_a_conversation_in_chat_completions() -> None:
    request = sent(
        "openai-chat",
        CONVERSATION,
        extra_body={"reasoning_effort": "low"},
        send_cache_key=True,
        headers={"X-Title": "t"},
    )
    assert (request.path, request.headers["authorization"], request.headers["x-title"]) == (
        "/v1/chat/completions",
        f"Bearer {KEY}",
        "t",
    )
    image = {"type": "image_url", "image_url": {"url": PICTURE_URL}}
    assert request.json() == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 99,
        "temperature": 0.5,
        "response_format": {"type": "json_object"},
        "tool_choice": "none",
        "prompt_cache_key": "s1",
        "reasoning_effort": "low",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "fs_read",
                    "description": "does fs.read",
                    "parameters": SCHEMA,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": ASKED_FOR_JSON},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    image,
                    {"type": "text", "text": "closely"},
                ],
            },
            {
                "role": "assistant",
                "content": "I will",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "fs_read", "arguments": '{"x": 1}'},
                    },
                    {
                        "id": "b",
                        "type": "function",
                        "function": {"name": "fs_read", "arguments": BROKEN},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "error: gone"},
            {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Images from fs_read:"},
                    image,
                    {"type": "text", "text": "go on"},
                ],
            },
        ],
    }


def test_a_conversation_in_responses() -> None:
    request = sent("openai-responses", CONVERSATION)
    assert (request.path, request.headers["authorization"]) == ("/v1/responses", f"Bearer {KEY}")
    image = {"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"}
    assert request.json() == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": ASKED_FOR_JSON,
        "max_output_tokens": 99,
        "temperature": 0.5,
        "text": {"format": {"type": "json_object"}},
        "tool_choice": "none",
        "tools": [
            {
                "type": "function",
                "name": "fs_read",
                "description": "does fs.read",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "look"}, image],
            },
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "closely"}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I will"}],
            },
            {"type": "function_call", "call_id": "a", "name": "fs_read", "arguments": '{"x": 1}'},
            {"type": "function_call", "call_id": "b", "name": "fs_read", "arguments": BROKEN},
            {"type": "function_call_output", "call_id": "a", "output": "error: gone"},
            {
                "type": "function_call_output",
                "call_id": "b",
                "output": [{"type": "input_text", "text": "(no output)"}, image],
            },
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "go on"}],
            },
        ],
    }


def test_a_conversation_in_anthropic_messages() -> None:
    request = sent("anthropic", CONVERSATION)
    assert (request.path, request.headers["x-api-key"]) == ("/v1/messages", KEY)
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
    }
    cached = {"cache_control": {"type": "ephemeral"}}
    assert request.json() == {
        "model": "m",
        "stream": True,
        "max_tokens": 99,
        "temperature": 0.5,
        "system": [
            {"type": "text", "text": "be brief", **cached},
            {"type": "text", "text": "Answer with one JSON object and nothing else."},
        ],
        "tools": [
            {"name": "fs_read", "description": "does fs.read", "input_schema": SCHEMA, **cached}
        ],
        "tool_choice": {"type": "none"},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    image,
                    {"type": "text", "text": "closely", **cached},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will"},
                    {"type": "tool_use", "id": "a", "name": "fs_read", "input": {"x": 1}},
                    {
                        "type": "tool_use",
                        "id": "b",
                        "name": "fs_read",
                        "input": {"malformed_arguments": "{broken"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": "gone",
                        "is_error": True,
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "(no output)"}, image],
                    },
                    {"type": "text", "text": "go on", **cached},
                ],
            },
        ],
    }


@EVERY
def test_a_providers_own_record_of_a_turn_goes_back_to_it_and_to_nobody_else(
    dialect: Dialect,
) -> None:
    script = Script(text=("so",), reasoning=("hm",), calls=(("a", "f", ("{}",)),))

    async def work() -> tuple[str, str]:
        async with FakeProvider(Answer(WRITERS[dialect](script))) as server:
            reply = await ask(dialect, server.url)
            assert reply.native is not None
            turn = AssistantMessage(
                text=reply.text, reasoning=reply.reasoning, calls=reply.calls, native=reply.native
            )
            foreign = AssistantMessage(
                text=reply.text,
                calls=reply.calls,
                native=Native(f"{dialect}@elsewhere", reply.native.items),
            )
            for each in (turn, foreign):
                await ask(
                    dialect, server.url, asks(messages=(*HELLO, each, ToolMessage("a", "f", "1")))
                )
            return server.requests[1].body.decode(), server.requests[2].body.decode()

    own, other = run(work)
    sealed = {
        "openai-chat": '"reasoning_content":"hm"',
        "openai-responses": '"encrypted_content":"sealed"',
        "anthropic": '"signature":"signed"',
        "gemini": '"thoughtSignature":"signed"',
    }
    assert sealed[dialect] in own
    assert sealed[dialect] not in other


@EVERY
def test_ids_that_repeat_between_turns_are_unique_on_the_wire(dialect: Dialect) -> None:
    turns = (
        AssistantMessage(calls=(ModelCall("call_0", "f", "{}"),)),
        ToolMessage("call_0", "f", "1"),
    )
    body = sent(dialect, asks(messages=(*HELLO, *turns, *turns))).body.decode()
    assert body.count('"call_0"') == 2
    assert body.count('"call_1"') == 2


@EVERY
def test_half_a_surrogate_pair_in_a_conversation_does_not_make_it_unusable(
    dialect: Dialect,
) -> None:
    assert "a?b" in sent(dialect, asks(messages=(UserMessage((Text("a\ud83db"),)),))).body.decode()


@EVERY
def test_a_large_image_goes_through(dialect: Dialect) -> None:
    picture = Image("image/png", b"x" * 2_000_000)
    assert (
        len(sent(dialect, asks(messages=(UserMessage((Text("look"), picture)),))).body) > 2_600_000
    )


@EVERY
def test_a_cache_key_goes_only_to_hosts_that_take_it(dialect: Dialect) -> None:
    assert "prompt_cache_key" not in sent(dialect, asks(messages=HELLO, cache_key="s1")).json()


def test_without_instructions_the_tools_carry_the_cache_mark() -> None:
    body = sent("anthropic", asks("f", "g", messages=HELLO, instructions="")).json()
    assert [("cache_control" in tool) for tool in body["tools"]] == [False, True]
    assert "system" not in body
