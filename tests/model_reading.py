"""Reads recorded bytes with our parsers, without a socket: the same path as a live answer from the
first byte on.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from palyra.core.messages import Channel, ModelReply, ModelRequest, ToolSchema
from palyra.models.anthropic_stream import MessagesParser
from palyra.models.gemini_stream import GeminiParser
from palyra.models.http import ProviderEndpoint
from palyra.models.openai_chat_stream import ChatParser
from palyra.models.openai_responses_stream import ResponsesParser
from palyra.models.request import Parser, ResponseReader
from palyra.models.wire_format import ToolNames

PARSERS: dict[str, Callable[..., Parser]] = {
    "openai-chat": ChatParser,
    "openai-responses": ResponsesParser,
    "anthropic": MessagesParser,
    "gemini": GeminiParser,
}
ENDPOINT = ProviderEndpoint(name="fake", base_url="http://127.0.0.1/v1", api_key="sk-very-secret")


def asks(*tools: str, **more: Any) -> ModelRequest:
    schemas = tuple(
        ToolSchema(name, f"does {name}", {"type": "object", "properties": {}}) for name in tools
    )
    return ModelRequest(
        **({"model": "m", "instructions": "be brief", "messages": (), "tools": schemas} | more)
    )


def read(
    dialect: str,
    body: bytes,
    *,
    pieces: int = 37,
    tools: tuple[str, ...] = (),
    heard: list[Any] | None = None,
) -> ModelReply:
    """The reply in these bytes; raises what the adapter would raise."""

    def emit(channel: Channel, text: str) -> None:
        if heard is not None:
            heard.append((channel, text))

    reading = ResponseReader(
        PARSERS[dialect](ToolNames(tools), emit, ENDPOINT, f"{dialect}@127.0.0.1"), ENDPOINT
    )
    for at in range(0, len(body), pieces):
        if reading.feed(body[at : at + pieces]):
            break
    return reading.end()


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded answer in one of our dialects."""

    name: str
    dialect: str
    body: bytes
    streamed: bool


@cache
def recordings(folder: Path) -> tuple[Recording, ...]:
    return tuple(
        recording for path in sorted(folder.glob("*.yaml")) for recording in _recorded(path)
    )


def _recorded(path: Path) -> Iterator[Recording]:
    for number, exchange in enumerate(yaml.safe_load(path.read_text())["interactions"]):
        response = exchange["response"]
        if response["status"]["code"] != 200:
            continue
        body = _bytes(response)
        dialect = _dialect(urlsplit(exchange["request"]["uri"]).path, body)
        if dialect:
            yield Recording(
                f"{path.stem}-{number}", dialect, body, streamed=not body.lstrip().startswith(b"{")
            )


def _bytes(response: dict[str, Any]) -> bytes:
    if "parsed_body" in response:
        return json.dumps(response["parsed_body"]).encode()
    body = response["body"]
    text = body.get("string", "") if isinstance(body, dict) else body
    return text if isinstance(text, bytes) else text.encode()


def _dialect(path: str, body: bytes) -> str:
    if path.endswith("/chat/completions") or b'"object":"chat.completion' in body:
        return "openai-chat"
    if path.endswith("/responses"):
        return "openai-responses"
    if path.endswith(":streamGenerateContent"):
        return "gemini"
    return "anthropic" if path.endswith("/v1/messages") else ""
