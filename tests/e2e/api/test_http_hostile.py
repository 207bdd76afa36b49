"""What comes in wrong: too large, too slow, malformed, of the wrong type. Each is refused with a
reason, and nothing breaks.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.api import listen_sockets
from palyra.api.auth import Access
from palyra.api.http_server import HttpServer
from palyra.api.limits import ApiLimits
from palyra.models.scripted import Turn
from palyra.serve.process import http_app
from tests import inprocess
from tests.daemon import DaemonProcess

MEGABYTE = 1 << 20


def raw(port: int, *pieces: bytes, timeout_s: float = 30.0) -> bytes:
    """What the daemon answers to exactly these bytes, until it closes or has answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def error_in(answer: bytes) -> tuple[int, str]:
    """The status and the error's code of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


def head_of(served: DaemonProcess, line: str = "POST /v1/sessions", **headers: str) -> bytes:
    given = {
        "Host": f"127.0.0.1:{served.port}",
        "Authorization": f"Bearer {served.token}",
        **headers,
    }
    lines = [
        f"{line} HTTP/1.1",
        *(f"{name.replace('_', '-')}: {value}" for name, value in given.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", ""),
        (b"{", ""),
        (b"nonsense", ""),
        (b"null", "$"),
        (b"[]", "$"),
        (b'"text"', "$"),
        (b'{"text": 1}', "$.text"),
        (b'{"text": null}', "$.text"),
        (b'{"text": ["a"]}', "$.text"),
        (b'{"text": "a", "mode": "shout"}', "$.mode"),
        (b'{"text": "a", "unknown": 1}', "$"),
        (
            b'{"text": "a", "run_id": 12345678901234567890123456789012345678901234567890}',
            "$.run_id",
        ),
        (b'{"text": 1e999}', "$.text"),
        (b'{"text": NaN}', ""),
        (b'{"text": "\xff\xfe"}', ""),
        (b'{"text": "\xed\xa0\x80"}', ""),
        (b'{"text": "\\ud800"}', ""),
        (b'\xef\xbb\xbf{"text": "a"}', ""),
        (b'{"text": "a"} trailing', ""),
        (b'{"text": ' + b"[" * 100_000, ""),
        (b'{"text": ' + b'{"a":' * 70 + b"1" + b"}" * 71, ""),
        (b'{"text": ' + b"9" * 100_000 + b"}", ""),
    ],
)
def test_a_body_that_does_not_fit_is_invalid_and_says_where(
    served: DaemonProcess, session_id: str, body: bytes, path: str
) -> None:
    response = served.request("POST", f"/v1/sessions/{session_id}/messages", body)
    assert (response.status, response.code) == (400, "invalid_input")
    if path:
        assert response.json["error"]["details"]["path"] == path
    assert served.get(f"/v1/sessions/{session_id}/runs")["runs"] == []


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\0",
        "\U0001f600 \u202e \ufffe",
        "'; DROP TABLE entries; --",
        "%s%n{}",
        "a" * 100_000,
    ],
)
def test_strange_text_is_taken_as_it_is(served: DaemonProcess, text: str) -> None:
    _, entries = served.run(text)
    received = next(
        entry["event"]["text"] for entry in entries if entry["kind"] == "input.received"
    )
    assert (received, entries[-1]["kind"]) == (text, "run.completed")


def test_a_body_of_another_media_type_is_refused(served: DaemonProcess) -> None:
    form = served.request("POST", "/v1/sessions", b"{}", headers={"Content-Type": "text/plain"})
    assert (form.status, form.code) == (415, "invalid_input")
    assert (
        served.request(
            "POST",
            "/v1/sessions",
            b"{}",
            headers={"Content-Type": "Application/JSON; charset=utf-8"},
        ).status
        == 201
    )


def test_a_body_that_is_too_large_is_refused_by_its_length_and_by_its_size(
    served: DaemonProcess,
) -> None:
    big = b'{"title": "' + b"x" * (5 * MEGABYTE) + b'"}'
    by_length = served.request("POST", "/v1/sessions", big)
    assert (by_length.status, by_length.code, by_length.headers["connection"]) == (
        413,
        "limit_exceeded",
        "close",
    )
    chunk = b"%x\r\n%b\r\n" % (MEGABYTE, b"x" * MEGABYTE)
    chunked = raw(
        served.port, head_of(served, Transfer_Encoding="chunked"), *[chunk] * 5, b"0\r\n\r\n"
    )
    assert error_in(chunked) == (413, "limit_exceeded")


@pytest.mark.parametrize(
    "headers",
    [{"Content_Length": str(1 << 40)}, {"Content_Length": str(5 << 20), "Expect": "100-continue"}],
)
def test_a_client_that_promises_too_much_is_told_so_before_it_sends(
    served: DaemonProcess, headers: dict[str, str]
) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(head_of(served, **headers))
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    assert error_in(answer) == (413, "limit_exceeded")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=12,
    )
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_json_at_all_makes_it_fail(served: DaemonProcess, value: Any) -> None:
    body = json.dumps(value).encode()
    assert served.request("POST", "/v1/sessions", body).status in (200, 201, 400, 403)
    explained = served.request(
        "POST", "/v1/policy/explain", json.dumps({"tool": "fs.write", "arguments": value}).encode()
    )
    assert explained.status in (200, 400)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions?limit=0",
        "/v1/sessions?limit=501",
        "/v1/sessions?limit=99999999999999999999999",
        "/v1/sessions?limit=ten",
        "/v1/sessions?limit=1&limit=2",
        "/v1/sessions?unknown=1",
        "/v1/sessions?archived=maybe",
        "/v1/sessions?before=not-a-ulid",
        "/v1/sessions?before=%ff%fe",
        "/v1/sessions/search",
        "/v1/sessions/not-a-ulid",
        "/v1/sessions/01arz3ndektsv4rrffq69g5fav",
        "/v1/sessions/01ARZ3NDEKTSV4RRFFQ69G5FAV%0A",
        "/v1/runs/%00",
        "/v1/journal/entries/-1",
        "/v1/journal/entries/1e3",
        "/v1/journal/entries/99999999999999999999",
        "/v1/usage?since_ms=-1",
        "/v1/usage?since_ms=99999999999999999999",
        "/v1/events?after=1.5",
        "/v1/sessions?" + "&".join(f"p{number}=1" for number in range(100)),
    ],
)
def test_an_address_that_does_not_fit_is_invalid(served: DaemonProcess, path: str) -> None:
    response = served.request("GET", path)
    assert (response.status, response.code) == (400, "invalid_input")


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/sessions/",
        "//v1/sessions",
        "/../etc/passwd",
        "/v1/%2e%2e/status",
        "/openapi",
        "/v1/runs/..%2f..%2fetc",
    ],
)
def test_an_address_that_leads_nowhere_is_not_found(served: DaemonProcess, path: str) -> None:
    assert served.request("GET", path).status in (400, 404)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_an_error_in_the_usual_shape(
    served: DaemonProcess, request_: bytes
) -> None:
    status, code = error_in(raw(served.port, request_))
    assert status in (400, 421)
    assert code in ("invalid_input", "forbidden")


def test_too_many_headers_are_refused(served: DaemonProcess) -> None:
    some = head_of(served, "GET /healthz", **{f"X_{number}": "1" for number in range(120)})
    many = head_of(served, "GET /healthz", **{f"X_{number}": "1" for number in range(2_000)})
    large = head_of(served, "GET /healthz", X_Large="x" * (200 << 10))
    long = head_of(served, "GET /" + "a" * (200 << 10))
    for request in (some, many, large, long):
        assert error_in(raw(served.port, request)) == (431, "limit_exceeded")


def test_a_client_that_hangs_up_in_the_middle_of_a_body_is_forgotten(served: DaemonProcess) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            connection.sendall(head_of(served, Content_Length="1000") + b'{"title"')
    assert served.get("/healthz")["status"] == "ok"
    assert "Traceback" not in served.said()


def test_many_connections_that_say_nothing_do_not_keep_others_out(served: DaemonProcess) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port), timeout=30) for _ in range(200)]
    try:
        assert served.get("/healthz")["status"] == "ok"
    finally:
        for connection in silent:
            connection.close()


@asynccontextmanager
async def impatient(folder: Path, limits: ApiLimits) -> AsyncIterator[tuple[int, str]]:
    """A server in this process, with its port and a token."""
    async with inprocess.daemon(folder, [Turn(text="hi")]) as daemon:
        access = Access(daemon.db, daemon.clock, daemon.redactor.redact)
        secret, _ = await access.mint("user:owner", "test", "owner", principal="user:owner")
        with listen_sockets.bind("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            server = HttpServer(
                await http_app(daemon, access, limits, f"http://127.0.0.1:{port}", {}), limits
            )
            ready = asyncio.Event()
            serving = asyncio.create_task(server.run_on(listener, ready.set))
            await asyncio.wait_for(ready.wait(), 30)
            try:
                yield port, secret
            finally:
                server.stop()
                await asyncio.wait_for(serving, 30)


async def answer_to(port: int, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return answer


def test_a_body_that_comes_too_slowly_is_refused(tmp_path: Path) -> None:
    async def scenario() -> tuple[bytes, float]:
        async with impatient(tmp_path, ApiLimits(body_s=0.2)) as (port, token):
            begun = time.monotonic()
            head = f"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            answer = await answer_to(
                port, head.encode() + b"Content-Length: 100\r\n\r\n", b'{"title":'
            )
            return answer, time.monotonic() - begun

    answer, took_s = asyncio.run(scenario())
    assert error_in(answer) == (408, "limit_exceeded")
    assert took_s < 15


def test_headers_that_come_too_slowly_are_refused_also_on_a_connection_that_was_used(
    tmp_path: Path,
) -> None:
    async def scenario() -> list[bytes]:
        async with impatient(tmp_path, ApiLimits(header_s=0.5)) as (port, _):
            whole = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
            return [
                await answer_to(port),
                await answer_to(port, b"GET / HT"),
                await answer_to(port, whole + b"GET / HT"),
            ]

    silent, begun, second = asyncio.run(scenario())
    assert error_in(silent) == error_in(begun) == (408, "limit_exceeded")
    assert second.startswith(b"HTTP/1.1 200 OK")
    assert b"HTTP/1.1 408 " in second


def test_a_silent_stream_has_a_heartbeat(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with impatient(tmp_path, ApiLimits(heartbeat_s=0.05)) as (port, token):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
            writer.write(head.encode())
            got = await asyncio.wait_for(reader.readuntil(b"3\r\n:\n\n\r\n3\r\n:\n\n\r\n"), 30)
            writer.close()
            return got

    assert b"text/event-stream" in asyncio.run(scenario())


def test_more_exchanges_than_allowed_are_unavailable(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with impatient(tmp_path, ApiLimits(exchanges=1)) as (port, token):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            writer.write(f"GET /v1/events HTTP/1.1\r\n{head}".encode())
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            answer = await answer_to(port, f"GET /v1/status HTTP/1.1\r\n{head}".encode())
            writer.close()
            return answer

    assert error_in(asyncio.run(scenario())) == (503, "unavailable")
