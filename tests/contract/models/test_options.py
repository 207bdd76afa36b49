"""Effort, temperature and their like: how each dialect says them, and what becomes of a refusal."""

from typing import Any

import pytest

from palyra.core import call_options
from palyra.core.call_options import CallOptions
from palyra.core.messages import ModelFailure, ToolSchema
from palyra.models.capabilities import CARRIES
from palyra.models.dialects import Dialect
from tests.contract.models.test_http import EVERY, HELLO, SCRIPT, ask, run, sent
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request
from tests.model_reading import asks

EVERYTHING = CallOptions(
    effort="high",
    temperature=0.25,
    top_p=0.5,
    max_tokens=4096,
    stop=("END",),
    seed=7,
    service_tier="flex",
    frequency_penalty=0.5,
    presence_penalty=-0.5,
    verbosity="low",
    parallel_tool_calls=False,
)
SAID: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "reasoning_effort": "high",
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 4096,
        "stop": ["END"],
        "seed": 7,
        "service_tier": "flex",
        "frequency_penalty": 0.5,
        "presence_penalty": -0.5,
        "verbosity": "low",
    },
    "openai-responses": {
        "reasoning": {"effort": "high"},
        "temperature": 0.25,
        "top_p": 0.5,
        "max_output_tokens": 4096,
        "service_tier": "flex",
        "text": {"verbosity": "low"},
    },
    "anthropic": {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 4096,
        "stop_sequences": ["END"],
        "service_tier": "flex",
    },
}
SAID["gemini"] = {
    "generationConfig": {
        "thinkingConfig": {"thinkingLevel": "high"},
        "temperature": 0.25,
        "topP": 0.5,
        "maxOutputTokens": 4096,
        "stopSequences": ["END"],
        "seed": 7,
        "frequencyPenalty": 0.5,
        "presencePenalty": -0.5,
    }
}
OURS = {
    "model",
    "messages",
    "input",
    "stream",
    "stream_options",
    "instructions",
    "store",
    "include",
}

PROMPT = {"system", "systemInstruction", "contents"}


@EVERY
def test_each_dialect_says_what_it_has_words_for(dialect: Dialect) -> None:
    options = call_options.only(EVERYTHING, CARRIES[dialect])
    body = sent(dialect, asks(messages=HELLO, options=options, max_output_tokens=4096)).json()
    assert {key: value for key, value in body.items() if key not in {*OURS, *PROMPT}} == SAID[
        dialect
    ]


@pytest.mark.parametrize(
    ("dialect", "field", "said"),
    [
        ("openai-chat", "parallel_tool_calls", False),
        ("openai-responses", "parallel_tool_calls", False),
        ("anthropic", "tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
    ],
)
def test_one_call_at_a_time_is_said_where_there_are_tools(
    dialect: Dialect, field: str, said: Any
) -> None:
    options = CallOptions(parallel_tool_calls=False)
    tools = (ToolSchema("fs.list", "", {"type": "object"}),)
    assert sent(dialect, asks(messages=HELLO, options=options, tools=tools)).json()[field] == said
    assert field not in sent(dialect, asks(messages=HELLO, options=options)).json()


@EVERY
def test_what_nobody_says_is_left_to_the_provider(dialect: Dialect) -> None:
    body = sent(dialect, asks(messages=HELLO)).json()
    assert not {"reasoning_effort", "reasoning", "thinking", "temperature", "seed"} & set(body)


def refusing(field: str, message: str) -> Any:
    def answer(request: Request) -> Answer:
        if field in request.json():
            said = b'{"error": {"message": "%b"}}' % message.encode()
            return Answer(said, status=400, content_type="application/json")
        return Answer(WRITERS["openai-chat"](SCRIPT))

    return answer


@pytest.mark.parametrize(
    ("field", "options", "message"),
    [
        ("temperature", CallOptions(temperature=1.0), "Unsupported parameter: 'temperature'"),
        ("seed", CallOptions(seed=1), "seed is not supported"),
        ("reasoning_effort", CallOptions(effort="low"), "Unknown argument: reasoning_effort"),
        ("service_tier", CallOptions(service_tier="flex"), "Invalid service_tier argument"),
    ],
)
def test_a_refused_setting_is_left_out_but_what_was_asked_for_is_not(
    field: str, options: CallOptions, message: str
) -> None:
    async def work() -> None:
        async with FakeProvider(refusing(field, message)) as server:
            await ask("openai-chat", server.url, asks(messages=HELLO, options=options))
            assert [field in each.json() for each in server.requests] == [True, False]
            asked = asks(messages=HELLO, options=options, required=call_options.said(options))
            with pytest.raises(ModelFailure) as caught:
                await ask("openai-chat", server.url, asked)
            assert (caught.value.failure, message in caught.value.message) == ("bad_request", True)

    run(work)


@pytest.mark.parametrize(
    ("limit", "thinking", "most"),
    [
        (None, {"type": "enabled", "budget_tokens": 8192}, 8192 + 8192),
        (4000, {"type": "enabled", "budget_tokens": 2000}, 4000),
        (1000, None, 1000),
    ],
)
def test_an_older_claude_thinks_by_a_budget_that_leaves_room_for_the_answer(
    limit: int | None, thinking: Any, most: int
) -> None:
    def answer(request: Request) -> Answer:
        if "output_config" in request.json():
            said = b'{"error": {"message": "This model does not support the effort parameter."}}'
            return Answer(said, status=400, content_type="application/json")
        return Answer(WRITERS["anthropic"](SCRIPT))

    async def work() -> dict[str, Any]:
        options = CallOptions(effort="medium")
        async with FakeProvider(answer) as server:
            asked = asks(messages=HELLO, options=options, max_output_tokens=limit)
            await ask("anthropic", server.url, asked)
            return dict(server.requests[-1].json())

    body = run(work)
    assert (body.get("thinking"), body["max_tokens"]) == (thinking, most)
