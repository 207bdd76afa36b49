"""Settings in requests that make providers cache the beginning of a prompt.

The rule: only endpoints known to accept them get them, by their kind or their host, because a
strict server refuses what it does not know. Setting `prompt_cache` says that a server accepts them.
"""

from typing import Any, Final

from palyra.models.http import ProviderEndpoint

OPENAI_HOST: Final = "api.openai.com"
# Azure speaks OpenAI's dialects with OpenAI's own fields.
_AZURE: Final = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
_OPENROUTER: Final = "openrouter.ai"
_ANTHROPIC_MODEL: Final = ("anthropic/", "~anthropic/")
_MARKED_MODELS: Final = (*_ANTHROPIC_MODEL, "google/gemini", "~google/gemini")


def is_azure(host: str) -> bool:
    return host.endswith(_AZURE)


def is_openai(host: str) -> bool:
    """Return whether OpenAI's own models answer there, with all of their fields."""
    return host == OPENAI_HOST or is_azure(host)


def mark(endpoint: ProviderEndpoint) -> dict[str, Any]:
    """The mark up to which an Anthropic prompt is cached; empty where none is wanted."""
    if endpoint.prompt_cache == "off":
        return {}
    kept = {"ttl": "1h"} if endpoint.prompt_cache == "1h" else {}
    return {"cache_control": {"type": "ephemeral", **kept}}


def chat_mark(endpoint: ProviderEndpoint, model: str) -> dict[str, Any]:
    """The same for a gateway that speaks chat completions and has models which need it."""
    asked = endpoint.prompt_cache in ("5m", "1h")
    known = endpoint.host == _OPENROUTER and model.startswith(_MARKED_MODELS)
    return mark(endpoint) if asked or known else {}


def follows_the_end(endpoint: ProviderEndpoint, model: str) -> bool:
    """Return whether a mark on the whole request moves with its last block."""
    return endpoint.host == _OPENROUTER and model.startswith(_ANTHROPIC_MODEL)


def openai_fields(endpoint: ProviderEndpoint, key: str) -> dict[str, Any]:
    """Requests with the same key are sent to the machine that has the beginning already."""
    mode, host = endpoint.prompt_cache, endpoint.host
    known = is_openai(host) or endpoint.send_cache_key
    if not key or mode == "off" or not (known or mode == "24h"):
        return {}
    return {
        "prompt_cache_key": key,
        **({"prompt_cache_retention": "24h"} if mode == "24h" else {}),
    }
