"""The OpenAI responses dialect, used without server-side state: every request carries the whole
conversation.

A reply is complete when response.completed or response.incomplete was seen. Encrypted reasoning is
kept and sent back as it came.
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
from palyra.models import azure, prompt_cache, wire_format
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.http_provider import Speaking, told
from palyra.models.openai_responses_stream import ResponsesParser
from palyra.models.prompt_cache import is_openai
from palyra.models.request import Adapting
from palyra.models.wire_format import CallIds, ToolNames

DIALECT: Final = "openai-responses"
_OPTIONAL: Final = {
    "images": wire_format.NO_VISION,
    # Models that do not reason refuse to encrypt their reasoning.
    "include": ("encrypted content", "include"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "service_tier": ("service_tier",),
    "verbosity": ("verbosity",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "effort": ("reasoning.effort", "reasoning effort", "reasoning_effort"),
    "prompt_cache_key": ("prompt_cache_key", "prompt_cache_retention"),
    "store": ("store",),
    "json_schema": wire_format.NO_FORM,
    "format": wire_format.NO_FORM,
    "tool_choice": ("tool_choice", "tool choice"),
    "native": ("encrypted_content", "encrypted content", "reasoning"),
}


class OpenAIResponses(Speaking):
    """One configured provider that speaks OpenAI responses."""

    speaks = DIALECT
    parser = ResponsesParser

    def __init__(self, endpoint: ProviderEndpoint, http: HttpClient) -> None:
        super().__init__(
            endpoint,
            http,
            path="/responses",
            headers=azure.key_header(endpoint),
            adapting=Adapting(_OPTIONAL),
        )

    def _path_of(self, request: ModelRequest) -> str:
        return azure.path_of(self._endpoint, self._path, request.model)

    @staticmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        return {
            "type": "function",
            "name": name,
            "description": tool.description,
            "parameters": wire_format.schema_of(tool),
            # The dialect is strict unless told otherwise, and strict refuses most schemas.
            "strict": False,
        }

    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "input": self._input(request, names, without),
            "stream": True,
        }
        instructions = wire_format.instructions_of(request)
        if instructions:
            body["instructions"] = instructions
        if "store" not in without:
            body["store"] = False
        if "include" not in without:
            body["include"] = ["reasoning.encrypted_content"]
        if request.tools:
            body["tools"] = tools
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        options = request.options
        body |= told(
            {
                "temperature": options.temperature,
                "top_p": options.top_p,
                "service_tier": options.service_tier,
                "parallel_tool_calls": options.parallel_tool_calls if request.tools else None,
            },
            without,
        )
        if options.effort and "effort" not in without:
            body["reasoning"] = {"effort": options.effort}
        if request.tools and request.tool_choice and "tool_choice" not in without:
            body["tool_choice"] = _choice(request.tool_choice, names)
        text = told({"verbosity": options.verbosity}, without)
        if form := self._form(request, without):
            text["format"] = form
        if text:
            body["text"] = text
        if "prompt_cache_key" not in without:
            body |= prompt_cache.openai_fields(self._endpoint, request.cache_key)
        return body | dict(self._endpoint.extra_body)

    def _form(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any] | None:
        if "format" in without or not wire_format.can_force_form(
            request, beside_tools=is_openai(self._endpoint.host)
        ):
            return None
        if request.json_schema is not None and "json_schema" not in without:
            return {"type": "json_schema", **msgspec.to_builtins(request.json_schema)}
        return {"type": "json_object"} if request.json_mode else None

    def _input(
        self, request: ModelRequest, names: ToolNames, without: frozenset[str]
    ) -> list[dict[str, Any]]:
        if "images" in without:
            request = wire_format.without_images(request)
        ids = CallIds()
        items: list[dict[str, Any]] = []
        for message in request.messages:
            match message:
                case UserMessage(parts=parts):
                    items.append({"type": "message", "role": "user", "content": _content(parts)})
                case ToolMessage():
                    items.append(_output(message, ids))
                case AssistantMessage():
                    native = (
                        []
                        if "native" in without
                        else wire_format.native_items(message, self._dialect)
                    )
                    items.extend(_turn(message, native, names, ids))
        return items


def _choice(choice: str, names: ToolNames) -> Any:
    named = {"type": "function", "name": names.to_wire(choice)}
    return {NO_CALL: "none", ANY_CALL: "required"}.get(choice, named)


def _content(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=text):
                content.append({"type": "input_text", "text": text})
            case Image():
                content.append(_image(part))
    return content


def _image(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": wire_format.data_url(image), "detail": "auto"}


def _output(message: ToolMessage, ids: CallIds) -> dict[str, Any]:
    text = wire_format.result_text(message)
    output: Any = text
    if message.images:
        output = [
            {"type": "input_text", "text": text},
            *(_image(image) for image in message.images),
        ]
    return {"type": "function_call_output", "call_id": ids.of_result(message), "output": output}


def _turn(
    message: AssistantMessage, items: list[Any], names: ToolNames, ids: CallIds
) -> list[dict[str, Any]]:
    """The turn in its own order where its record is at hand: each reasoning item must stand before
    what it led to.
    """
    calls = [
        {
            "type": "function_call",
            "call_id": ids.of_call(call),
            "name": names.to_wire(call.name),
            "arguments": wire_format.arguments_text(call.arguments),
        }
        for call in message.calls
    ]
    return wire_format.in_order(items, message.text, _said, calls)


def _said(text: str) -> list[dict[str, Any]]:
    return (
        [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text}],
            }
        ]
        if text
        else []
    )
