"""The Anthropic messages dialect.

A reply is complete when its stop reason or message_stop was seen. Signed thinking is kept and sent
back as it came; tools the server ran by itself are not calls of ours.
"""

from typing import Any, Final

import msgspec

from palyra.core.call_options import Effort
from palyra.core.messages import (
    ANY_CALL,
    NO_CALL,
    AssistantMessage,
    Image,
    ModelRequest,
    Part,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.models import prompt_cache, wire_format
from palyra.models.anthropic_stream import MessagesParser
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.http_provider import Speaking, told
from palyra.models.request import Adapting, encode
from palyra.models.wire_format import CallIds, ToolNames

DIALECT: Final = "anthropic"
_VERSION: Final = "2023-06-01"
# The dialect insists on a limit; this one every current model takes.
DEFAULT_MAX_TOKENS: Final = 8192
_LEAST_BUDGET: Final = 1024
_AWS: Final = (".amazonaws.com", ".api.aws")
_BUDGETS: Final[dict[str, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 65_536,
}
_OPTIONAL: Final = {
    "images": wire_format.NO_VISION,
    "cache_control": ("cache_control",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "service_tier": ("service_tier",),
    "stop": ("stop_sequences",),
    # Older models think by a budget of tokens instead, and the oldest not at all.
    "adaptive": ("adaptive", "output_config", "effort"),
    "effort": ("thinking", "budget_tokens"),
    # Before `native`: a model that thinks refuses to be told what to call, and says so.
    "tool_choice": ("tool_choice",),
    "native": ("signature", "thinking"),
}


class AnthropicMessages(Speaking):
    """One configured provider that speaks Anthropic messages. Its base address may end with /v1 or
    before it.
    """

    speaks = DIALECT
    parser = MessagesParser

    def __init__(
        self,
        endpoint: ProviderEndpoint,
        http: HttpClient,
        *,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        path = "/messages" if endpoint.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
        headers = {"anthropic-version": _VERSION} | _key_headers(endpoint)
        super().__init__(endpoint, http, path=path, headers=headers, adapting=Adapting(_OPTIONAL))
        self._default_max_tokens = default_max_tokens

    @staticmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "description": tool.description,
            "input_schema": wire_format.schema_of(tool),
        }

    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        cached = {} if "cache_control" in without else prompt_cache.mark(self._endpoint)
        messages = self._messages(request, names, without)
        if cached:
            _mark_ends(messages, cached)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens or self._default_max_tokens,
            "messages": messages,
            "stream": True,
        }
        if request.instructions.strip():
            body["system"] = [{"type": "text", "text": request.instructions} | cached]
        if request.json_mode:
            body["system"] = [
                *body.get("system", []),
                {"type": "text", "text": wire_format.JSON_SENTENCE},
            ]
        if request.tools:
            body["tools"] = _with_mark(tools, cached)
            if request.tool_choice and "tool_choice" not in without:
                body["tool_choice"] = _choice(request.tool_choice, names)
            if request.options.parallel_tool_calls is False:
                chosen = body.get("tool_choice", {"type": "auto"})
                body["tool_choice"] = chosen | {"disable_parallel_tool_use": True}
        options = request.options
        body |= told(
            {
                "temperature": options.temperature,
                "top_p": options.top_p,
                "service_tier": options.service_tier,
            },
            without,
        )
        if options.stop and "stop" not in without:
            body["stop_sequences"] = options.stop
        if options.effort and "effort" not in without:
            limit = request.max_output_tokens
            body |= self._thinking(options.effort, limit, adaptive="adaptive" not in without)
        return body | dict(self._endpoint.extra_body)

    def _thinking(self, effort: Effort, limit: int | None, *, adaptive: bool) -> dict[str, Any]:
        """Return how much to think. What is thought counts as output: without a limit there is room
        for it beside the answer, with one at most half goes into it.
        """
        if effort == "none":
            return {"thinking": {"type": "disabled"}}
        budget = _BUDGETS[effort]
        room = {} if limit else {"max_tokens": self._default_max_tokens + budget}
        if adaptive:
            level = {"minimal": "low"}.get(effort, effort)
            thinking = {"type": "adaptive"}
            return {"thinking": thinking, "output_config": {"effort": level}, **room}
        budget = min(budget, limit // 2) if limit else budget
        if budget < _LEAST_BUDGET:
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}, **room}

    def _messages(
        self, request: ModelRequest, names: ToolNames, without: frozenset[str]
    ) -> list[dict[str, Any]]:
        """Roles alternate, and the results of one turn's calls are together, before anything else
        the user says.
        """
        if "images" in without:
            request = wire_format.without_images(request)
        ids = CallIds()
        messages: list[dict[str, Any]] = []
        for message in request.messages:
            match message:
                case UserMessage(parts=parts):
                    role, blocks = "user", _blocks(parts)
                case ToolMessage():
                    role, blocks = "user", [_result(message, ids)]
                case AssistantMessage():
                    items = (
                        []
                        if "native" in without
                        else wire_format.native_items(message, self._dialect)
                    )
                    role, blocks = "assistant", _turn(message, items, names, ids)
            if not blocks:
                continue
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"].extend(blocks)
            else:
                messages.append({"role": role, "content": blocks})
        return messages


def _key_headers(endpoint: ProviderEndpoint) -> dict[str, str]:
    """Bedrock serves Claude in this dialect too, and takes its key as a bearer token."""
    if not endpoint.api_key:
        return {}
    bearer = {"Authorization": f"Bearer {endpoint.api_key}"}
    return {"x-api-key": endpoint.api_key} | (bearer if endpoint.host.endswith(_AWS) else {})


def _mark_ends(messages: list[dict[str, Any]], cached: dict[str, Any]) -> None:
    """The next request begins with all of this one. The mark of the request before stays for a
    while: a server looks back only so many blocks from a mark for what it has already.
    """
    ends = [message for message in messages if message["role"] == "user"][-2:]
    for message in ends:
        message["content"][-1] |= cached


def _with_mark(tools: msgspec.Raw, cached: dict[str, Any]) -> msgspec.Raw:
    """The last tool marked: the tools stay cached when the instructions change. They are JSON
    already, and are not read again for this.
    """
    if not cached:
        return tools
    return msgspec.Raw(bytes(tools)[:-2] + b"," + encode(cached)[1:-1] + b"}]")


def _choice(choice: str, names: ToolNames) -> dict[str, Any]:
    named = {"type": "tool", "name": names.to_wire(choice)}
    return {NO_CALL: {"type": "none"}, ANY_CALL: {"type": "any"}}.get(choice, named)


def _blocks(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=text):
                # An empty text block is refused.
                if text.strip():
                    blocks.append({"type": "text", "text": text})
            case Image():
                blocks.append(_image(part))
    return blocks


def _image(image: Image) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": image.media_type,
            "data": wire_format.base64_of(image),
        },
    }


def _result(message: ToolMessage, ids: CallIds) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": ids.of_result(message),
        "content": message.text or "(no output)",
    }
    if message.images:
        block["content"] = [
            {"type": "text", "text": block["content"]},
            *(_image(image) for image in message.images),
        ]
    if message.is_error:
        block["is_error"] = True
    return block


def _turn(
    message: AssistantMessage, items: list[Any], names: ToolNames, ids: CallIds
) -> list[dict[str, Any]]:
    """The turn in its own order where its record is at hand, else its text before its calls."""
    calls = [
        {
            "type": "tool_use",
            "id": ids.of_call(call),
            "name": names.to_wire(call.name),
            "input": wire_format.arguments_object(call.arguments),
        }
        for call in message.calls
    ]
    return wire_format.in_order(items, message.text, lambda text: _blocks((Text(text),)), calls)
