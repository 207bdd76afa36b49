"""Requests that two programs could read in two ways are refused, at every door, with the usual
error.
"""

import json
import socket
from typing import Any

import grpc
import pytest

from palyra.v1 import sessions_pb2, sessions_pb2_grpc
from tests.daemon import DaemonProcess, start
from tests.e2e.api.test_http_hostile import error_in


def raw(port: int, request: bytes) -> bytes:
    """What the daemon answers to exactly these bytes, until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def head(served: DaemonProcess, line: str, *headers: str, host: str = "") -> bytes:
    lines = (
        f"{line} HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{served.port}'}",
        "Connection: close",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def test_two_tokens_are_none(served: DaemonProcess) -> None:
    good, other = f"Authorization: Bearer {served.token}", "Authorization: Bearer plr_other"
    assert b" 200 " in raw(served.port, head(served, "GET /v1/status", good))[:20]
    for pair in ((good, other), (other, good), (good, good.lower())):
        assert error_in(raw(served.port, head(served, "GET /v1/status", *pair))) == (
            400,
            "invalid_input",
        )


@pytest.mark.parametrize(
    "target",
    ["http://evil.example/v1/status", "http://127.0.0.1:1/v1/status", "http://a@{own}/v1/status"],
)
def test_a_target_with_another_host_is_refused(served: DaemonProcess, target: str) -> None:
    own = f"127.0.0.1:{served.port}"
    token = f"Authorization: Bearer {served.token}"
    assert error_in(raw(served.port, head(served, f"GET {target.format(own=own)}", token))) == (
        400,
        "invalid_input",
    )
    assert b" 200 " in raw(served.port, head(served, f"GET http://{own}/v1/status", token))[:20]


@pytest.mark.parametrize(
    "body", [b'{"title": "a", "title": "b"}', b'{"title": "a", "\\u0074itle": "b"}']
)
def test_a_key_that_is_given_twice_is_refused(served: DaemonProcess, body: bytes) -> None:
    response = served.request("POST", "/v1/sessions", body)
    assert (response.status, response.code) == (400, "invalid_input")
    assert "title" in response.json["error"]["message"]


def test_a_large_body_with_a_key_twice_is_refused_too(served: DaemonProcess) -> None:
    session_id = served.post("/v1/sessions")["session_id"]
    body = b'{"text": "%b", "text": "b"}' % (b"x" * 100_000)
    assert served.request("POST", f"/v1/sessions/{session_id}/messages", body).status == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/sessions", {"label": "a\0b"}),
        ("/v1/sessions", {"title": "a\x1b[2Jb"}),
        ("/v1/sessions", {"key": "a\nb"}),
        ("/v1/tokens", {"name": "a\0b", "scope": "viewer"}),
        (
            "/v1/schedules",
            {"name": "a\0b", "text": "x", "trigger": {"type": "every", "minutes": 5}},
        ),
    ],
)
def test_a_name_with_a_control_character_is_refused(
    served: DaemonProcess, path: str, body: Any
) -> None:
    response = served.request("POST", path, json.dumps(body).encode())
    assert (response.status, response.code) == (400, "invalid_input")


def test_a_file_name_with_a_control_character_is_refused(served: DaemonProcess) -> None:
    session_id = served.post("/v1/sessions")["session_id"]
    headers = {"Content-Type": "application/octet-stream"}
    response = served.request(
        "POST", f"/v1/sessions/{session_id}/files?name=a%00b", b"x", headers=headers
    )
    assert (response.status, response.code) == (400, "invalid_input")


def test_two_tokens_are_none_over_grpc_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    with start(
        tmp_path_factory.mktemp("grpc"), config="[server]\ngrpc = true\ngrpc_port = 0\n"
    ) as served:
        address = json.loads((served.home / "daemon.json").read_text())["grpc"]
        with grpc.insecure_channel(address) as channel:
            stub = sessions_pb2_grpc.SessionsStub(channel)
            good, other = (
                ("authorization", f"Bearer {served.token}"),
                ("authorization", "Bearer plr_other"),
            )
            request = sessions_pb2.SessionsListRequest()
            stub.List(request, metadata=(good,), timeout=30)
            for pair in ((good, other), (other, good), (good, good)):
                with pytest.raises(grpc.RpcError) as caught:
                    stub.List(request, metadata=pair, timeout=30)
                assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
