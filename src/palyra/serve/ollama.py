"""Detection of an Ollama on this machine, and of its models. It must not hold up the start of
anything.
"""

import asyncio
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from palyra.serve.config import OLLAMA_URL

_LIMIT_S = 0.15
_MOST_BYTES = 1 << 20


class _Model(Struct):
    name: str


class _Tags(Struct):
    models: list[_Model] = []


async def models(url: str = OLLAMA_URL) -> list[str] | None:
    """The names of its models; None if nobody answers as Ollama does, at once."""
    try:
        async with asyncio.timeout(_LIMIT_S):
            answer = await _get(url)
    except (OSError, TimeoutError, asyncio.LimitOverrunError):
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.") or b" 200 " not in head[:16]:
        return None
    try:
        return [model.name for model in msgspec.json.decode(body, type=_Tags).models]
    except msgspec.DecodeError:
        return None


async def _get(url: str) -> bytes:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        # HTTP/1.0, so that the answer ends with the connection and is not sent in chunks.
        writer.write(
            f"GET /api/tags HTTP/1.0\r\nHost: {where.netloc}\r\nAccept: application/json\r\n\r\n".encode()  # noqa: E501
        )
        return await _read_all(reader)
    finally:
        writer.close()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    pieces = bytearray()
    while len(pieces) < _MOST_BYTES and (piece := await reader.read(1 << 16)):
        pieces += piece
    return bytes(pieces)
