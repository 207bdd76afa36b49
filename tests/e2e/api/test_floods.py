"""Floods at the doors: what one connection may bring is bounded before anything is done, and
everybody else is answered.
"""

import asyncio
import base64
import json
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import floods

from palyra.api import listen_sockets
from palyra.api.auth import Access
from palyra.api.http_server import HttpServer
from palyra.api.intake import BUDGET, Meter, Pool, budget_for
from palyra.api.limits import ApiLimits
from palyra.api.websocket_connection import WebSocketConnection
from palyra.core.ids import OWNER
from palyra.models.scripted import Turn
from palyra.serve.process import http_app
from tests import inprocess

WAIT_S = 30


@asynccontextmanager
async def served(
    folder: Path, limits: ApiLimits | None = None
) -> AsyncIterator[tuple[HttpServer, int, str, str]]:
    """A server in this loop, its port, an owner's token and a session."""
    limits = limits or ApiLimits(requests_per_second=10_000)
    async with inprocess.daemon(folder, [Turn(text="hi")]) as daemon:
        access = Access(daemon.db, daemon.clock, daemon.redactor.redact)
        await access.open()
        secret, _ = await access.mint(OWNER, "test", "owner", principal=OWNER)
        with listen_sockets.bind("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            server = HttpServer(
                await http_app(daemon, access, limits, f"http://127.0.0.1:{port}", {}), limits
            )
            ready = asyncio.Event()
            serving = asyncio.create_task(server.run_on(listener, ready.set))
            await asyncio.wait_for(ready.wait(), WAIT_S)
            session = await inprocess.session(daemon)
            try:
                yield server, port, secret, session.session_id
            finally:
                server.stop()
                await asyncio.wait_for(serving, WAIT_S)
                await access.close()


def head(port: int, line: str, *headers: str) -> bytes:
    return (
        "\r\n".join((f"{line} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers)).encode()
        + b"\r\n\r\n"
    )


async def healthy(port: int) -> None:
    async with asyncio.timeout(WAIT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(port, "GET /healthz", "Connection: close"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Everything that comes until the daemon has closed."""
    async with asyncio.timeout(WAIT_S):
        said = b""
        try:
            while piece := await reader.read(1 << 16):
                said += piece
        except ConnectionError:
            pass
        return said


def test_requests_that_are_sent_ahead_wait_in_the_socket_and_not_in_memory(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (server, port, secret, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stream = head(port, "GET /v1/events", f"Authorization: Bearer {secret}")
            writer.write(stream + head(port, "GET /healthz") * 20_000)
            async with asyncio.timeout(WAIT_S):
                await reader.readuntil(b"\r\n\r\n")
                connection: Any = next(iter(server.server_state.connections))
                # The stream does not end, so nothing behind it is answered. Others are, and see
                # what is queued.
                while not connection.pipeline:
                    await healthy(port)
            for _ in range(5):
                await healthy(port)
            assert 0 < len(connection.pipeline) <= BUDGET.slice_bytes // 18
            assert connection._feed.paused
            writer.close()

    asyncio.run(scene())


def test_requests_that_are_sent_ahead_are_all_answered(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, _, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                head(port, "GET /healthz") * 500 + head(port, "GET /healthz", "Connection: close")
            )
            assert (await closed(reader)).count(b"HTTP/1.1 200") == 501
            writer.close()

    asyncio.run(scene())


@pytest.mark.parametrize("with_token", [True, False])
def test_a_body_in_chunks_of_one_byte_ends_its_connection(tmp_path: Path, with_token: bool) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, secret, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            token = (f"Authorization: Bearer {secret}",) if with_token else ()
            writer.write(
                head(port, "POST /v1/sessions", "Transfer-Encoding: chunked", *token)
                + b"1\r\nx\r\n" * 100_000
            )
            said = await closed(reader)
            assert said.startswith(b"HTTP/1.1 429" if with_token else b"HTTP/1.1 401")
            assert said.count(b"HTTP/1.1 ") == 1
            await healthy(port)

    asyncio.run(scene())


def test_a_large_body_in_ordinary_chunks_is_taken(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, secret, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            body = json.dumps({"title": "t", "labels": []}).encode().ljust(3 << 20)
            chunks = b"".join(
                b"%x\r\n%b\r\n" % (100, body[at : at + 100].ljust(100))
                for at in range(0, len(body), 100)
            )
            lines = (
                "Transfer-Encoding: chunked",
                f"Authorization: Bearer {secret}",
                "Connection: close",
            )
            writer.write(head(port, "POST /v1/sessions", *lines) + chunks + b"0\r\n\r\n")
            said = await closed(reader)
            # Taken whole: what is wrong with it is what it says, not how it came.
            assert said.split()[1] in (b"201", b"400")
            assert b"limit_exceeded" not in said

    asyncio.run(scene())


def test_one_header_without_an_end_is_refused_while_it_comes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, _, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ".encode() + b"x" * (1 << 20)
            )
            assert (await closed(reader)).startswith(b"HTTP/1.1 431")
            writer.close()

    asyncio.run(scene())


def test_headers_of_all_strangers_together_are_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (server, port, _, _):
            unfinished = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ".encode() + b"x" * 60_000
            pool: Pool = server.config.http_protocol_class.strangers  # type: ignore[union-attr]
            opened = []
            async with asyncio.timeout(WAIT_S):
                for _ in range(400):
                    opened.append(await asyncio.open_connection("127.0.0.1", port))
                    opened[-1][1].write(unfinished)
                said = await closed(opened[-1][0])
            assert said.startswith(b"HTTP/1.1 503")
            assert pool.held <= BUDGET.strangers_bytes
            await healthy(port)
            for _, writer in opened:
                writer.close()
            async with asyncio.timeout(WAIT_S):
                while pool.held:
                    await healthy(port)

    asyncio.run(scene())


def test_the_probe_is_answered_however_often_others_call_from_the_same_address(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with served(tmp_path, ApiLimits(requests_per_second=1)) as (_, port, _, _):
            for _ in range(20):
                await healthy(port)

    asyncio.run(scene())


def frame(opcode: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    return bytes([opcode | (0x80 if last else 0), 0x80 | len(payload)]) + bytes(4) + payload


async def upgraded(
    port: int, secret: str, session_id: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
    )
    writer.write(
        head(port, f"GET /v1/sessions/{session_id}/ws", f"Authorization: Bearer {secret}", *lines)
    )
    async with asyncio.timeout(WAIT_S):
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.mark.parametrize("piece", [b"", b"x"], ids=["empty", "one byte"])
def test_a_message_in_too_many_pieces_is_closed_with_a_reason(tmp_path: Path, piece: bytes) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, secret, session_id):
            reader, writer = await upgraded(port, secret, session_id)
            writer.write(frame(1, b"x", last=False) + frame(0, piece, last=False) * 100_000)
            said = await closed(reader)
            assert struct.pack(">H", 1009) in said
            assert b"pieces" in said
            await healthy(port)

    asyncio.run(scene())


def test_pings_of_a_client_that_reads_no_answers_are_not_read_any_more(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (server, port, secret, session_id):
            _, writer = await upgraded(port, secret, session_id)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(frame(9, b"x" * 125) * 200_000)
            connection: Any = next(
                each
                for each in server.server_state.connections
                if isinstance(each, WebSocketConnection)
            )
            async with asyncio.timeout(WAIT_S):
                while not connection._feed.paused or connection.writable.is_set():
                    await healthy(port)
            for _ in range(5):
                await healthy(port)
            assert connection.transport.get_write_buffer_size() < 4 << 20
            writer.transport.abort()

    asyncio.run(scene())


def test_messages_one_after_the_other_are_all_answered(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as (_, port, secret, session_id):
            reader, writer = await upgraded(port, secret, session_id)
            writer.write(frame(1, b'{"type":"ping"}') * 1_000)
            said = b""
            async with asyncio.timeout(WAIT_S):
                while said.count(b'"pong"') < 1_000:
                    said += await reader.read(1 << 16)
            writer.close()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("door", "name"),
    [
        ("HTTP/1.1", "pipelining"),
        ("HTTP/1.1", "slow_bodies"),
        ("HTTP/1.1", "huge_headers"),
        ("WebSocket", "ws_fragments"),
        ("gRPC", "h2_pings"),
        ("HTTP/3", "h3_empty_frames"),
        ("workers", "worker_messages"),
    ],
)
def test_a_flood_costs_a_bounded_amount_of_memory_and_nobody_their_answer(
    door: str, name: str
) -> None:
    silence, growth = floods.measured(door, name, 3)
    assert growth < floods.GROWTH_MB
    # Generous: other tests have the processors meanwhile.
    assert silence < 3


def test_a_meter_makes_whoever_has_spent_it_wait_and_nobody_else() -> None:
    meter, other = Meter(), Meter()
    assert meter.spend(BUDGET.burst) <= 0.01
    wait = meter.spend(BUDGET.per_second)
    assert 0.5 < wait <= 1.01
    assert other.spend(1) == 0.0


def test_whoever_may_ask_more_often_may_bring_more() -> None:
    assert budget_for(ApiLimits()) is BUDGET
    assert budget_for(ApiLimits(requests_per_second=1_000)).per_second > 1_000 * BUDGET.request
