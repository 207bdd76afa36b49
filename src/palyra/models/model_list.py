"""The models that a server says it has, for the message about one that it does not have."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from palyra.core.messages import ModelFailure
from palyra.models.http import HttpClient, ProviderEndpoint

_PATIENCE_S: Final = 3.0
_MOST_NAMED: Final = 12
_MOST_BYTES: Final = 1 << 20


async def names(
    http: HttpClient, endpoint: ProviderEndpoint, headers: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the server's models, none if it does not say."""
    try:
        async with (
            asyncio.timeout(_PATIENCE_S),
            http.post(
                endpoint,
                endpoint.url("/models"),
                {**headers, **endpoint.headers},
                b"",
                method="GET",
            ) as answer,
        ):
            if answer.status != 200:
                return ()
            found = msgspec.json.decode(await answer.body(_MOST_BYTES))
    except (ModelFailure, TimeoutError, msgspec.DecodeError, RecursionError, UnicodeError):
        return ()
    return tuple(_listed(found))


def _listed(found: Any) -> list[str]:
    """OpenAI and Anthropic have `data` with an `id` each, Ollama and Google `models` with names."""
    if isinstance(found, dict):
        found = found.get("data") or found.get("models")
    named = [
        each.get("id") or each.get("name")
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, dict)
    ]
    return [str(name) for name in named if isinstance(name, str) and name.isprintable()]


def told(failure: ModelFailure, listed: tuple[str, ...]) -> ModelFailure:
    """The failure, with the models that there are."""
    if not listed:
        return failure
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    shown = ", ".join(name[:100] for name in listed[:_MOST_NAMED])
    return ModelFailure(failure.failure, f"{failure.message}. It has: {shown}{more}")
