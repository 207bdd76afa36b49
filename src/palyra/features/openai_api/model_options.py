"""Model options of OpenAI's programs in our words, and which of their words each is."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from palyra.core.call_options import CallOptions
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.wire_types import ChatRequest, ResponseRequest

CHAT_NAMES: Final[Mapping[str, str]] = {"effort": "reasoning_effort"}
RESPONSES_NAMES: Final[Mapping[str, str]] = {
    "effort": "reasoning.effort",
    "max_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
}
# Saying one of these is saying nothing: it is what every provider does unasked.
_USUAL: Final[Mapping[str, Any]] = {
    "service_tier": "auto",
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "verbosity": "medium",
    "parallel_tool_calls": True,
}


def of_chat(body: ChatRequest) -> CallOptions:
    stop = [body.stop] if isinstance(body.stop, str) else body.stop
    longest = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    return _options(
        CHAT_NAMES,
        effort=body.reasoning_effort,
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=longest,
        stop=stop,
        seed=body.seed,
        service_tier=body.service_tier,
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        verbosity=body.verbosity,
        parallel_tool_calls=body.parallel_tool_calls,
    )


def of_response(body: ResponseRequest) -> CallOptions:
    return _options(
        RESPONSES_NAMES,
        effort=body.reasoning.effort if body.reasoning else None,
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=body.max_output_tokens,
        service_tier=body.service_tier,
        verbosity=(body.text or {}).get("verbosity"),
        parallel_tool_calls=body.parallel_tool_calls,
    )


def _options(names: Mapping[str, str], **said: Any) -> CallOptions:
    said = {name: value for name, value in said.items() if value != _USUAL.get(name)}
    for name, value in said.items():
        if value is not None:
            try:
                msgspec.convert({name: value}, CallOptions)
            except msgspec.ValidationError as error:
                shown = names.get(name, name)
                refuse(shown, f"{shown} cannot be used: {str(error).partition(' - at ')[0]}")
    return msgspec.convert(
        {name: value for name, value in said.items() if value is not None}, CallOptions
    )
