"""Every parameter of OpenAI's own library: read here, passed on to the provider, refused by name, or
without effect, which the answer says. None is dropped in silence.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.resources.chat.completions import Completions
from openai.resources.embeddings import Embeddings
from openai.resources.responses import Responses

from tests import daemon, history_clients
from tests.fake_provider import FakeProvider
from tests.history_clients import CONFIG, WEATHER, reaching

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "openai.md"
# How the library itself sends a request.
ITS_OWN = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
READ: Any = object()
TOOL = {"type": "function", "function": WEATHER}
# A value for each, and where the provider finds it; READ: it means something here, and other tests
# show what.
CHAT: dict[str, tuple[Any, Any]] = {
    "messages": (READ, READ),
    "model": (READ, READ),
    "stream": (READ, READ),
    "stream_options": (READ, READ),
    "tools": (READ, READ),
    "tool_choice": (READ, READ),
    "response_format": (READ, READ),
    "user": (READ, READ),
    "frequency_penalty": (0.5, "frequency_penalty"),
    "presence_penalty": (-0.5, "presence_penalty"),
    "max_completion_tokens": (100, "max_tokens"),
    "max_tokens": (100, "max_tokens"),
    "parallel_tool_calls": (False, "parallel_tool_calls"),
    "reasoning_effort": ("low", "reasoning_effort"),
    "seed": (7, "seed"),
    "service_tier": ("flex", "service_tier"),
    "stop": (["END"], "stop"),
    "temperature": (0.5, "temperature"),
    "top_p": (0.5, "top_p"),
    "verbosity": ("low", "verbosity"),
    "audio": ({"voice": "ash", "format": "wav"}, "refused"),
    "function_call": ("auto", "refused"),
    "functions": ([{"name": "f"}], "refused"),
    "logit_bias": ({"1": 2}, "refused"),
    "logprobs": (True, "refused"),
    "modalities": (["audio"], "refused"),
    "moderation": ({"model": "omni"}, "refused"),
    "n": (2, "refused"),
    "top_logprobs": (2, "refused"),
    "web_search_options": ({"search_context_size": "low"}, "refused"),
    "metadata": ({"a": "b"}, "ignored"),
    "prediction": ({"type": "content", "content": "x"}, "ignored"),
    "prompt_cache_key": ("k", "ignored"),
    "prompt_cache_options": ({"mode": "auto"}, "ignored"),
    "prompt_cache_retention": ("24h", "ignored"),
    "safety_identifier": ("u", "ignored"),
    "store": (True, "ignored"),
}
RESPONSES: dict[str, tuple[Any, Any]] = {
    "input": (READ, READ),
    "instructions": (READ, READ),
    "model": (READ, READ),
    "previous_response_id": (READ, READ),
    "stream": (READ, READ),
    "text": ({"verbosity": "low"}, "verbosity"),
    "tool_choice": (READ, READ),
    "tools": (READ, READ),
    "user": (READ, READ),
    "max_output_tokens": (100, "max_tokens"),
    "parallel_tool_calls": (False, "parallel_tool_calls"),
    "reasoning": ({"effort": "low"}, "reasoning_effort"),
    "service_tier": ("flex", "service_tier"),
    "temperature": (0.5, "temperature"),
    "top_p": (0.5, "top_p"),
    "access_programs": ({"a": 1}, "refused"),
    "background": (READ, READ),
    "context_management": ([{"type": "compaction"}], "refused"),
    "conversation": (READ, READ),
    "image": ({"a": 1}, "refused"),
    "max_tool_calls": (3, "refused"),
    "moderation": ({"model": "omni"}, "refused"),
    "prompt": ({"id": "pmpt_1"}, "refused"),
    "top_logprobs": (2, "refused"),
    "include": (["reasoning.encrypted_content"], "ignored"),
    "metadata": ({"a": "b"}, "ignored"),
    "prompt_cache_key": ("k", "ignored"),
    "prompt_cache_options": ({"mode": "auto"}, "ignored"),
    "prompt_cache_retention": ("24h", "ignored"),
    "safety_identifier": ("u", "ignored"),
    "store": (True, "ignored"),
    "stream_options": ({"include_obfuscation": False}, "ignored"),
    "truncation": ("auto", "ignored"),
}
Asked = tuple[OpenAI, FakeProvider]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with history_clients.recording() as provider:
        config = CONFIG.format(url=provider.url)
        with daemon.start(tmp_path_factory.mktemp("parameters"), config=config) as served:
            yield reaching(served), provider


@pytest.mark.parametrize(
    ("create", "decided"),
    [
        (Completions.create, CHAT),
        (Responses.create, RESPONSES),
        (Embeddings.create, {"input", "model", "dimensions", "encoding_format", "user"}),
    ],
)
def test_each_is_decided_and_documented(create: Any, decided: Any) -> None:
    named = set(inspect.signature(create).parameters) - ITS_OWN
    assert named == set(decided)
    document = DOCUMENT.read_text()
    assert [name for name in sorted(named) if f"`{name}" not in document] == []


def outcomes(table: dict[str, tuple[Any, Any]]) -> list[Any]:
    return [pytest.param(name, *each, id=name) for name, each in table.items() if each[1] != READ]


@pytest.mark.parametrize(("name", "value", "outcome"), outcomes(CHAT))
def test_a_chat_passes_on_refuses_or_says(
    asked: Asked, name: str, value: Any, outcome: str
) -> None:
    client, _ = asked
    create = client.chat.completions.with_raw_response.create
    messages: Any = [{"role": "user", "content": f"hello {name}"}]
    more: Any = {name: value, "tools": [TOOL]}
    decide(asked, name, value, outcome, lambda: create(model="palyra", messages=messages, **more))


@pytest.mark.parametrize(("name", "value", "outcome"), outcomes(RESPONSES))
def test_a_response_passes_on_refuses_or_says(
    asked: Asked, name: str, value: Any, outcome: str
) -> None:
    client, _ = asked
    create = client.responses.with_raw_response.create
    more: Any = {name: value}
    if name == "stream_options":
        more["stream"] = True
    said = next(iter(value.values())) if isinstance(value, dict) and value else value
    decide(asked, name, said, outcome, lambda: create(model="palyra", input="hello", **more))


def decide(asked: Asked, name: str, value: Any, outcome: str, ask: Any) -> None:
    _, provider = asked
    before = len(provider.requests)
    if outcome == "refused":
        with pytest.raises(openai.BadRequestError) as told:
            ask()
        assert (told.value.param, told.value.code) == (name, "invalid_input")
        assert len(provider.requests) == before
        return
    answer = ask()
    if outcome == "ignored":
        said = answer.headers["x-palyra-ignored"].split(", ")
        assert name in {each.partition(":")[0] for each in said}
        return
    assert "x-palyra-ignored" not in answer.headers
    assert provider.requests[-1].json()[outcome] == value


def test_what_other_servers_know_is_refused_or_named(asked: Asked) -> None:
    client, provider = asked
    create = client.chat.completions.with_raw_response.create
    messages: Any = [{"role": "user", "content": "hello"}]
    with pytest.raises(openai.BadRequestError) as told:
        create(model="palyra", messages=messages, extra_body={"top_k": 3})
    assert told.value.param == "top_k"
    more: dict[str, Any] = {"chat_id": "x", "nothing": None, "top_k": None, "no\nname": 1}
    answer = create(model="palyra", messages=messages, extra_body=more)
    assert answer.headers["x-palyra-ignored"] == "chat_id"
    assert provider.requests


def test_what_says_nothing_is_neither_sent_nor_refused(asked: Asked) -> None:
    client, provider = asked
    usual: Any = {
        "frequency_penalty": 0,
        "presence_penalty": 0.0,
        "logit_bias": {},
        "n": 1,
        "logprobs": False,
        "verbosity": "medium",
        "parallel_tool_calls": True,
        "service_tier": "auto",
        "store": False,
        "modalities": ["text"],
    }
    answer = client.chat.completions.with_raw_response.create(
        model="palyra", messages=[{"role": "user", "content": "hello"}], **usual
    )
    assert "x-palyra-ignored" not in answer.headers
    assert not set(usual) & set(provider.requests[-1].json())


@pytest.mark.parametrize(
    ("name", "value"),
    [("frequency_penalty", 3), ("verbosity", "loud"), ("temperature", -1), ("seed", 1 << 60)],
)
def test_a_value_that_cannot_be_is_refused_by_name(asked: Asked, name: str, value: Any) -> None:
    client, _ = asked
    with pytest.raises(openai.BadRequestError) as told:
        client.chat.completions.create(
            model="palyra",
            messages=[{"role": "user", "content": "hello"}],
            **{name: value},
        )
    assert told.value.param == name
