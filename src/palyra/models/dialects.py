"""Opens a provider by the name of its dialect. The one place that knows all of them and their
makers' own addresses.
"""

from dataclasses import replace
from typing import Final, Literal

from palyra.core.ports import ModelProvider
from palyra.models.anthropic import AnthropicMessages
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.openai_chat import OpenAIChat
from palyra.models.openai_responses import OpenAIResponses

Dialect = Literal["openai-chat", "openai-responses", "anthropic"]
HOMES: Final[dict[Dialect, str]] = {
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}


def open_provider(dialect: Dialect, endpoint: ProviderEndpoint, http: HttpClient) -> ModelProvider:
    """An endpoint without an address is the dialect's maker."""
    if not endpoint.base_url:
        endpoint = replace(endpoint, base_url=HOMES[dialect])
    match dialect:
        case "openai-chat":
            return OpenAIChat(endpoint, http)
        case "openai-responses":
            return OpenAIResponses(endpoint, http)
        case "anthropic":
            return AnthropicMessages(endpoint, http)
