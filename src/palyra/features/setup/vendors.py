"""Vendors of models for a key, and the names of the key that are usual in the environment. One
table.

`model` is what to begin with and `window` its tokens; without a model the vendor's own list is
asked.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from palyra.features.setup.model import FoundModel, FoundProvider, ProviderKind


class Vendor(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    variables: tuple[str, ...]
    kind: ProviderKind = "openai-chat"
    base_url: str = ""
    model: str = ""
    window: int = 0


VENDORS: Final = (
    Vendor(
        name="openai",
        title="OpenAI",
        variables=("OPENAI_API_KEY",),
        kind="openai-responses",
        model="gpt-5-mini",
        window=272_000,
    ),
    Vendor(
        name="anthropic",
        title="Anthropic",
        variables=("ANTHROPIC_API_KEY",),
        kind="anthropic",
        model="claude-sonnet-4-5",
        window=200_000,
    ),
    Vendor(
        name="openrouter",
        title="OpenRouter",
        variables=("OPENROUTER_API_KEY",),
        base_url="https://openrouter.ai/api/v1",
        model="openrouter/auto",
        window=128_000,
    ),
    Vendor(
        name="gemini",
        title="Google Gemini",
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        kind="gemini",
        model="gemini-2.5-flash",
        window=1_048_576,
    ),
    Vendor(
        name="groq",
        title="Groq",
        variables=("GROQ_API_KEY",),
        base_url="https://api.groq.com/openai/v1",
        model="openai/gpt-oss-120b",
        window=131_072,
    ),
    Vendor(
        name="mistral",
        title="Mistral",
        variables=("MISTRAL_API_KEY",),
        base_url="https://api.mistral.ai/v1",
        model="mistral-medium-latest",
        window=128_000,
    ),
    Vendor(
        name="deepseek",
        title="DeepSeek",
        variables=("DEEPSEEK_API_KEY",),
        base_url="https://api.deepseek.com/v1",
        model="deepseek-chat",
        window=128_000,
    ),
    Vendor(
        name="xai",
        title="xAI",
        variables=("XAI_API_KEY",),
        base_url="https://api.x.ai/v1",
        model="grok-4",
        window=256_000,
    ),
    Vendor(
        name="together",
        title="Together",
        variables=("TOGETHER_API_KEY",),
        base_url="https://api.together.xyz/v1",
    ),
    Vendor(
        name="fireworks",
        title="Fireworks",
        variables=("FIREWORKS_API_KEY",),
        base_url="https://api.fireworks.ai/inference/v1",
    ),
    Vendor(
        name="cerebras",
        title="Cerebras",
        variables=("CEREBRAS_API_KEY",),
        base_url="https://api.cerebras.ai/v1",
    ),
)
BY_NAME: Final = {each.name: each for each in VENDORS}


def in_environment(env: Mapping[str, str]) -> Iterator[FoundProvider]:
    """The vendors whose key is in the environment, by its variable and never by its value."""
    for vendor in VENDORS:
        variable = next((each for each in vendor.variables if env.get(each, "").strip()), "")
        if variable:
            yield offer(vendor, f"env:{variable}")


def offer(vendor: Vendor, key: str = "") -> FoundProvider:
    first = FoundModel(name=vendor.model, context_tokens=vendor.window, tools=True)
    return FoundProvider(
        name=vendor.name,
        title=vendor.title,
        kind=vendor.kind,
        base_url=vendor.base_url,
        key=key,
        models=(first,) if vendor.model else (),
    )
