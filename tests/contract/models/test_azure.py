"""Azure and Bedrock: where requests go, how they carry the key, and what comes back.

Bedrock's streams are recordings of the material. Azure's samples were written from Microsoft's
public API reference, because no recording has them: its streams begin with the filter's findings
and no choice, and a blocked prompt is a 400 with an inner error.
"""

import pytest

from palyra.core.messages import ModelFailure
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import ProviderEndpoint
from tests.contract.models.test_http import HELLO, SCRIPT, failure_of, run
from tests.elsewhere import Elsewhere, sent_to
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, chat_chunk, sse
from tests.material import material
from tests.model_reading import asks, read, recordings

AZURE = "https://mine.openai.azure.com"
VERSION = {"api_version": "2024-10-21"}


def sent(dialect: Dialect, base_url: str, **endpoint: str) -> Request:
    async def work() -> Request:
        answer = Answer(WRITERS[dialect](SCRIPT))
        return await sent_to(
            dialect, base_url, asks(messages=HELLO, model="my gpt"), answer, **endpoint
        )

    return run(work)


@pytest.mark.parametrize(
    ("dialect", "base_url", "endpoint", "path"),
    [
        ("openai-chat", AZURE, {}, "/openai/v1/chat/completions"),
        ("openai-chat", f"{AZURE}/openai/v1/", {}, "/openai/v1/chat/completions"),
        ("openai-responses", f"{AZURE}/openai/v1", {}, "/openai/v1/responses"),
        ("openai-responses", AZURE, {}, "/openai/v1/responses"),
        (
            "openai-chat",
            AZURE,
            VERSION,
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            "openai-chat",
            f"{AZURE}/openai/deployments/other",
            VERSION,
            "/openai/deployments/other/chat/completions?api-version=2024-10-21",
        ),
        (
            "openai-chat",
            f"{AZURE}/openai/deployments/other?api-version=2025-01-01-preview",
            {},
            "/openai/deployments/other/chat/completions?api-version=2025-01-01-preview",
        ),
        (
            "openai-responses",
            AZURE,
            {"api_version": "preview"},
            "/openai/responses?api-version=preview",
        ),
        # Behind a gateway of one's own, the version says what it is.
        (
            "openai-chat",
            "https://gateway.example/ai",
            VERSION,
            "/ai/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_a_deployment_is_reached_by_either_door(
    dialect: Dialect, base_url: str, endpoint: dict[str, str], path: str
) -> None:
    request = sent(dialect, base_url, **endpoint)
    assert request.path == path
    assert request.headers["api-key"] == "sk-test"
    assert "authorization" not in request.headers
    assert request.json()["model"] == "my gpt"


def test_a_token_of_entra_id_is_a_bearer_token() -> None:
    async def work() -> Request:
        async with FakeProvider(Answer(WRITERS["openai-chat"](SCRIPT))) as server:
            http = Elsewhere(server.url)
            endpoint = ProviderEndpoint(name="azure", base_url=AZURE, api_key="eyJhbGciOi.x.y")
            provider = open_provider("openai-chat", endpoint, http)
            await provider.stream(asks(messages=HELLO), lambda channel, text: None)
            await http.close()
            return server.requests[0]

    headers = run(work).headers
    assert (headers["authorization"], "api-key" in headers) == ("Bearer eyJhbGciOi.x.y", False)


def test_whoever_is_not_azure_gets_a_bearer_token() -> None:
    for base_url in ("https://api.openai.com/v1", "https://bedrock-mantle.us-east-1.api.aws/v1"):
        request = sent("openai-chat", base_url)
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == "Bearer sk-test"


@pytest.mark.parametrize(
    ("base_url", "path", "bearer"),
    [
        (
            "https://bedrock-runtime.eu-central-1.amazonaws.com/anthropic",
            "/anthropic/v1/messages",
            True,
        ),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", "/anthropic/v1/messages", True),
        ("https://api.anthropic.com/v1", "/v1/messages", False),
    ],
)
def test_claude_at_bedrock_is_reached_in_anthropics_dialect(
    base_url: str, path: str, bearer: bool
) -> None:
    request = sent("anthropic", base_url)
    assert (request.path, request.headers["x-api-key"]) == (path, "sk-test")
    assert request.headers.get("authorization") == ("Bearer sk-test" if bearer else None)


def test_a_stream_of_azure_is_read() -> None:
    filtered = {"hate": {"filtered": False, "severity": "safe"}}
    first = {
        "choices": [],
        "model": "",
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filtered}],
    }
    said = chat_chunk(content="hello")
    said["choices"][0]["content_filter_results"] = filtered
    reply = read("openai-chat", sse(first, said, chat_chunk(finish_reason="stop"), "[DONE]"))
    assert (reply.text, reply.stop, reply.model) == ("hello", "end", "fake-1")


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (
            400,
            b'{"error": {"message": "The response was filtered", "code": "content_filter", "status":'
            b' 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}',
            "content_blocked",
        ),
        (
            401,
            b'{"error": {"code": "401", "message": "Access denied due to invalid subscription key"}}',
            "auth",
        ),
        (
            429,
            b'{"error": {"code": "429", "message": "Requests have exceeded the call rate limit of your'
            b' current OpenAI S0 pricing tier. Please retry after 7 seconds."}}',
            "rate_limited",
        ),
        (
            404,
            b'{"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}',
            "model_not_found",
        ),
    ],
)
def test_what_azure_refuses_has_its_class(status: int, body: bytes, failure: str) -> None:
    found: ModelFailure = failure_of(
        "openai-chat", Answer(body, status=status, content_type="application/json")
    )
    assert found.failure == failure
    assert found.retry_after_ms == (7_000 if status == 429 else None)


def test_recorded_streams_of_bedrock_are_read() -> None:
    found = [each for each in recordings(material("cassettes")) if each.name.startswith("bedrock")]
    replies = [read(each.dialect, each.body) for each in found]
    assert {each.dialect for each in found} == {"openai-responses"}
    assert [[call.name for call in each.calls] for each in replies] == [
        ["first_tool"],
        ["second_tool"],
        [],
    ]
    assert all(each.usage.input_tokens for each in replies)
