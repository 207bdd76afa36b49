"""Turns what a provider says when it refuses into one of our failure classes, with a short sentence
on what to do.

The key never appears in a message: a provider's text is cut short, and left out altogether where it
may quote the key.
"""

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from palyra.core.messages import FailureClass, ModelFailure
from palyra.models.failure_words import (
    NO_MODEL,
    NO_SUCH_MODEL,
    NO_TOOLS,
    NO_TOOLS_PARAMETER,
)
from palyra.models.http import ProviderEndpoint

_DETAIL_LENGTH: Final = 240

_CONTEXT: Final = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "max context",
    "exceed_context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "input token count",
    "reduce the length",
    "request too large",
    "request_too_large",
    "too many tokens",
    "too many input tokens",
    "tokens exceeds",
    "maximum prompt length",
    "max_prompt_length",
    "model_max_prompt_tokens",
    "string_above_max_length",
)
_QUOTA: Final = (
    "insufficient_quota",
    "insufficient_balance",
    "insufficient balance",
    "insufficient credits",
    "insufficient funds",
    "billing",
    "credit balance",
    "exceeded your current quota",
    "payment required",
    "out of credits",
    "spending limit",
    "quota_exceeded",
)
_BLOCKED: Final = (
    "content_filter",
    "content filter",
    "content_policy",
    "content policy",
    "content management policy",
    "responsibleaipolicy",
    "usage policy",
    "usage policies",
    "flagged",
    "moderation",
    "invalid_prompt",
    "prohibited_content",
    "safety system",
    "data_inspection_failed",
    "sensitive content",
    "sensitive_words",
)
_AUTH: Final = (
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "invalid x-api-key",
    "authentication_error",
    "authenticationerror",
    "no auth credentials",
    "unauthorized",
    "missing api key",
)
_MALFORMED: Final = (
    "tool_use_failed",
    "error parsing tool call",
    "failed to parse tool call",
    "malformed_function_call",
)
_OVERLOADED: Final = (
    "overloaded",
    "server_error",
    "api_error",
    "internal",
    "unavailable",
    "bad gateway",
    "capacity",
)
_TIMEOUT: Final = ("timeout", "timed out", "deadline")
_RATE: Final = (
    "rate_limit",
    "rate limit",
    "ratelimit",
    "too many requests",
    "resource_exhausted",
    "throttl",
    "slow_down",
)
_PERMISSION: Final = (
    "permission",
    "forbidden",
    "access_denied",
    "not allowed to",
    "access_terminated",
)
_BAD_REQUEST: Final = (
    "invalid_request",
    "invalid request",
    "badrequest",
    "bad_request",
    "not_found",
    "validation",
    "unprocessable",
)

_RETRY_IN: Final = re.compile(
    r"(?:retry|try again) (?:in|after) ([0-9.]+) ?(ms|s|seconds?|m|minutes?)?\b", re.IGNORECASE
)
_UNIT_MS: Final = {
    "ms": 1,
    "s": 1000,
    "second": 1000,
    "seconds": 1000,
    "m": 60_000,
    "minute": 60_000,
    "minutes": 60_000,
}
_RETRY_DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"([0-9.]+)s"')


def of_response(
    endpoint: ProviderEndpoint, status: int, headers: Mapping[str, str], body: bytes, now_s: float
) -> ModelFailure:
    """The failure that an HTTP status other than success stands for."""
    text = body.decode("utf-8", "replace")
    words, detail = _said(text)
    wait = retry_after_ms(headers, now_s)
    if wait is None and status in (429, 503, 529):
        wait = _wait_in_text(text)
    failure = classify(status, words, retry_known=wait is not None)
    return _failure(endpoint, failure, detail, status=status, wait=wait)


def of_event(endpoint: ProviderEndpoint, error: Any) -> ModelFailure:
    """The failure that an error object in the middle of a stream stands for, or in an answer that
    claimed success.
    """
    text = json.dumps(error, ensure_ascii=False) if not isinstance(error, str) else error
    words, detail = _said(text)
    status = _status_in(error)
    wait = _wait_in_text(text)
    return _failure(
        endpoint,
        classify(status, words, retry_known=wait is not None),
        detail,
        status=status,
        wait=wait,
    )


def broken(endpoint: ProviderEndpoint, what: str) -> ModelFailure:
    return ModelFailure(
        "malformed",
        f"{endpoint.name} sent an answer that cannot be read ({what})",
        sent=True,
    )


def cut(endpoint: ProviderEndpoint) -> ModelFailure:
    return ModelFailure(
        "cut",
        f"{endpoint.name} ended the stream before the reply was complete",
        sent=True,
    )


def not_a_model_server(endpoint: ProviderEndpoint, url: str) -> ModelFailure:
    return ModelFailure(
        "not_a_model_server",
        f"this is not a model server: {endpoint.without_secrets(url)} answered with a web page;"
        f" check providers.{endpoint.name}.base_url",
    )


def classify(status: int, words: str, *, retry_known: bool = False) -> FailureClass:
    """Status 0 means that only the words are known. `words` are the provider's code, type and
    message in lower case.
    """
    if status == 401 or (status in (0, 400, 403) and _any(_AUTH, words)):
        return "auth"
    if status in (0, 400, 413, 422, 429, 500) and _any(_CONTEXT, words):
        return "context_too_long"
    if status == 402 or (
        status in (0, 400, 403, 429) and _is_quota(words, retry_known=retry_known)
    ):
        return "quota"
    if status in (0, 400, 403, 422, 451) and _any(_BLOCKED, words):
        return "content_blocked"
    if status in (0, 400, 404, 422, 500, 501) and _refuses_tools(words):
        return "tools_unsupported"
    if status in (0, 400, 404, 422) and (_any(NO_MODEL, words) or NO_SUCH_MODEL.search(words)):
        return "model_not_found"
    if status in (0, 400, 422, 500) and _any(_MALFORMED, words):
        return "malformed"
    return _by_status(status) if status else _by_words(words)


def _by_status(status: int) -> FailureClass:
    match status:
        case 403 | 451:
            return "permission"
        case 408 | 504 | 524:
            return "timeout"
        case 413:
            return "context_too_long"
        case 429:
            return "rate_limited"
        case 409 | 425:
            return "overloaded"
        case _ if status >= 500:
            return "overloaded"
        case _:
            return "bad_request"


def _by_words(words: str) -> FailureClass:
    """Mid-stream the request was already accepted: what cannot be told apart is the server's
    trouble.
    """
    if _any(_RATE, words):
        return "rate_limited"
    if _any(_PERMISSION, words):
        return "permission"
    if _any(_OVERLOADED, words):
        return "overloaded"
    if _any(_TIMEOUT, words):
        return "timeout"
    if _any(_BAD_REQUEST, words):
        return "bad_request"
    return "overloaded"


def _is_quota(words: str, *, retry_known: bool) -> bool:
    # Gemini words a limit per minute like an empty account, but then it says when to come back.
    return _any(_QUOTA, words) and ("insufficient" in words or not retry_known)


def _refuses_tools(words: str) -> bool:
    return _any(NO_TOOLS, words) or NO_TOOLS_PARAMETER.search(words) is not None


def _any(phrases: tuple[str, ...], words: str) -> bool:
    return any(phrase in words for phrase in phrases)


def retry_after_ms(headers: Mapping[str, str], now_s: float) -> int | None:
    """Return how long the server asks us to wait: from milliseconds, seconds or a date."""
    try:
        exact = headers.get("retry-after-ms")
        if exact:
            return max(0, int(float(exact)))
        plain = headers.get("retry-after", "").strip()
        if not plain:
            return None
        if plain[0].isdigit():
            return int(float(plain) * 1000)
        return max(0, int((parsedate_to_datetime(plain).timestamp() - now_s) * 1000))
    except (ValueError, OverflowError, TypeError):
        return None


def _wait_in_text(text: str) -> int | None:
    found = _RETRY_DELAY.search(text) or _RETRY_IN.search(text)
    if found is None:
        return None
    unit = (found.group(2) or "s").lower() if found.re is _RETRY_IN else "s"
    try:
        amount = float(found.group(1).rstrip("."))
    except ValueError:
        return None
    return int(amount * _UNIT_MS[unit])


def _said(text: str) -> tuple[str, str]:
    """All words that may tell the class, and the one sentence that may be shown."""
    if text.lstrip().startswith("<"):
        return "", ""
    try:
        body = json.loads(text)
    except ValueError:
        return text[:4000].lower(), text.strip()
    return json.dumps(body, ensure_ascii=False)[:8000].lower(), _sentence(body)


def _sentence(body: Any) -> str:
    """The message in an error body, wherever this provider puts it."""
    for _ in range(4):
        match body:
            case [first, *_]:
                body = first
            case {"error": (str() | dict()) as inner} if inner:
                body = inner
            case {"message": (str() | dict() | list()) as inner} if inner:
                body = inner
            case {"detail": (str() | dict() | list()) as inner} if inner:
                body = inner
            case {"msg": str() as inner}:
                body = inner
            case _:
                break
    return body if isinstance(body, str) else ""


def _status_in(error: Any) -> int:
    """Gateways put the upstream's status into the error object."""
    if isinstance(error, list) and error:
        error = error[0]
    while isinstance(error, dict):
        for key in ("code", "status", "status_code", "http_code"):
            value = error.get(key)
            if isinstance(value, str) and value.isdigit():
                value = int(value)
            if isinstance(value, int) and 400 <= value < 600:
                return value
        error = error.get("error")
    return 0


def _failure(
    endpoint: ProviderEndpoint, failure: FailureClass, detail: str, *, status: int, wait: int | None
) -> ModelFailure:
    detail = " ".join(endpoint.without_secrets(detail).split())[:_DETAIL_LENGTH]
    message = _advice(endpoint, failure, status)
    if detail and failure != "auth":
        message = f"{message}: {detail}"
    return ModelFailure(failure, message, retry_after_ms=wait)


def _advice(endpoint: ProviderEndpoint, failure: FailureClass, status: int) -> str:
    name = endpoint.name
    shown = f" ({status})" if status else ""
    match failure:
        case "auth":
            variable = re.sub(r"[^A-Z0-9]", "_", name.upper())
            verb = "refused the key" if endpoint.api_key else "wants a key"
            return f"{name} {verb}; set {variable}_API_KEY or providers.{name}.api_key"
        case "permission":
            return f"{name} does not let this key do that; check the account's access to the model"
        case "rate_limited":
            return f"{name} asks to slow down"
        case "quota":
            return f"{name} has no credit left for this key; check its billing"
        case "overloaded":
            return f"{name} is overloaded or failing{shown}"
        case "context_too_long":
            return (
                f"the conversation is too long for this model of {name}; compact it or choose a"
                " larger model"
            )
        case "model_not_found":
            return f"{name} does not have this model; choose another with --model or /model"
        case "tools_unsupported":
            return (
                f"{name} takes no tools for this model; set providers.{name}.tools to text or auto"
            )
        case "content_blocked":
            return f"{name} refused the content; rephrase it or use another provider"
        case "malformed":
            return f"{name} could not read its own model's answer{shown}"
        case "timeout":
            return f"{name} took too long{shown}"
        case "network" | "bad_request" | "interrupted" | "cut" | "not_a_model_server":
            return (
                f"{name} refused the request{shown}; check the model name and"
                f" providers.{name}.base_url"
            )
