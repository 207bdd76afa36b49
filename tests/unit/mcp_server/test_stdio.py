"""The MCP server over standard streams, in front of a daemon that goes away at the worst moments:
whoever asked gets an answer.
"""

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from palyra.client.discovery import DaemonAddress
from palyra.client.http import Api
from palyra.features.mcp_server import stdio
from palyra.features.mcp_server.stdio import Bridge

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TAKEN = b"id: here\ndata:\n\n"
ANSWER = b'data: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n\n'
ASKED = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'
HELLO = b'{"jsonrpc": "2.0", "id": 0, "method": "initialize"}\n'
GREETING = b'{"jsonrpc":"2.0","id":0,"result":{}}'
GREETED = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Length: %d\r\n\r\n%b" % (
    len(GREETING),
    GREETING,
)
FORGOTTEN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextmanager
def daemon(*answers: bytes | Callable[[], bytes]) -> Iterator[tuple[Api, list[bytes]]]:
    """The way to one that gives these bytes to one connection after the other and closes each; with
    what it was sent.
    """
    heard: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.settimeout(20)
                heard.append(connection.recv(65_536))
                connection.sendall(answer if isinstance(answer, bytes) else answer())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield Api(lambda: DaemonAddress(url, "token", "start it")), heard
        serving.join(20)


def told(api: Api, asked: bytes = ASKED) -> Any:
    """The last line that whoever asks is given: one for each question."""
    out = io.BytesIO()
    Bridge(api, out).run(io.BytesIO(asked))
    lines = out.getvalue().splitlines()
    assert len(lines) == asked.count(b"\n")
    return json.loads(lines[-1])


def test_a_stream_that_is_cut_off_in_the_middle_of_a_piece_is_taken_up_where_it_was() -> None:
    cut = STREAM + chunk(TAKEN) + b"%x\r\n%b" % (len(ANSWER), ANSWER[:20])
    with daemon(cut, STREAM + chunk(ANSWER) + chunk(b"")) as (api, heard):
        assert told(api)["result"] == {"tools": []}
    assert b"Last-Event-ID: here" in heard[1]


@pytest.mark.parametrize(
    "broken",
    [
        STREAM,
        STREAM + chunk(b""),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["a stream", "a stream that ends", "an answer"],
)
def test_what_breaks_off_before_it_can_be_taken_up_is_an_error_that_says_so(broken: bytes) -> None:
    with daemon(broken) as (api, _):
        answer = told(api)
    assert (answer["id"], answer["error"]["code"]) == (1, stdio.SERVER_ERROR)
    assert "went away" in answer["error"]["message"]


def test_a_daemon_that_goes_away_late_is_waited_for_as_long_as_one_that_does_so_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(stdio, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def an_hour_later() -> bytes:
        clock.now = 3_600.0
        return STREAM + chunk(TAKEN)

    # The second connection is one that nobody answers.
    with daemon(an_hour_later, b"", STREAM + chunk(ANSWER) + chunk(b"")) as (api, _):
        assert told(api)["result"] == {"tools": []}


@pytest.mark.parametrize("away", [b"", GREETED[:-5]], ids=["nobody", "half a greeting"])
def test_a_daemon_that_goes_away_again_while_it_is_greeted_anew_is_waited_for(away: bytes) -> None:
    broken, whole = STREAM + chunk(TAKEN), STREAM + chunk(ANSWER) + chunk(b"")
    with daemon(GREETED, broken, FORGOTTEN, away, GREETED, whole) as (api, heard):
        assert told(api, HELLO + ASKED)["result"] == {"tools": []}
    assert b"Last-Event-ID: here" in heard[-1]
