"""What every ModelProvider keeps, whatever is behind it. A new provider joins with one line in
PROVIDERS.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from palyra.core.messages import (
    Channel,
    ModelReply,
    ModelRequest,
    Text,
    ToolSchema,
    Usage,
    UserMessage,
)
from palyra.core.ports import ModelProvider
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from tests.fake_provider import WRITERS, Answer, FakeProvider, Script

Opening = Callable[[Script], AbstractAsyncContextManager[ModelProvider]]


def adapter(dialect: Dialect) -> Opening:
    """One of our adapters, speaking to a server on loopback that replies with the script."""

    @asynccontextmanager
    async def opened(script: Script) -> AsyncIterator[ModelProvider]:
        http = HttpClient()
        async with FakeProvider(Answer(WRITERS[dialect](script), pieces=37)) as server:
            try:
                yield open_provider(
                    dialect,
                    ProviderEndpoint(name=dialect, base_url=server.url, api_key="sk-test"),
                    http,
                )
            finally:
                await http.close()

    return opened


def ready(make: Callable[[Script], ModelProvider]) -> Opening:
    """A provider that needs nothing around it. One that cannot follow a script is held to
    everything else.
    """

    @asynccontextmanager
    async def opened(script: Script) -> AsyncIterator[ModelProvider]:
        yield make(script)

    return opened


def scripted(script: Script) -> ModelProvider:
    ids = [id for id, _, _ in script.calls]
    calls = tuple(
        ScriptedCall(
            id=id if ids.count(id) == 1 else "",
            name=name.replace("_", "."),
            arguments="".join(pieces),
        )
        for id, name, pieces in script.calls
    )
    used = Usage(input_tokens=script.input_tokens, output_tokens=script.output_tokens)
    return ScriptedModel(
        [Turn(text=script.text, reasoning=script.reasoning, calls=calls, usage=used)]
    )


# The flag: whether it can be made to say what the script says.
PROVIDERS: dict[str, tuple[Opening, bool]] = {
    "openai-chat": (adapter("openai-chat"), True),
    "openai-responses": (adapter("openai-responses"), True),
    "anthropic": (adapter("anthropic"), True),
    "gemini": (adapter("gemini"), True),
    "scripted": (ready(scripted), True),
}
EVERY = pytest.mark.parametrize(
    "opened", [opening for opening, _ in PROVIDERS.values()], ids=list(PROVIDERS)
)
SCRIPTABLE = pytest.mark.parametrize(
    "opened",
    [opening for opening, follows in PROVIDERS.values() if follows],
    ids=[name for name, (_, follows) in PROVIDERS.items() if follows],
)

TOOLS = (
    ToolSchema(
        "fs.list", "lists a folder", {"type": "object", "properties": {"path": {"type": "string"}}}
    ),
    ToolSchema(
        "fs.read", "reads a file", {"type": "object", "properties": {"path": {"type": "string"}}}
    ),
)
REQUEST = ModelRequest(
    model="fake-1",
    instructions="be brief",
    messages=(UserMessage((Text("list the files"),)),),
    tools=TOOLS,
)
TALK = Script(text=("Hel", "lo, ", "wörld"), reasoning=("hm", "m"))
CALLS = Script(
    text=("so",),
    calls=(("a", "fs_list", ('{"path"', ': "."}')), ("b", "fs_read", ('{"path": "x"}',))),
)

Heard = list[tuple[Channel, str]]


def stream(opened: Opening, script: Script) -> tuple[ModelReply, Heard]:
    async def run() -> tuple[ModelReply, Heard]:
        heard: Heard = []
        async with asyncio.timeout(20), opened(script) as provider:
            return await provider.stream(
                REQUEST, lambda channel, text: heard.append((channel, text))
            ), heard

    return asyncio.run(run())


@EVERY
@pytest.mark.parametrize("script", [TALK, CALLS], ids=["talk", "calls"])
def test_what_is_shown_is_what_is_returned(opened: Opening, script: Script) -> None:
    reply, heard = stream(opened, script)
    assert "".join(text for channel, text in heard if channel == "text") == reply.text
    assert "".join(text for channel, text in heard if channel == "reasoning") == reply.reasoning
    assert [text for channel, text in heard if channel == "call"] == [
        call.name for call in reply.calls
    ]
    assert all(text for _, text in heard)


@EVERY
def test_call_ids_are_present_and_unique_within_a_reply(opened: Opening) -> None:
    reply, _ = stream(
        opened,
        Script(
            calls=(
                ("same", "fs_list", ("{}",)),
                ("same", "fs_list", ("{}",)),
                ("", "fs_read", ("{}",)),
            )
        ),
    )
    ids = [call.id for call in reply.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@EVERY
def test_usage_is_reported(opened: Opening) -> None:
    reply, _ = stream(opened, TALK)
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


@EVERY
def test_the_provider_has_a_name(opened: Opening) -> None:
    async def run() -> str:
        async with opened(TALK) as provider:
            return provider.name

    assert asyncio.run(run())


@EVERY
def test_a_cancelled_call_ends_at_once(opened: Opening) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), opened(TALK) as provider:
            task = asyncio.create_task(provider.stream(REQUEST, lambda channel, text: None))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())


@SCRIPTABLE
def test_text_arrives_in_its_pieces_and_apart_from_reasoning(opened: Opening) -> None:
    reply, heard = stream(opened, TALK)
    assert (reply.text, reply.reasoning, reply.stop) == ("Hello, wörld", "hmm", "end")
    assert heard == [
        ("reasoning", "hm"),
        ("reasoning", "m"),
        ("text", "Hel"),
        ("text", "lo, "),
        ("text", "wörld"),
    ]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
def test_who_waits_for_the_first_word_has_it_before_the_rest_is_read(dialect: Dialect) -> None:
    turns: list[int] = []

    async def run() -> None:
        heard: list[str] = []

        def emit(channel: Channel, piece: str) -> None:
            if not heard:
                asyncio.get_running_loop().call_soon(lambda: turns.append(len(heard)))
            heard.append(piece)

        http = HttpClient()
        script = Script(text=tuple(f"word{number} " for number in range(100)))
        async with FakeProvider(Answer(WRITERS[dialect](script))) as server:
            provider = open_provider(
                dialect,
                ProviderEndpoint(name=dialect, base_url=server.url, api_key="sk-test"),
                http,
            )
            reply = await provider.stream(
                ModelRequest(model="m", instructions="", messages=(UserMessage((Text("hi"),)),)),
                emit,
            )
            await http.close()
        assert reply.text == "".join(script.text) == "".join(heard)

    asyncio.run(run())
    # However much has come in one piece: somebody else had a turn when a few words had been read.
    assert turns, "nobody else had a turn"
    assert turns[0] < 20


@SCRIPTABLE
def test_parallel_calls_come_back_in_order_under_our_names(opened: Opening) -> None:
    reply, _ = stream(opened, CALLS)
    assert [(each.id, each.name, json.loads(each.arguments)) for each in reply.calls] == [
        ("a", "fs.list", {"path": "."}),
        ("b", "fs.read", {"path": "x"}),
    ]
    assert (reply.stop, reply.usage) == ("tool_calls", Usage(input_tokens=11, output_tokens=7))
