"""JSON-RPC as MCP's server side speaks it: what a body says, in which revision of the protocol, and
every way to refuse it.

The rule: nothing behind this file looks at a raw message, and everything that is refused here says
what is wrong with it.
"""

import re
from base64 import b64decode, b64encode
from typing import Any

import msgspec
from msgspec import Struct

from palyra import __version__
from palyra.api import decoding
from palyra.core import json_rpc
from palyra.core.errors import InvalidInput
from palyra.core.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from palyra.features.mcp import jsonrpc

# The revisions that begin with a handshake, newest first, and the one in which every request stands
# for itself. The two older ones want batches, which no client in use sends.
HANDSHAKE = jsonrpc.HANDSHAKE[:2]
MODERN = jsonrpc.MODERN
SERVER = {"name": "palyra", "title": "Palyra", "version": __version__}

HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
_STATUS = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 200}
_META = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY, SERVER_KEY = (
    f"{_META}protocolVersion",
    f"{_META}clientCapabilities",
    f"{_META}serverInfo",
)
# What a request is about stands in a header too, so that whoever passes it on need not read the
# body.
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")
_LONGEST_ID, _LONGEST_METHOD = 256, 100

RequestId = int | str


class Refusal(Exception):
    """An error of the protocol, to be sent as the answer. `id` is None if it could not be read."""

    def __init__(
        self, code: int, message: str, *, id: RequestId | None = None, data: Any = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.id, self.data = code, message, id, data

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(json_rpc.failure(self.id, self.code, self.message, self.data))

    @property
    def status(self) -> int:
        return _STATUS.get(self.code, 400)


class McpRequest(Struct, frozen=True, kw_only=True):
    """`modern`: it stands for itself, so its results say more, and ending its stream is taking it
    back.
    """

    id: RequestId
    method: str
    params: dict[str, Any]
    modern: bool = False

    @property
    def meta(self) -> dict[str, Any]:
        return _dict(self.params.get("_meta"))

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return what the client of a modern request can do."""
        return _dict(self.meta.get(CAPABILITIES_KEY))

    @property
    def progress_token(self) -> RequestId | None:
        token = self.meta.get("progressToken")
        return token if _is_id(token) else None

    def refused(self, code: int, message: str, data: Any = None) -> Refusal:
        return Refusal(code, message, id=self.id, data=data)


class ClientNotification(Struct, frozen=True, kw_only=True):
    method: str
    params: dict[str, Any]


class ClientReply(Struct, frozen=True):
    """An answer of the client to something that this server never asked."""


async def read(data: bytes) -> McpRequest | ClientNotification | ClientReply:
    """The message in a body. Raises Refusal."""
    try:
        await decoding.check_json(data)
        value = msgspec.json.decode(data)
    except InvalidInput as error:
        raise Refusal(PARSE_ERROR, error.message) from error
    except (ValueError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"the body is not JSON: {error}") from error
    if isinstance(value, list):
        raise Refusal(
            INVALID_REQUEST,
            "batches are no part of this protocol any more: send one message at a time",
        )
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise Refusal(
            INVALID_REQUEST, 'the body is not a JSON-RPC message: {"jsonrpc": "2.0", "method": …}'
        )
    message_id, method, params = value.get("id"), value.get("method"), value.get("params", {})
    if "id" in value and not _is_id(message_id):
        raise Refusal(
            INVALID_REQUEST,
            f"an id is a whole number or a text of at most {_LONGEST_ID} characters",
        )
    if method is None and ("result" in value or "error" in value):
        return ClientReply()
    if not isinstance(method, str) or len(method) > _LONGEST_METHOD:
        raise Refusal(INVALID_REQUEST, "a message names its method", id=message_id)
    if not isinstance(params, dict):
        raise Refusal(INVALID_PARAMS, "params is an object", id=message_id)
    if "id" not in value:
        return ClientNotification(method=method, params=params)
    assert isinstance(message_id, int | str)
    return McpRequest(id=message_id, method=method, params=params)


def modern(request: McpRequest, headers: dict[bytes, bytes]) -> bool:
    """Return whether a request is meant to stand for itself. Raises Refusal if it is and something
    that it needs is missing.
    """
    version = _header(headers, b"mcp-protocol-version")
    meta = request.meta
    if version != MODERN and VERSION_KEY not in meta:
        return False
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise request.refused(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    named = meta[VERSION_KEY]
    if not isinstance(named, str) or not isinstance(meta[CAPABILITIES_KEY], dict):
        raise request.refused(
            INVALID_PARAMS, f"{VERSION_KEY} is a text and {CAPABILITIES_KEY} an object"
        )
    _same(request, "MCP-Protocol-Version", version, named)
    _same(request, "Mcp-Method", _header(headers, b"mcp-method"), request.method)
    key = _NAMED.get(request.method)
    if key is not None and isinstance(request.params.get(key), str):
        _same(request, "Mcp-Name", _header(headers, b"mcp-name"), request.params[key])
    if named != MODERN:
        data = {"supported": [MODERN], "requested": named[:64]}
        raise request.refused(
            UNSUPPORTED_VERSION,
            f"this server does not speak {named[:64]!r} without a handshake",
            data,
        )
    return True


def _same(request: McpRequest, header: str, given: str | None, wanted: str) -> None:
    if given is None:
        raise request.refused(
            HEADER_MISMATCH, f"the header {header} is missing: it says what the body says"
        )
    if given != wanted:
        raise request.refused(
            HEADER_MISMATCH, f"the header {header} does not say what the body says"
        )


def _header(headers: dict[bytes, bytes], name: bytes) -> str | None:
    raw = headers.get(name)
    if raw is None:
        return None
    text = raw.decode("latin-1").strip()
    encoded = _ENCODED.fullmatch(text)
    if encoded is None:
        return text
    try:
        plain = b64decode(encoded[1], validate=True)
        # Only what an encoder writes: two spellings of one name would be two names to somebody
        # else.
        return plain.decode() if b64encode(plain).decode() == encoded[1] else None
    except ValueError:
        return None


def result(request: McpRequest, value: dict[str, Any]) -> bytes:
    if request.modern:
        value = {
            "resultType": "complete",
            **value,
            "_meta": {SERVER_KEY: SERVER, **value.get("_meta", {})},
        }
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, "result": value})


def progress(token: RequestId, count: int, message: str) -> bytes:
    params = {"progressToken": token, "progress": count, "message": message}
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    )


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_ID
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
