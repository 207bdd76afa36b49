"""The Anthropic messages dialect.

A reply is complete when its stop reason or message_stop was seen. Signed thinking is kept and sent
back as it came; tools the server ran by itself are not calls of ours.
"""

from typing import Any, Final

import msgspec

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
from palyra.models import wire_format
from palyra.models.anthropic_stream import MessagesParser
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.http_provider import Speaking
from palyra.models.request import Adapting
from palyra.models.wire_format import CallIds, ToolNames

DIALECT: Final = "anthropic"
_VERSION: Final = "2023-06-01"
# The dialect insists on a limit; this one every current model takes.
DEFAULT_MAX_TOKENS: Final = 8192
_OPTIONAL: Final = {
    "images": wire_format.NO_VISION,
    "cache_control": ("cache_control",),
    "temperature": ("temperature",),
    # Before `native`: a model that thinks refuses to be told what to call, and says so.
    "tool_choice": ("tool_choice",),
    "native": ("signature", "thinking"),
}
_CACHED: Final = {"type": "ephemeral"}


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
        headers = {"anthropic-version": _VERSION} | (
            {"x-api-key": endpoint.api_key} if endpoint.api_key else {}
        )
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
        cached = {} if "cache_control" in without else {"cache_control": _CACHED}
        messages = self._messages(request, names, without)
        if cached and messages and messages[-1]["role"] == "user":
            # In a tool loop the next request begins with all of this one.
            messages[-1]["content"][-1] |= cached
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
            body["tools"] = tools
            if not request.instructions.strip():
                body["tools"] = msgspec.json.decode(tools)
                body["tools"][-1] |= cached
            if request.tool_choice and "tool_choice" not in without:
                body["tool_choice"] = _choice(request.tool_choice, names)
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        return body | dict(self._endpoint.extra_body)

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
