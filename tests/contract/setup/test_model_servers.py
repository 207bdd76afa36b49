"""What servers say of themselves and of their models, read from servers that answer as the real ones
do, and from some that do not.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from palyra.features.setup.model import FoundModel, FoundProvider, NewProvider, Trial
from palyra.features.setup.trial import call_with_tool
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.serve.config import ChosenModels
from palyra.serve.wiring.provider_search import ProviderSearch
from tests import model_servers
from tests.fake_provider import Answer, Answering, FakeProvider
from tests.model_servers import said

NOBODY = ChosenModels(providers={}, default="", fallbacks=(), notes=())


def look(answering: Answering, **given: Any) -> FoundProvider:
    async def work() -> FoundProvider:
        http = HttpClient()
        try:
            async with asyncio.timeout(20), FakeProvider(answering) as server:
                search = ProviderSearch({}, http, lambda: NOBODY)
                new = NewProvider(name="it", kind="openai-chat", base_url=server.url, **given)
                return await search.models_of(new, "")
        finally:
            await http.close()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("answering", "title", "models"),
    [
        (
            model_servers.ollama(("qwen3:8b", "embed:1")),
            "Ollama",
            [FoundModel(name="qwen3:8b", context_tokens=8_192, tools=True, vision=False)],
        ),
        (
            model_servers.ollama(("qwen3:8b",), loaded=32_768, able=("completion", "vision")),
            "Ollama",
            [FoundModel(name="qwen3:8b", context_tokens=32_768, tools=False, vision=True)],
        ),
        (
            model_servers.lmstudio(),
            "LM Studio",
            [
                FoundModel(
                    name="qwen2.5-7b-instruct", context_tokens=16_384, tools=True, vision=False
                ),
                FoundModel(name="llava-7b", context_tokens=4_096, vision=True),
            ],
        ),
        (
            model_servers.llamacpp(),
            "llama.cpp",
            [FoundModel(name="qwen2.5-3b", context_tokens=12_288, vision=False)],
        ),
        (
            model_servers.vllm(),
            "vLLM",
            [FoundModel(name="Qwen/Qwen3-4B", context_tokens=20_480)],
        ),
    ],
)
def test_a_server_is_known_by_its_answers_and_says_its_models_with_their_windows(
    answering: Answering, title: str, models: list[FoundModel]
) -> None:
    found = look(answering)
    assert (found.title, list(found.models), found.local, found.advice) == (title, models, True, "")
    assert found.base_url.endswith("/v1")


def test_a_server_without_models_says_what_to_do() -> None:
    assert "ollama pull" in look(model_servers.ollama(())).advice


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>a router</html>", content_type="text/html"),
        Answer(b"", status=500),
        Answer(b'{"models": 3}', content_type="application/json"),
        Answer(b"[[[[", content_type="application/json"),
        Answer(b'{"data": "x"}', content_type="application/json"),
    ],
)
def test_what_is_no_model_server_is_said_to_be_none(answer: Answer) -> None:
    found = look(lambda request: answer)
    assert (found.models, bool(found.advice)) == ((), True)


def test_names_that_no_file_could_hold_are_left_out() -> None:
    rows = [{"id": "good"}, {"id": "bad\nname"}, {"id": ""}, {"id": 7}, {"id": "x" * 300}, "no"]
    found = look(lambda request: said({"data": rows}) if "/v1/" in request.path else said({}, 404))
    assert [each.name for each in found.models] == ["good"]


def search_with(env: Mapping[str, str]) -> list[FoundProvider]:
    async def work() -> list[FoundProvider]:
        http = HttpClient()
        try:
            async with asyncio.timeout(30):
                return await ProviderSearch(env, http, lambda: NOBODY).found()
        finally:
            await http.close()

    return asyncio.run(work())


def test_keys_are_found_by_their_variables_and_never_read_out() -> None:
    env = {
        "GOOGLE_API_KEY": "a-secret",
        "GROQ_API_KEY": "b-secret",
        "XAI_API_KEY": " ",
        "OTHER_API_KEY": "c",
    }
    found = [each for each in search_with(env) if not each.local]
    assert [(each.name, each.key) for each in found] == [
        ("gemini", "env:GOOGLE_API_KEY"),
        ("groq", "env:GROQ_API_KEY"),
    ]
    assert "secret" not in str(found)


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "0.0.0.0:{}", "http://localhost:{}"])
def test_ollama_is_looked_for_where_its_own_variable_says(host: str) -> None:
    with model_servers.serving(model_servers.ollama()) as server:
        port = model_servers.host_of(server).rpartition(":")[2]
        found = search_with({"OLLAMA_HOST": host.format(port)})
        assert [each.title for each in found if f":{port}/" in each.base_url] == ["Ollama"]


def trial(tools: str) -> Trial:
    async def work() -> Trial:
        http = HttpClient()
        try:
            async with FakeProvider(model_servers.ollama(tools=tools)) as server:
                endpoint = ProviderEndpoint(name="it", base_url=server.url)
                provider = open_provider("openai-chat", endpoint, http)
                return await call_with_tool(provider, "qwen3:8b", local=True)
        finally:
            await http.close()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("tools", "called"), [("calls", True), ("ignores", False), ("refuses", False)]
)
def test_a_trial_says_whether_the_model_calls_tools(tools: str, called: bool) -> None:
    made = trial(tools)
    assert (made.ok, made.tools, bool(made.fix)) == (True, called, not called)


def test_a_trial_with_a_server_that_fails_says_what_to_do() -> None:
    async def work() -> Trial:
        http = HttpClient()
        answer = Answer(json.dumps({"error": "no such model"}).encode(), status=404)
        try:
            async with FakeProvider(answer) as server:
                endpoint = ProviderEndpoint(name="it", base_url=server.url)
                return await call_with_tool(
                    open_provider("openai-chat", endpoint, http), "nobody", local=True
                )
        finally:
            await http.close()

    made = asyncio.run(work())
    assert (made.ok, made.tools, bool(made.fix)) == (False, None, True)
