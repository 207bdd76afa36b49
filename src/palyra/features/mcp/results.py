"""Results of a server's tool, as a result of ours. Everything in it is bounded and described;
nothing in it is believed.
"""

import binascii
from base64 import b64decode
from typing import Any

import msgspec

from palyra.core.tools import ToolResult
from palyra.features.mcp import jsonrpc

MOST_TEXT = 256 << 10
_MOST_PARTS = 256
_MOST_IMAGES = 8
_MOST_IMAGE_BYTES = 4 << 20
_MOST_STRUCTURED_BYTES = 128 << 10
_MOST_LEVELS = 32
_MOST_QUESTIONS = 16
_MOST_STATE = 256 << 10
_SHORT = 300
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def result(answer: dict[str, Any]) -> ToolResult:
    if answer.get("resultType") == "input_required":
        return ToolResult(
            outcome="error",
            text=(
                "the server wants to ask somebody first, which it cannot here; nothing was finished"
            ),
        )
    content = answer.get("content")
    parts, images = _content(content if isinstance(content, list) else [])
    data, note = _structured(answer.get("structuredContent"))
    if not parts and data is not None:
        parts = [msgspec.json.encode(data["structured"]).decode()]
    text = _bounded("\n".join([*parts, *note]))
    return ToolResult(
        outcome="error" if answer.get("isError") is True else "ok",
        text=text,
        data=data,
        images=images,
    )


def unanswered(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what to send again so that a server that asks something first can come to an end: it
    is unattended, so nothing is answered.

    Empty if it asked nothing, or something that cannot be left unanswered.
    """
    if answer.get("resultType") != "input_required":
        return {}
    asked, state = answer.get("inputRequests") or {}, answer.get("requestState")
    if not isinstance(asked, dict) or len(asked) > _MOST_QUESTIONS:
        return {}
    if any(
        not isinstance(each, dict) or each.get("method") != "elicitation/create"
        for each in asked.values()
    ):
        return {}
    more: dict[str, Any] = (
        {"inputResponses": {key: {"action": "cancel"} for key in asked}} if asked else {}
    )
    return more | (
        {"requestState": state} if isinstance(state, str) and len(state) <= _MOST_STATE else {}
    )


def _content(content: list[Any]) -> tuple[list[str], tuple[str, ...]]:
    parts: list[str] = []
    images: list[str] = []
    for part in content[:_MOST_PARTS]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif kind == "image":
            image = _image(part) if len(images) < _MOST_IMAGES else ""
            images += [image] if image else []
            parts.append(
                f"[image {len(images)}]"
                if image
                else f"[{_described(part, 'image')} that cannot be shown]"
            )
        elif kind == "resource" and isinstance(part.get("resource"), dict):
            parts.append(_resource(part["resource"]))
        elif kind == "resource_link":
            parts.append(_link(part))
        else:
            parts.append(
                f"[{_described(part, jsonrpc.clean(kind, 32) or 'something of an unknown kind')},"
                " not shown]"
            )
    if len(content) > _MOST_PARTS:
        parts.append(f"[and {len(content) - _MOST_PARTS} more parts, not shown]")
    return parts, tuple(images)


def _image(part: dict[str, Any]) -> str:
    """The image as a data URL, or nothing if it is too large or none."""
    kind, data = part.get("mimeType"), part.get("data")
    if (
        kind not in _IMAGES
        or not isinstance(data, str)
        or len(data) > _MOST_IMAGE_BYTES * 4 // 3 + 4
    ):
        return ""
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return f"data:{kind};base64,{data}"


def _described(part: Any, kind: str) -> str:
    """Kind, type and size of something that is not shown."""
    part = part if isinstance(part, dict) else {}
    data = part.get("data", part.get("blob"))
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
    mime = jsonrpc.clean(part.get("mimeType"), 64)
    return f"{kind}{f' of type {mime}' if mime else ''}{size}"


def _resource(resource: dict[str, Any]) -> str:
    uri = jsonrpc.clean(resource.get("uri"), _SHORT)
    if isinstance(resource.get("text"), str):
        return f"[resource {uri}]\n{resource['text']}"
    return f"[{_described(resource, f'resource {uri}')}, not shown]"


def _link(part: dict[str, Any]) -> str:
    name, uri = (
        jsonrpc.clean(part.get("title") or part.get("name"), _SHORT),
        jsonrpc.clean(part.get("uri"), _SHORT),
    )
    words = jsonrpc.clean(part.get("description"), _SHORT)
    return f"[link to {name} <{uri}>{f': {words}' if words else ''}]"


def _structured(value: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """Return it under a name of ours: what a server says must not be taken for what our own tools
    say about themselves.
    """
    if value is None:
        return None, []
    if jsonrpc.deeper_than(value, _MOST_LEVELS):
        return None, [f"[structured content with more than {_MOST_LEVELS} levels, not kept]"]
    size = len(msgspec.json.encode(value))
    if size > _MOST_STRUCTURED_BYTES:
        return None, [f"[structured content of {size:,} bytes, not kept]"]
    return {"structured": value}, []


def _bounded(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}\n… [cut: {len(text):,} characters in all]"
