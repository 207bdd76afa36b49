"""What providers say when they refuse, and which class it is."""

import json
from typing import Any

import pytest

from palyra.core.messages import FailureClass
from palyra.models import failures
from palyra.models.http import ProviderEndpoint

OPENAI = ProviderEndpoint(
    name="openai",
    base_url="https://api.openai.com/v1",
    api_key="sk-very-secret",
    headers={"X-Org": "org-hidden"},
)


def body(message: str, **more: Any) -> str:
    return json.dumps({"error": {"message": message, **more}})


REFUSALS: list[tuple[int, str, FailureClass]] = [
    (401, body("Incorrect API key provided: sk-very-secret."), "auth"),
    (
        400,
        '[{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}]',
        "auth",
    ),
    (
        403,
        body("Project does not have access to model gpt-5", type="invalid_request_error"),
        "permission",
    ),
    (
        403,
        body("Your input was flagged", code=403, metadata={"reasons": ["violence"]}),
        "content_blocked",
    ),
    (402, body("Insufficient Balance"), "quota"),
    (
        429,
        body(
            "You exceeded your current quota", type="insufficient_quota", code="insufficient_quota"
        ),
        "quota",
    ),
    (
        400,
        body(
            "Your credit balance is too low to access the Anthropic API.",
            type="invalid_request_error",
        ),
        "quota",
    ),
    (
        429,
        body("Rate limit reached for gpt-5 on requests per min. Please try again in 6s."),
        "rate_limited",
    ),
    (
        429,
        body(
            'You exceeded your current quota, check billing. Please retry in 12.5s. "retryDelay": "12s"',
            status="RESOURCE_EXHAUSTED",
        ),
        "rate_limited",
    ),
    (
        429,
        body(
            "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 41000",
            code="rate_limit_exceeded",
        ),
        "context_too_long",
    ),
    (
        529,
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "overloaded",
    ),
    (500, "Internal Server Error", "overloaded"),
    (502, "<html><body>bad gateway</body></html>", "overloaded"),
    (503, body("The model is loading"), "overloaded"),
    (504, "upstream request timeout", "timeout"),
    (408, "", "timeout"),
    (
        400,
        body("This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
        "context_too_long",
    ),
    (
        400,
        '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
        "context_too_long",
    ),
    (
        413,
        '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        "context_too_long",
    ),
    (
        400,
        body(
            "the request exceeds the available context size",
            type="exceed_context_size_error",
            n_ctx=4096,
        ),
        "context_too_long",
    ),
    (
        400,
        body(
            "The response was filtered due to the prompt triggering content management policy.",
            code="content_filter",
        ),
        "content_blocked",
    ),
    (
        400,
        body("Failed to call a function.", code="tool_use_failed", failed_generation="<function=x"),
        "malformed",
    ),
    (400, body("Unknown parameter: 'foo'"), "bad_request"),
    (404, body("The model `gpt-9` does not exist", code="model_not_found"), "model_not_found"),
    (404, body("model 'llama3.1:8b' not found, try pulling it first"), "model_not_found"),
    (404, body("models/gemini-9.1 is not found for API version v1main"), "model_not_found"),
    (400, body("acme/nothing-1.5 is not a valid model ID"), "model_not_found"),
    (404, body("The model `Qwen/Qwen2.5-7B` does not exist."), "model_not_found"),
    (400, body("response_format for this model is not supported"), "bad_request"),
    (404, body("no route"), "bad_request"),
    (400, body("gemma:2b does not support tools"), "tools_unsupported"),
    (
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]}',
        "bad_request",
    ),
    (307, "", "bad_request"),
]


@pytest.mark.parametrize(("status", "text", "expected"), REFUSALS)
def test_a_refusal_has_the_class_that_calls_for_the_right_answer(
    status: int, text: str, expected: FailureClass
) -> None:
    failure = failures.of_response(OPENAI, status, {}, text.encode(), 0)
    assert failure.failure == expected
    assert "openai" in failure.message
    assert "secret" not in str(failure)
    assert len(failure.message) < 400


MIDSTREAM: list[tuple[Any, FailureClass]] = [
    ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
    ({"type": "rate_limit_error", "message": "slow down"}, "rate_limited"),
    ({"type": "api_error", "message": "Internal server error"}, "overloaded"),
    ({"type": "timeout_error", "message": "Request timed out"}, "timeout"),
    ({"type": "authentication_error", "message": "invalid x-api-key"}, "auth"),
    ({"type": "permission_error", "message": "no"}, "permission"),
    ({"type": "invalid_request_error", "message": "nope"}, "bad_request"),
    ({"code": 502, "message": "Provider returned error"}, "overloaded"),
    ({"code": "429", "message": "Provider returned error"}, "rate_limited"),
    ({"code": "context_length_exceeded", "message": "too long"}, "context_too_long"),
    ({"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."}, "rate_limited"),
    ("something broke", "overloaded"),
    (None, "overloaded"),
]


@pytest.mark.parametrize(("error", "expected"), MIDSTREAM)
def test_an_error_in_mid_stream_has_the_same_classes(error: Any, expected: FailureClass) -> None:
    assert failures.of_event(OPENAI, error).failure == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "120", "retry-after": "7"}, 120),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40_000),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e999"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], expected: int | None) -> None:
    assert failures.retry_after_ms(headers, now_s=60.0) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("try again in 1.5s.", 1500), ("retry in 20ms", 20), ("try again in 2 minutes", 120_000)],
)
def test_a_wait_that_is_only_in_the_text_counts_too(text: str, expected: int) -> None:
    assert failures.of_response(OPENAI, 429, {}, body(text).encode(), 0).retry_after_ms == expected


def test_a_refused_key_says_where_to_set_it_and_a_missing_one_that_it_is_missing() -> None:
    assert str(failures.of_response(OPENAI, 401, {}, b"", 0)) == (
        "auth: openai refused the key; set OPENAI_API_KEY or providers.openai.api_key"
    )
    assert "wants a key" in str(
        failures.of_response(ProviderEndpoint(name="my-vllm", base_url="http://x"), 401, {}, b"", 0)
    )


def test_no_secret_of_an_endpoint_is_ever_printed() -> None:
    assert "secret" not in repr(OPENAI)
    assert "hidden" not in repr(OPENAI)
    said = failures.of_response(
        OPENAI, 500, {}, b'{"error": "you sent sk-very-secret as org-hidden"}', 0
    )
    assert said.message.endswith("you sent [hidden] as [hidden]")
