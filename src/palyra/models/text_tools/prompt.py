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
from palyra.models.text_tools.calls import ANSWER

_HOW: Final = """

# Tools
You can call tools; the user cannot. If a request is about files, commands, pages or something to remember, do not guess and do not explain how: call the tool at once, and answer when you have its result. To call a tool, write this at the end of your reply, on a line of its own:
<tool_call>
{"name": "TOOL", "arguments": {…}}
</tool_call>
"arguments" is one JSON object that fits the tool's schema; leave out what is not required. Write one such block for each call, and nothing after the last one; the result comes in <tool_response>. Never write a <tool_response> yourself. To quote such text without calling anything, put it into a code fence. If no tool is needed, just answer.
Each line is a tool:
"""  # noqa: E501
# Values to show a call with, by the name of the parameter.
_SAMPLES: Final = {
    "path": "report.txt",
    "command": "uptime",
    "url": "https://example.com",
    "query": "harbour",
    "pattern": "harbour",
}
# Weak models rather guess or explain than call a tool. Asked for an object in any case, with the
# answer as one of the tools, they choose well.
_FIRST_CALL: Final = (
    '\n\nReply with one JSON object, {"name": TOOL, "arguments": {…}}, that calls the tool which'
    ' looks this up or does it. If no tool can help: {"name": "answer", "arguments": {"text": …}}.'
)
_AFTER_RESULT: Final = (
    "\n\nThe request was: {asked}\nIf something of it is left to do, reply with the next"
    ' JSON object, {{"name": TOOL, "arguments": {{…}}}}. If all of it is done, answer:'
    ' {{"name": "answer", "arguments": {{"text": …}}}}.'
)
_AFTER_FAILURE: Final = (
    "\n\nThe call failed. The request was: {asked}\nPut right what was wrong and reply with"
    ' one JSON object, {{"name": TOOL, "arguments": {{…}}}}. If that cannot help, say what is in'
    ' the way: {{"name": "answer", "arguments": {{"text": …}}}}.'
)
_LONGEST_REQUEST: Final = 400
_CLOSE: Final = "</tool_response"


def asks_for_object(request: ModelRequest) -> bool:
    """Return whether the model is to reply with an object in any case."""
    return (
        request.fitted
        and bool(request.tools)
        and not request.tool_choice
        and all(tool.name != ANSWER for tool in request.tools)
    )


def as_text(request: ModelRequest, *, asked: bool = False) -> ModelRequest:
    """The same request without anything that a server without tools would refuse. `asked`: the
    reply is to be an object.
    """
    choice = request.tool_choice
    offers = request.tools if choice != NO_CALL else ()
    return msgspec.structs.replace(
        request,
        instructions=request.instructions + (_offer(offers, choice) if offers else ""),
        messages=_messages(request.messages, reminded=asked),
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
    return f"{_HOW}{lines}{_example(tools)}{must}"


def _example(tools: tuple[ToolSchema, ...]) -> str:
    """One call as it should be written, of the first tool that it can be shown with."""
    for tool in tools:
        required = tool.parameters.get("required", ())
        if len(required) == 1 and required[0] in _SAMPLES:
            call = ModelCall("", tool.name, json.dumps({required[0]: _SAMPLES[required[0]]}))
            return f"\nFor example, this reply calls {tool.name}:\n{_call(call)}"
    return ""


def _written(tool: ToolSchema) -> str:
    return encode(
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": wire_format.schema_of(tool),
        }
    ).decode()


def _messages(messages: tuple[Message, ...], *, reminded: bool) -> tuple[Message, ...]:
    """Results become what the user says next, all of a turn together. `reminded`: the last message
    ends with what the reply may be now, which weak models forget if the instructions alone say it.
    """
    last = messages[-1] if messages and reminded else None
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
    if isinstance(last, ToolMessage | UserMessage) and isinstance(made[-1], UserMessage):
        made[-1] = UserMessage((*made[-1].parts, Text(_reminder(messages, last))))
    return tuple(made)


def _reminder(messages: tuple[Message, ...], last: ToolMessage | UserMessage) -> str:
    if isinstance(last, UserMessage):
        return _FIRST_CALL
    asked = next((each for each in reversed(messages) if isinstance(each, UserMessage)), None)
    parts = asked.parts if asked is not None else ()
    words = " ".join(part.text.strip() for part in parts if isinstance(part, Text))
    if len(words) > _LONGEST_REQUEST:
        words = f"{words[:_LONGEST_REQUEST]}…"
    return (_AFTER_FAILURE if last.is_error else _AFTER_RESULT).format(asked=words)


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
