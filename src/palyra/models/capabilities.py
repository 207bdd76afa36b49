"""Options that a provider of each kind accepts besides the prompt. Light, so that reading the
settings opens no provider.
"""

from typing import Final

from palyra.core.call_options import ALL

_PENALTIES: Final = ("frequency_penalty", "presence_penalty")
# Which options a dialect has words for. Whoever is not here only pretends to be a provider, and is
# told everything.
CARRIES: Final[dict[str, frozenset[str]]] = {
    "openai-chat": ALL,
    "openai-responses": ALL - {"stop", "seed", *_PENALTIES},
    "anthropic": ALL - {"seed", "verbosity", *_PENALTIES},
    "gemini": ALL - {"service_tier", "verbosity", "parallel_tool_calls"},
}
# What it may be told about caching prompts.
CACHES: Final[dict[str, tuple[str, ...]]] = {
    "openai-chat": ("auto", "off", "5m", "1h", "24h"),
    "openai-responses": ("auto", "off", "24h"),
    "anthropic": ("auto", "off", "5m", "1h"),
    # It caches by itself, and is told nothing.
    "gemini": ("auto",),
}
