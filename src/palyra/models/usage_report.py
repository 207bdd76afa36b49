"""Reads token counts out of what providers report, in our terms: input includes cached parts,
output includes reasoning.
"""

from typing import Any, Final

from palyra.core.messages import Usage

_ABSURD: Final = 10**12


def chat_usage(usage: dict[str, Any]) -> Usage:
    sent = _count(usage, "prompt_tokens", "input_tokens")
    produced = _count(usage, "completion_tokens", "output_tokens")
    details = _part(usage, "prompt_tokens_details", "prompt_token_details", "input_tokens_details")
    thought = _count(
        _part(usage, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
    ) or _count(usage, "reasoning_tokens")
    if thought and _count(usage, "total_tokens") == sent + produced + thought:
        # xAI counts reasoning beside the completion, not in it.
        produced += thought
    return Usage(
        input_tokens=sent,
        output_tokens=produced,
        cached_tokens=_count(details, "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
        cache_write_tokens=_count(details, "cache_write_tokens", "cache_creation_tokens")
        or _count(usage, "cache_creation_input_tokens"),
        reasoning_tokens=thought,
    )


def responses_usage(usage: dict[str, Any]) -> Usage:
    sent = _part(usage, "input_tokens_details")
    return Usage(
        input_tokens=_count(usage, "input_tokens"),
        output_tokens=_count(usage, "output_tokens"),
        cached_tokens=_count(sent, "cached_tokens"),
        cache_write_tokens=_count(sent, "cache_write_tokens", "cache_creation_tokens"),
        reasoning_tokens=_count(_part(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def anthropic_usage(usage: dict[str, Any]) -> Usage:
    """Anthropic counts what was read from and written to the cache beside the input, not in it."""
    cached = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=_count(usage, "input_tokens") + cached + written,
        output_tokens=_count(usage, "output_tokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=_count(
            _part(usage, "output_tokens_details"), "thinking_tokens", "reasoning_tokens"
        ),
    )


def gemini_usage(usage: dict[str, Any]) -> Usage:
    """Gemini counts thoughts beside what it says, and what its tools read beside the prompt."""
    thought = _count(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=_count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount"),
        output_tokens=_count(usage, "candidatesTokenCount") + thought,
        cached_tokens=_count(usage, "cachedContentTokenCount"),
        reasoning_tokens=thought,
    )


def _count(usage: dict[str, Any], *keys: str) -> int:
    """The first of these that is a number other than zero."""
    for key in keys:
        value = usage.get(key)
        if isinstance(value, int | float) and 0 < value < _ABSURD:
            return int(value)
    return 0


def _part(usage: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, dict):
            return value
    return {}
