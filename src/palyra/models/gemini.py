"""Gemini's own dialect: contents made of parts, streamed by `streamGenerateContent`.

A reply is complete when a finish reason was seen. Signatures of thoughts are kept and sent back on
the part that they came with; without them a model forgets why it called.
"""

from typing import Any, Final
from urllib.parse import quote

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
from palyra.models import gemini_schema, wire_format
from palyra.models.gemini_stream import GeminiParser
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.http_provider import Speaking, told
from palyra.models.request import Adapting
from palyra.models.wire_format import CallIds, ToolNames

DIALECT: Final = "gemini"
_OPTIONAL: Final = {
    "images": (*wire_format.NO_VISION, "inline_data", "inlinedata"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topp"),
    "seed": ("seed",),
    "stop": ("stop_sequences", "stopsequences"),
    "frequency_penalty": ("frequency_penalty", "frequencypenalty"),
    "presence_penalty": ("presence_penalty", "presencepenalty"),
    "effort": ("thinking_level", "thinking level", "thinking_budget", "thinking budget"),
    "thoughts": ("thinking", "include_thoughts"),
    "json_schema": ("response_schema", *wire_format.NO_FORM),
    "form": ("response_mime_type", *wire_format.NO_FORM),
    "tool_choice": ("function_calling_config", "function calling config", "tool_config"),
    "native": ("thought_signature", "thought signature", "thoughtsignature"),
    # Google's other door knows none.
    "ids": ('unknown name "id"', 'unknown name \\"id\\"'),
}
# What stands for the signature of a call that another model made.
_NO_SIGNATURE: Final = "skip_thought_signature_validator"
_BUDGETS: Final = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 24_576,
    "max": 24_576,
}
_LEVELS: Final = {"none": "minimal", "xhigh": "high", "max": "high"}
Content = dict[str, Any]


class Gemini(Speaking):
    """One configured provider that speaks Gemini's dialect."""

    speaks = DIALECT
    parser = GeminiParser

    def __init__(self, endpoint: ProviderEndpoint, http: HttpClient) -> None:
        headers = {"x-goog-api-key": endpoint.api_key} if endpoint.api_key else {}
        super().__init__(endpoint, http, path="", headers=headers, adapting=Adapting(_OPTIONAL))

    def _path_of(self, request: ModelRequest) -> str:
        model = request.model if "/" in request.model else f"models/{request.model}"
        return f"/{quote(model, safe='/@.-_')}:streamGenerateContent?alt=sse"

    @staticmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        declared: dict[str, Any] = {"name": name, "description": tool.description}
        parameters = gemini_schema.cleaned(wire_format.schema_of(tool))
        return declared | ({"parameters": parameters} if parameters else {})

    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"contents": self._contents(request, names, without)}
        instructions = wire_format.instructions_of(request)
        if instructions.strip():
            body["systemInstruction"] = {"parts": [{"text": instructions}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": tools}]
            if request.tool_choice and "tool_choice" not in without:
                choice = _choice(request.tool_choice, names)
                body["toolConfig"] = {"functionCallingConfig": choice}
        if generation := self._generation(request, without):
            body["generationConfig"] = generation
        return body | dict(self._endpoint.extra_body)

    def _generation(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        options = request.options
        said = told(
            {
                "temperature": options.temperature,
                "top_p": options.top_p,
                "seed": options.seed,
                "stop": options.stop,
                "frequency_penalty": options.frequency_penalty,
                "presence_penalty": options.presence_penalty,
                "maxOutputTokens": request.max_output_tokens,
            },
            without,
        )
        spelt = {
            "top_p": "topP",
            "stop": "stopSequences",
            "frequency_penalty": "frequencyPenalty",
            "presence_penalty": "presencePenalty",
        }
        made = {spelt.get(name, name): value for name, value in said.items()}
        if thinking := _thinking(request, without):
            made["thinkingConfig"] = thinking
        if "form" not in without and wire_format.can_force_form(request, beside_tools=False):
            if request.json_schema is not None or request.json_mode:
                made["responseMimeType"] = "application/json"
            if request.json_schema is not None and "json_schema" not in without:
                schema = gemini_schema.cleaned(request.json_schema.schema)
                made |= {"responseSchema": schema} if schema else {}
        return made

    def _contents(
        self, request: ModelRequest, names: ToolNames, without: frozenset[str]
    ) -> list[Content]:
        """The results of one turn's calls are together, directly behind it, and nothing else is
        with them.
        """
        if "images" in without:
            request = wire_format.without_images(request)
        ids = CallIds()
        contents: list[Content] = []
        # Images of results: they follow once all results have been given.
        pictured: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        for message in request.messages:
            if isinstance(message, ToolMessage):
                results.append(_result(message, names, ids, without))
                if message.images:
                    label = Text(f"Images from {names.to_wire(message.name)}:")
                    pictured += _parts((label, *message.images))
                continue
            _flush(contents, results, pictured)
            match message:
                case UserMessage(parts=parts):
                    _add(contents, "user", _parts(parts))
                case AssistantMessage():
                    _add(contents, "model", self._turn(message, request, names, ids, without))
        _flush(contents, results, pictured)
        return contents

    def _turn(
        self,
        message: AssistantMessage,
        request: ModelRequest,
        names: ToolNames,
        ids: CallIds,
        without: frozenset[str],
    ) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = [
            {
                "functionCall": {
                    **({} if "ids" in without else {"id": ids.of_call(call)}),
                    "name": names.to_wire(call.name),
                    "args": wire_format.arguments_object(call.arguments),
                }
            }
            for call in message.calls
        ]
        items = [] if "native" in without else wire_format.native_items(message, self._dialect)
        if items:
            return _signed(items, message.text, calls)
        if calls and _wants_signatures(request.model):
            calls[0] |= {"thoughtSignature": _NO_SIGNATURE}
        return [*({"text": text} for text in (message.text,) if text), *calls]


def _wants_signatures(model: str) -> bool:
    """From the third generation on, a call without one is refused."""
    name = model.rpartition("/")[2]
    return name.startswith("gemini-") and not name.startswith(("gemini-1", "gemini-2"))


def _thinking(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    if "thoughts" in without:
        return {}
    name = request.model.rpartition("/")[2]
    second = name.startswith("gemini-2.5")
    thinking: dict[str, Any] = (
        {"includeThoughts": True} if second or _wants_signatures(request.model) else {}
    )
    effort = request.options.effort
    if effort and "effort" not in without:
        if second:
            thinking["thinkingBudget"] = _BUDGETS[effort]
        else:
            thinking["thinkingLevel"] = _LEVELS.get(effort, effort)
    return thinking


def _choice(choice: str, names: ToolNames) -> dict[str, Any]:
    named = {"mode": "ANY", "allowedFunctionNames": [names.to_wire(choice)]}
    return {NO_CALL: {"mode": "NONE"}, ANY_CALL: {"mode": "ANY"}}.get(choice, named)


def _parts(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=text):
                if text:
                    made.append({"text": text})
            case Image():
                data = {"mimeType": part.media_type, "data": wire_format.base64_of(part)}
                made.append({"inlineData": data})
    return made


def _result(
    message: ToolMessage, names: ToolNames, ids: CallIds, without: frozenset[str]
) -> dict[str, Any]:
    said = {"error" if message.is_error else "output": message.text or "(no output)"}
    return {
        "functionResponse": {
            **({} if "ids" in without else {"id": ids.of_result(message)}),
            "name": names.to_wire(message.name),
            "response": said,
        }
    }


def _signed(items: list[Any], text: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts as they came, each with the signature that it had."""
    parts: list[dict[str, Any]] = []
    at = 0
    remaining = iter(calls)
    for item in items:
        signature = item.get("thoughtSignature")
        sealed = {"thoughtSignature": signature} if signature else {}
        if item.get("type") == "call":
            parts.append(next(remaining) | sealed)
            continue
        length = item.get("characters", 0)
        if length or sealed:
            parts.append({"text": text[at : at + length], **sealed})
        at += length
    return parts


def _add(contents: list[Content], role: str, parts: list[dict[str, Any]]) -> None:
    if parts:
        contents.append({"role": role, "parts": parts})


def _flush(
    contents: list[Content], results: list[dict[str, Any]], pictured: list[dict[str, Any]]
) -> None:
    _add(contents, "user", [*results])
    _add(contents, "user", [*pictured])
    results.clear()
    pictured.clear()
