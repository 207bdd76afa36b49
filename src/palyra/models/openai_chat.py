"""The chat completions dialect, as OpenAI speaks it and as everybody else does.

A reply is complete when a finish reason or [DONE] was seen. Everything a compatible server may
leave out, repeat or send in one piece is accepted; nothing it invents becomes a tool call of ours.
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
from palyra.models.openai_chat_stream import ChatParser
from palyra.models.prompt_cache import OPENAI_HOST, is_openai
from palyra.models.request import Adapting
from palyra.models.wire_format import CallIds, ToolNames

DIALECT: Final = "openai-chat"
_OPTIONAL: Final = {
    "images": wire_format.NO_VISION,
    "cache_control": ("cache_control",),
    "stream_options": ("stream_options", "include_usage"),
    # The old name of max_completion_tokens: a refusal names the new one.
    "max_tokens": ("max_completion_tokens",),
    "return_progress": ("return_progress",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "seed": ("seed",),
    "stop": ("'stop'", '"stop"', "stop sequence", "parameter: stop"),
    "service_tier": ("service_tier",),
    "effort": ("reasoning_effort", "reasoning effort"),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
    "verbosity": ("verbosity",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "prompt_cache_key": ("prompt_cache_key", "prompt_cache_retention"),
    "json_schema": wire_format.NO_FORM,
    "response_format": wire_format.NO_FORM,
    "tool_choice": ("tool_choice", "tool choice"),
    "native": (
        "reasoning_content",
        "reasoning_details",
        "extra_content",
        "thought_signature",
        "'reasoning'",
        '"reasoning"',
    ),
}


class OpenAIChat(Speaking):
    """One configured provider that speaks chat completions."""

    speaks = DIALECT
    parser = ChatParser

    def __init__(self, endpoint: ProviderEndpoint, http: HttpClient) -> None:
        adapting = Adapting(
            _OPTIONAL, frozenset({"max_tokens"} if endpoint.host == OPENAI_HOST else ())
        )
        super().__init__(
            endpoint,
            http,
            path="/chat/completions",
            headers=azure.key_header(endpoint),
            adapting=adapting,
        )

    def _path_of(self, request: ModelRequest) -> str:
        return azure.path_of(self._endpoint, self._path, request.model)

    @staticmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": name,
                "description": tool.description,
                "parameters": wire_format.schema_of(tool),
            },
        }

    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "messages": self._messages(request, names, without),
            "stream": True,
        }
        if "cache_control" not in without:
            body |= self._mark(body["messages"], request.model)
        if "stream_options" not in without:
            body["stream_options"] = {"include_usage": True}
        if self._endpoint.reports_progress and "return_progress" not in without:
            body["return_progress"] = True
        if request.tools:
            body["tools"] = tools
        if request.max_output_tokens is not None:
            body["max_completion_tokens" if "max_tokens" in without else "max_tokens"] = (
                request.max_output_tokens
            )
        options = request.options
        body |= told(
            {
                "temperature": options.temperature,
                "top_p": options.top_p,
                "seed": options.seed,
                "stop": options.stop,
                "service_tier": options.service_tier,
                "frequency_penalty": options.frequency_penalty,
                "presence_penalty": options.presence_penalty,
                "verbosity": options.verbosity,
                "parallel_tool_calls": options.parallel_tool_calls if request.tools else None,
            },
            without,
        )
        if options.effort and "effort" not in without:
            body["reasoning_effort"] = options.effort
        if request.tools and request.tool_choice and "tool_choice" not in without:
            body["tool_choice"] = _choice(request.tool_choice, names)
        if form := self._form(request, without):
            body["response_format"] = form
        if "prompt_cache_key" not in without:
            body |= prompt_cache.openai_fields(self._endpoint, request.cache_key)
        return body | dict(self._endpoint.extra_body)

    def _mark(self, messages: list[dict[str, Any]], model: str) -> dict[str, Any]:
        """Marks where a gateway may cache up to, and returns what the whole request is marked with.

        A mark needs a part to stand on, so the messages that carry one are lists of parts.
        """
        cached = prompt_cache.chat_mark(self._endpoint, model)
        if not cached:
            return {}
        users = [message for message in messages if message["role"] == "user"]
        for message in (*messages[:1], *users[-2:]):
            if message["role"] in ("system", "user"):
                parts = message["content"]
                if isinstance(parts, str):
                    parts = message["content"] = [{"type": "text", "text": parts}]
                parts[-1] |= cached
        return cached if prompt_cache.follows_the_end(self._endpoint, model) else {}

    def _form(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any] | None:
        if "response_format" in without or not wire_format.can_force_form(
            request, beside_tools=is_openai(self._endpoint.host)
        ):
            return None
        if request.json_schema is not None and "json_schema" not in without:
            return {"type": "json_schema", "json_schema": msgspec.to_builtins(request.json_schema)}
        return {"type": "json_object"} if request.json_mode else None

    def _messages(
        self, request: ModelRequest, names: ToolNames, without: frozenset[str]
    ) -> list[dict[str, Any]]:
        if "images" in without:
            request = wire_format.without_images(request)
        ids = CallIds(
            wire_format.MISTRAL_ID if "mistral" in self._endpoint.host else wire_format.LEGAL_ID
        )
        messages: list[dict[str, Any]] = []
        instructions = wire_format.instructions_of(request)
        if instructions:
            messages.append({"role": "system", "content": instructions})
        # What waits to be said by the user: merged, because chat templates insist that the roles
        # alternate.
        said: list[Part] = []
        for message in request.messages:
            match message:
                case UserMessage(parts=parts):
                    said.extend(parts)
                case ToolMessage():
                    messages.append(
                        {
                            "role": "tool",
                            "tool_call_id": ids.of_result(message),
                            "content": wire_format.result_text(message),
                        }
                    )
                    if message.images:
                        # A tool message holds text only, so its images follow once all results have
                        # been given.
                        said.extend(
                            (Text(f"Images from {names.to_wire(message.name)}:"), *message.images)
                        )
                case AssistantMessage():
                    _flush(messages, said)
                    turn = self._assistant(message, names, ids, without)
                    if turn:
                        messages.append(turn)
        _flush(messages, said)
        return messages

    def _assistant(
        self, message: AssistantMessage, names: ToolNames, ids: CallIds, without: frozenset[str]
    ) -> dict[str, Any] | None:
        if not message.text and not message.calls:
            return None
        turn: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        native = {} if "native" in without else _native(message, self._dialect)
        if message.calls:
            extra = native.get("extra_content", {})
            turn["tool_calls"] = [
                {
                    "id": ids.of_call(call),
                    "type": "function",
                    "function": {
                        "name": names.to_wire(call.name),
                        "arguments": wire_format.arguments_text(call.arguments),
                    },
                }
                | ({"extra_content": extra[str(at)]} if str(at) in extra else {})
                for at, call in enumerate(message.calls)
            ]
            if field := native.get(
                "reasoning_field", "reasoning_content" if "deepseek" in self._endpoint.host else ""
            ):
                # DeepSeek refuses a turn with calls that comes back without its reasoning, whoever
                # it came from.
                turn[field] = message.reasoning
        if details := native.get("reasoning_details"):
            turn["reasoning_details"] = details
        return turn


def _choice(choice: str, names: ToolNames) -> Any:
    named = {"type": "function", "function": {"name": names.to_wire(choice)}}
    return {NO_CALL: "none", ANY_CALL: "required"}.get(choice, named)


def _native(message: AssistantMessage, dialect: str) -> dict[str, Any]:
    native = message.native
    if native is None or native.dialect != dialect or not native.items:
        return {}
    record = native.items[0]
    return record if isinstance(record, dict) and record.get("calls") == len(message.calls) else {}


def _flush(messages: list[dict[str, Any]], said: list[Part]) -> None:
    """Adds one user message of all that waits; plain text where there is nothing else, which every
    server understands.
    """
    if not said:
        return
    if any(isinstance(part, Image) for part in said):
        content: Any = [_part(part) for part in said if isinstance(part, Image) or part.text]
    else:
        content = "\n\n".join(part.text for part in said if isinstance(part, Text))
    messages.append({"role": "user", "content": content})
    said.clear()


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image():
            return {"type": "image_url", "image_url": {"url": wire_format.data_url(part)}}
