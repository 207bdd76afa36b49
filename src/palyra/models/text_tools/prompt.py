"""A request for a model that takes no tools: the tools, the calls and their results as text."""

import json
from typing import Any, Final

import msgspec

from palyra.core.messages import (
    ANY_CALL,
    NO_CALL,
    AssistantMessage,
    Message,
    ModelCall,
    ModelRequest,
    Part,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.models import wire_format
from palyra.models.request import encode

_HOW: Final = """

# Tools
You can call tools. To call one, write this at the end of your reply, on a line of its own:
<tool_call>
{"name": "TOOL", "arguments": {…}}
</tool_call>
"arguments" is one JSON object that fits the tool's schema. Write one such block for each call, and nothing after the last one; the result comes in <tool_response>. Never write a <tool_response> yourself. To quote such text without calling anything, put it into a code fence. If no tool is needed, just answer.
Each line is a tool:
"""  # noqa: E501
_CLOSE: Final = "</tool_response"


def as_text(request: ModelRequest) -> ModelRequest:
    """The same request without anything that a server without tools would refuse."""
    choice = request.tool_choice
    offers = request.tools if choice != NO_CALL else ()
    return msgspec.structs.replace(
        request,
        instructions=request.instructions + (_offer(offers, choice) if offers else ""),
        messages=_messages(request.messages),
        tools=(),
        tool_choice="",
    )


def without_tools(request: ModelRequest) -> ModelRequest:
    return as_text(msgspec.structs.replace(request, tools=()))


def _offer(tools: tuple[ToolSchema, ...], choice: str) -> str:
    if choice and choice != ANY_CALL:
        tools = tuple(tool for tool in tools if tool.name == choice) or tools
    lines = "\n".join(_written(tool) for tool in tools)
    must = "\nIn this reply you must call a tool." if choice else ""
    return f"{_HOW}{lines}{must}"


def _written(tool: ToolSchema) -> str:
    return encode(
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": wire_format.schema_of(tool),
        }
    ).decode()


def _messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Results become what the user says next, all of a turn together."""
    made: list[Message] = []
    results: list[Part] = []
    for message in messages:
        match message:
            case ToolMessage():
                results += [Text(_result(message)), *message.images]
            case UserMessage(parts=parts):
                made.append(UserMessage((*results, *parts)))
                results = []
            case AssistantMessage():
                if results:
                    made.append(UserMessage(tuple(results)))
                    results = []
                made.append(_assistant(message))
    if results:
        made.append(UserMessage(tuple(results)))
    return tuple(made)


def _assistant(message: AssistantMessage) -> AssistantMessage:
    if not message.calls:
        return message
    said = [message.text.rstrip()] if message.text.strip() else []
    return AssistantMessage(
        text="\n".join((*said, *map(_call, message.calls))), reasoning=message.reasoning
    )


def _call(call: ModelCall) -> str:
    try:
        arguments: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return (
        f"<tool_call>\n{encode({'name': call.name, 'arguments': arguments}).decode()}\n</tool_call>"
    )


def _result(message: ToolMessage) -> str:
    # A result must not be able to end itself.
    text = wire_format.result_text(message).replace(_CLOSE, "<\\/tool_response")
    return f'<tool_response name="{message.name}">\n{text}\n</tool_response>'
