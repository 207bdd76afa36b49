"""Usage for models that have no tokenizer. A rule of thumb, four characters to a token, and never
reported as exact.
"""

from palyra.core.messages import (
    AssistantMessage,
    ModelRequest,
    Text,
    ToolMessage,
    Usage,
    UserMessage,
)

_CHARACTERS_PER_TOKEN = 4


def tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def usage(request: ModelRequest, *, text: str, reasoning: str = "", arguments: str = "") -> Usage:
    """Estimate the usage of a call with this request and this reply."""
    thought = tokens(reasoning)
    return Usage(
        input_tokens=-(-_length(request) // _CHARACTERS_PER_TOKEN),
        output_tokens=tokens(text) + tokens(arguments) + thought,
        reasoning_tokens=thought,
    )


def _length(request: ModelRequest) -> int:
    total = len(request.instructions)
    for tool in request.tools:
        total += len(tool.name) + len(tool.description) + len(str(tool.parameters))
    for message in request.messages:
        match message:
            case UserMessage(parts=parts):
                total += sum(len(part.text) for part in parts if isinstance(part, Text))
            case AssistantMessage():
                total += len(message.text) + sum(
                    len(call.name) + len(call.arguments) for call in message.calls
                )
            case ToolMessage():
                total += len(message.text)
    return total
