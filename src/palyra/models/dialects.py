"""Opens a provider by the name of its dialect. The one place that knows all of them and their
makers' own addresses.
"""

from dataclasses import replace
from typing import Final, Literal

from palyra.core.ports import ModelProvider
from palyra.models.http import HttpClient, ProviderEndpoint

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
HOMES: Final[dict[Dialect, str]] = {
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}


def open_provider(dialect: Dialect, endpoint: ProviderEndpoint, http: HttpClient) -> ModelProvider:
    """An endpoint without an address is the dialect's maker. A dialect is loaded when it is needed:
    few daemons speak more than one.
    """
    if not endpoint.base_url:
        endpoint = replace(endpoint, base_url=HOMES[dialect])
    match dialect:
        case "openai-chat":
            from palyra.models.openai_chat import OpenAIChat

            return OpenAIChat(endpoint, http)
        case "openai-responses":
            from palyra.models.openai_responses import OpenAIResponses

            return OpenAIResponses(endpoint, http)
        case "anthropic":
            from palyra.models.anthropic import AnthropicMessages

            return AnthropicMessages(endpoint, http)
        case "gemini":
            from palyra.models.gemini import Gemini

            return Gemini(endpoint, http)
