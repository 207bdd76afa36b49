"""JSON-RPC messages as MCP uses them, from bytes and to bytes.

The rule: whatever a server sends is one of four values or is refused here; nothing behind this file
looks at raw messages.
"""

import re
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct

from palyra import __version__
from palyra.core import json_rpc
from palyra.core.errors import Unavailable

MOST_MESSAGE_BYTES = 8 << 20
_MOST_IN_BATCH = 256
_MOST_WORDS = 2000

# The revisions that begin with a handshake, newest first, and the one in which every request stands
# for itself.
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
CLIENT = {"name": "palyra", "version": __version__}

UNSUPPORTED_VERSION = -32022

# What a terminal would obey and what people do not see but a model reads: controls, direction
# marks, separators, tag characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


class NotSent(Unavailable):
    """The server has certainly not got the message."""


class MaybeDelivered(Unavailable):
    """The message may have reached the server, and no answer came."""


class TookTooLong(MaybeDelivered):
    """No answer came in the time given."""


class ErrorAnswer(Unavailable):
    """The server answered with an error."""

    def __init__(self, rpc_code: int, message: str, data: Any = None) -> None:
        super().__init__(clean(message, _MOST_WORDS) or "an error without words", rpc_code=rpc_code)
        self.rpc_code = rpc_code
        self.data = data


class RpcRequest(Struct, frozen=True):
    id: int | str
    method: str
    params: dict[str, Any]


class RpcNotification(Struct, frozen=True):
    method: str
    params: dict[str, Any]


class RpcResponse(Struct, frozen=True):
    id: int
    result: dict[str, Any]


class RpcError(Struct, frozen=True):
    """An error; without an id it is about something the server could not read."""

    id: int | None
    code: int
    message: str
    data: Any = None


Message = RpcRequest | RpcNotification | RpcResponse | RpcError


class Malformed(ValueError):
    """Error: it is not a message."""


class OutgoingRpc(Struct, frozen=True, kw_only=True):
    """A message on its way out. `id` is None for what gets no answer. `name` is the tool's, for
    links that say it outside too.
    """

    method: str
    body: bytes
    id: int | None = None
    name: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def request(
    request_id: int, method: str, params: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()
) -> OutgoingRpc:
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    )
    return OutgoingRpc(
        method=method, body=body, id=request_id, name=str(params.get("name", "")), headers=headers
    )


def notification(method: str, params: dict[str, Any] | None = None) -> OutgoingRpc:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        message["params"] = params
    return OutgoingRpc(method=method, body=msgspec.json.encode(message))


def answer(to: RpcRequest) -> OutgoingRpc:
    """The answer to a server's request: a ping is answered, everything else is not something we
    do.
    """
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": to.id}
    if to.method == "ping":
        message["result"] = {}
    else:
        message = json_rpc.failure(to.id, json_rpc.METHOD_NOT_FOUND, "this client does not do that")
    return OutgoingRpc(method="", body=msgspec.json.encode(message))


def read(data: bytes) -> list[Message]:
    """The messages in one frame; older servers may send several at once. Raises Malformed."""
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise Malformed("not JSON") from error
    if not isinstance(value, list):
        return [_one(value)]
    found: list[Message] = []
    for each in value[:_MOST_IN_BATCH]:
        try:
            found.append(_one(each))
        except Malformed:
            continue
    return found


def _one(value: Any) -> Message:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise Malformed("not a JSON-RPC message")
    message_id, method = value.get("id"), value.get("method")
    if isinstance(method, str):
        params = value.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in value:
            return RpcNotification(method, params)
        if _small(message_id) or (isinstance(message_id, str) and len(message_id) <= 256):
            return RpcRequest(message_id, method, params)
        raise Malformed("a request without a proper id")
    ours = message_id if _small(message_id) else None
    error = value.get("error")
    if isinstance(error, dict):
        code, words = error.get("code"), error.get("message")
        return RpcError(
            ours,
            code if _small(code) else 0,
            words if isinstance(words, str) else "",
            error.get("data"),
        )
    result = value.get("result")
    if ours is not None and isinstance(result, dict):
        return RpcResponse(ours, result)
    raise Malformed("neither a request nor an answer")


def _small(value: Any) -> TypeGuard[int]:
    """Return whether it is a number as ids are. Python has larger ones, and stumbles over printing
    them.
    """
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def clean(text: object, most: int) -> str:
    """A server's words for people and models: nothing invisible in them, and not too long."""
    if not isinstance(text, str):
        return ""
    # What is far beyond the limit is not even looked at.
    kept = _INVISIBLE.sub("", text[: most * 4]).strip()
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def deeper_than(value: Any, most: int) -> bool:
    """Return whether a JSON value has more levels than that. Not recursive itself: it guards those
    that are.
    """
    level = [value]
    for _ in range(most):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
