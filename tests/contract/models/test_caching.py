"""What each provider is told about caching the prompt, and who is told nothing."""

from typing import Any

import pytest

from palyra.core.messages import (
    AssistantMessage,
    ModelCall,
    ModelRequest,
    Text,
    ToolMessage,
    UserMessage,
)
from palyra.models.dialects import Dialect
from tests import prompt_prefix
from tests.contract.models.test_http import SCRIPT, ask, run, sent
from tests.elsewhere import sent_to
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request
from tests.model_reading import asks

OPENAI = "https://api.openai.com/v1"
AZURE = "https://mine.openai.azure.com/openai/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
COMPATIBLE = "https://llm.example/v1"
EPHEMERAL = {"type": "ephemeral"}


def conversation(turns: int = 3, model: str = "m") -> ModelRequest:
    messages: list[Any] = [UserMessage((Text("look around"),))]
    for number in range(turns):
        call = ModelCall(f"c{number}", "fs.list", "{}")
        messages += (
            AssistantMessage(text="I look.", calls=(call,)),
            ToolMessage(call.id, call.name, f"file {number}"),
        )
    messages.append(UserMessage((Text("and now?"),)))
    return asks("fs.list", messages=tuple(messages), cache_key="session-1", model=model)


def body(dialect: Dialect, base_url: str, model: str = "m", **endpoint: Any) -> dict[str, Any]:
    async def work() -> Request:
        answer = Answer(WRITERS[dialect](SCRIPT))
        return await sent_to(dialect, base_url, conversation(model=model), answer, **endpoint)

    return dict(run(work).json())


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(
    ("base_url", "mode", "fields"),
    [
        (OPENAI, "auto", {"prompt_cache_key": "session-1"}),
        (AZURE, "auto", {"prompt_cache_key": "session-1"}),
        (OPENAI, "off", {}),
        (COMPATIBLE, "auto", {}),
        (
            COMPATIBLE,
            "24h",
            {"prompt_cache_key": "session-1", "prompt_cache_retention": "24h"},
        ),
    ],
)
def test_the_sessions_key_goes_to_openai_and_to_whoever_is_said_to_take_it(
    dialect: Dialect, base_url: str, mode: str, fields: dict[str, str]
) -> None:
    sent_body = body(dialect, base_url, prompt_cache=mode)
    assert {key: value for key, value in sent_body.items() if "cache" in key} == fields
    assert prompt_prefix.marks(sent_body) == 0


def test_anthropic_gets_four_marks_and_the_last_two_move_with_the_conversation() -> None:
    sent_body = sent("anthropic", conversation(40)).json()
    assert prompt_prefix.marks(sent_body) == 4
    assert sent_body["tools"][-1]["cache_control"] == EPHEMERAL
    assert sent_body["system"][0]["cache_control"] == EPHEMERAL
    marked = [
        at
        for at, message in enumerate(sent_body["messages"])
        if "cache_control" in message["content"][-1]
    ]
    last = len(sent_body["messages"]) - 1
    assert marked == [last - 2, last]


@pytest.mark.parametrize(
    ("mode", "count", "mark"),
    [
        ("off", 0, None),
        ("5m", 4, EPHEMERAL),
        ("1h", 4, {"type": "ephemeral", "ttl": "1h"}),
    ],
)
def test_how_long_anthropic_keeps_it_is_a_setting(mode: str, count: int, mark: Any) -> None:
    sent_body = sent("anthropic", conversation(), prompt_cache=mode).json()
    assert prompt_prefix.marks(sent_body) == count
    assert sent_body["system"][0].get("cache_control") == mark


@pytest.mark.parametrize(
    ("model", "whole", "count"),
    [
        ("anthropic/claude-sonnet-4.5", EPHEMERAL, 4),
        ("google/gemini-2.5-pro", None, 3),
        ("openai/gpt-5", None, 0),
    ],
)
def test_openrouter_is_told_for_the_models_that_need_it(model: str, whole: Any, count: int) -> None:
    sent_body = body("openai-chat", OPENROUTER, model)
    assert sent_body.get("cache_control") == whole
    assert prompt_prefix.marks(sent_body) == count
    assert "prompt_cache_key" not in sent_body
    assert {type(each["content"]) for each in sent_body["messages"] if each["role"] == "tool"} == {
        str
    }


def test_a_server_that_refuses_marks_is_asked_without_them() -> None:
    def answer(request: Request) -> Answer:
        if prompt_prefix.marks(request.json()):
            refusal = b'{"error": {"message": "cache_control: extra inputs are not permitted"}}'
            return Answer(refusal, status=400, content_type="application/json")
        return Answer(WRITERS["openai-chat"](SCRIPT))

    async def work() -> list[int]:
        async with FakeProvider(answer) as server:
            await ask("openai-chat", server.url, conversation(), prompt_cache="5m")
            return [prompt_prefix.marks(request.json()) for request in server.requests]

    assert run(work) == [3, 0]
