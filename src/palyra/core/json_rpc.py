"""JSON-RPC 2.0 as far as every protocol on it is the same: the codes, what an error looks like, and
one message a line.
"""

from collections.abc import Iterator
from typing import IO, Any

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
SERVER_ERROR = -32000


def failure(message_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return the answer that refuses a message. Without a usable id it is about something that
    could not be read.
    """
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": message_id, "error": error}


def lines(stream: IO[bytes], most: int) -> Iterator[bytes | None]:
    """Yield every line that is not blank; None for one that is longer than `most`, whose rest is
    thrown away.
    """
    while line := stream.readline(most + 1):
        if len(line) > most:
            while line and not line.endswith(b"\n"):
                line = stream.readline(most)
            yield None
        elif line.strip():
            yield line.strip()
