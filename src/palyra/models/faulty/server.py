"""A small HTTP server on loopback that answers chat completions as the fault named by the model
wants it.

The rule: it answers this machine only, keeps nothing, and a fault that lasts ends when the client
leaves or after a bound.
"""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import Any

from palyra.models.faulty import wire
from palyra.models.faulty.behaviour import Asked
from palyra.models.faulty.faults import FAULTS
from palyra.models.faulty.wire import HangUp, Silence, WireReply

_HEAD_BYTES = 64 << 10
_BODY_BYTES = 64 << 20
_LONGEST_S = 60.0


class FaultyServer:
    """Opened when it is first asked for. Which turn a request is follows from what it says."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._tries: Counter[str] = Counter()

    async def address(self) -> str:
        """The address of the API, opened if it is not yet."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", 0, limit=_HEAD_BYTES
            )
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError
        ):
            async with asyncio.timeout(_LONGEST_S):
                body = await _read(reader)
                await _write(writer, reader, self._reply(body))
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _reply(self, body: bytes) -> WireReply:
        try:
            asked = json.loads(body)
        except ValueError:
            return wire.refusal(400, "the body is not JSON")
        name = str(asked.get("model", ""))
        fault = FAULTS.get(name)
        if fault is None:
            return wire.refusal(404, f"there is no fault {name}", code="model_not_found")
        return fault.reply(self._asked(name, asked))

    def _asked(self, name: str, body: dict[str, Any]) -> Asked:
        asked = Asked.read(body.get("messages") or [], body.get("tools") or [])
        # Faults that pass go wrong at every other try.
        key = f"{name} {asked.results > 0}"
        self._tries[key] += 1
        return asked.tried(self._tries[key])


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The body of one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = (line.partition(":") for line in head.split("\r\n")[1:])
    fields = {name.strip(): value.strip() for name, _, value in lines}
    if fields.get("transfer-encoding") == "chunked":
        return await _chunks(reader)
    size = int(fields.get("content-length") or 0)
    return await reader.readexactly(min(size, _BODY_BYTES))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while (size := int((await reader.readline()).strip() or b"0", 16)) and len(body) < _BODY_BYTES:
        body += await reader.readexactly(size)
        await reader.readline()
    return bytes(body)


async def _write(
    writer: asyncio.StreamWriter, reader: asyncio.StreamReader, reply: WireReply
) -> None:
    if reply.head:
        fields = {"content-type": reply.media_type, "connection": "close", **reply.headers}
        if reply.length is not None:
            fields["content-length"] = str(reply.length)
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {reply.status} Faulty\r\n{lines}\r\n".encode())
        await writer.drain()
    for part in reply.parts:
        match part:
            case HangUp():
                # Unread or unsent data makes this a reset rather than an end.
                writer.transport.abort()
                return
            case Silence(seconds=seconds):
                # Whoever leaves ends the silence.
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), seconds)
            case _:
                writer.write(part)
                await writer.drain()
                # Pieces arrive one by one, not joined to one.
                await asyncio.sleep(0)
