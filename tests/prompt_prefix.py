"""What a provider is sent, as one sequence: tools, instructions, then block after block. Caches
work by its beginning, so a request should begin with all of the one before it.
"""

import json
from collections.abc import Iterator
from typing import Any

_MARKS = ("cache_control",)


def blocks(dialect: str, body: dict[str, Any]) -> list[str]:
    """The request as text, one entry for each block, without the marks that move with the end."""
    return [json.dumps(_bare(each)) for each in _READERS[dialect](body)]


def marks(value: Any) -> int:
    """How many cache marks a request has."""
    match value:
        case dict():
            return ("cache_control" in value) + sum(map(marks, value.values()))
        case list():
            return sum(map(marks, value))
    return 0


def _bare(value: Any) -> Any:
    match value:
        case dict():
            return {key: _bare(item) for key, item in value.items() if key not in _MARKS}
        case list():
            return [_bare(item) for item in value]
    return value


def _chat(body: dict[str, Any]) -> Iterator[Any]:
    yield body.get("tools")
    for message in body["messages"]:
        content = message.get("content")
        if isinstance(content, list) and all(part.get("type") == "text" for part in content):
            # A mark needs parts; the words are the same.
            content = "".join(part["text"] for part in content)
        yield message | {"content": content}


def _responses(body: dict[str, Any]) -> Iterator[Any]:
    yield body.get("tools")
    yield body.get("instructions")
    yield from body["input"]


def _anthropic(body: dict[str, Any]) -> Iterator[Any]:
    yield body.get("tools")
    yield body.get("system")
    for message in body["messages"]:
        for block in message["content"]:
            yield [message["role"], block]


def _gemini(body: dict[str, Any]) -> Iterator[Any]:
    yield body.get("tools")
    yield body.get("systemInstruction")
    for content in body["contents"]:
        for part in content["parts"]:
            yield [content["role"], part]


_READERS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
