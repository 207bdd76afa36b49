"""The OpenAI responses dialect, used without server-side state: every request carries the whole conversation.

A reply is complete when response.completed or response.incomplete was seen. Encrypted reasoning is kept and sent back as it came.
"""

from typing import Any, Final

import msgspec

from palyra.domain.messages import (
    AssistantMessage,
    Emit,
    Image,
    ModelRequest,
    Part,
    Reply,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.models import exchange, wire
from palyra.models.exchange import Adapting
from palyra.models.http import Endpoint, HttpClient
from palyra.models.offers import Offers
from palyra.models.openai_responses_stream import ResponsesParser
from palyra.models.wire import CallIds, ToolNames

DIALECT: Final = "openai-responses"
OPENAI_HOST: Final = "api.openai.com"
_OPTIONAL: Final = {
    # Models that do not reason refuse to encrypt their reasoning.
    "include": ("encrypted content", "include"),
    "temperature": ("temperature",),
    "prompt_cache_key": ("prompt_cache_key",),
    "store": ("store",),
    "native": ("encrypted_content", "encrypted content", "reasoning"),
}


class OpenAIResponses:
    """One configured provider that speaks OpenAI responses."""

    def __init__(self, endpoint: Endpoint, http: HttpClient) -> None:
        self._endpoint = endpoint
        self._http = http
        self._offers = Offers(_tool)
        self._dialect = f"{DIALECT}@{endpoint.host}"
        self._adapting = Adapting(_OPTIONAL)

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, request: ModelRequest, emit: Emit) -> Reply:
        names, tools = self._offers.of(request)
        headers = {"Authorization": f"Bearer {self._endpoint.api_key}"} if self._endpoint.api_key else {}

        def build(without: frozenset[str]) -> dict[str, Any]:
            return self._body(request, names, tools, without)

        async def send(body: bytes) -> Reply:
            parser = ResponsesParser(names, emit, self._endpoint, self._dialect)
            return await exchange.ask(self._http, self._endpoint, "/responses", headers, body, parser)

        return await self._adapting.ask(request.model, build, send)

    def _body(self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": request.model, "input": self._input(request, names, without), "stream": True}
        instructions = wire.instructions_of(request)
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
        if request.temperature is not None and "temperature" not in without:
            body["temperature"] = request.temperature
        if request.json_mode:
            body["text"] = {"format": {"type": "json_object"}}
        if request.cache_key and "prompt_cache_key" not in without and self._takes_cache_key():
            body["prompt_cache_key"] = request.cache_key
        return body | dict(self._endpoint.extra_body)

    def _takes_cache_key(self) -> bool:
        return self._endpoint.send_cache_key or self._endpoint.host == OPENAI_HOST

    def _input(self, request: ModelRequest, names: ToolNames, without: frozenset[str]) -> list[dict[str, Any]]:
        ids = CallIds()
        items: list[dict[str, Any]] = []
        for message in request.messages:
            match message:
                case UserMessage(parts=parts):
                    items.append({"type": "message", "role": "user", "content": _content(parts)})
                case ToolMessage():
                    items.append(_output(message, ids))
                case AssistantMessage():
                    native = [] if "native" in without else wire.native_items(message, self._dialect)
                    items.extend(_turn(message, native, names, ids))
        return items


def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": tool.description,
        "parameters": wire.schema_of(tool),
        # The dialect is strict unless told otherwise, and strict refuses most schemas.
        "strict": False,
    }


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
    return {"type": "input_image", "image_url": wire.data_url(image), "detail": "auto"}


def _output(message: ToolMessage, ids: CallIds) -> dict[str, Any]:
    text = wire.result_text(message)
    output: Any = text
    if message.images:
        output = [{"type": "input_text", "text": text}, *(_image(image) for image in message.images)]
    return {"type": "function_call_output", "call_id": ids.of_result(message), "output": output}


def _turn(message: AssistantMessage, items: list[Any], names: ToolNames, ids: CallIds) -> list[dict[str, Any]]:
    """The turn in its own order where its record is at hand: each reasoning item must stand before what it led to."""
    calls = [
        {
            "type": "function_call",
            "call_id": ids.of_call(call),
            "name": names.to_wire(call.name),
            "arguments": wire.arguments_text(call.arguments),
        }
        for call in message.calls
    ]
    if not items:
        return [*_said(message.text), *calls]
    turn: list[dict[str, Any]] = []
    at = 0
    remaining = iter(calls)
    for item in items:
        match item:
            case {"type": "text", "characters": int() as length}:
                turn.extend(_said(message.text[at : at + length]))
                at += length
            case {"type": "call"}:
                turn.append(next(remaining))
            case _:
                turn.append(item)
    return turn


def _said(text: str) -> list[dict[str, Any]]:
    return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}] if text else []
