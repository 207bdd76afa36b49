"""Who gets in: Host and Origin, tokens and their scopes, browser sessions, and what happens to
those who guess.
"""

import asyncio
import http.client
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from palyra.serve.routes import ROUTES
from tests import daemon
from tests.daemon import DaemonProcess, Response

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def raw(served: DaemonProcess, request: bytes, timeout_s: float = 30.0) -> bytes:
    """What the daemon answers to exactly these bytes, until it closes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=timeout_s) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def token_of(served: DaemonProcess, scope: str, **more: Any) -> tuple[str, str]:
    made = served.post("/v1/tokens", {"name": f"test {scope}", "scope": scope, **more})
    return made["token"], made["info"]["token_id"]


def logged_in(served: DaemonProcess) -> dict[str, str]:
    """The headers with which a page of ours comes: the cookie, and the half that only it knows."""
    link = served.post("/v1/login-links")["url"]
    response = served.request("GET", link.removeprefix(served.url), token="")
    start, _, key = response.headers["location"].partition("=")
    assert (response.status, start) == (303, "/#key")
    return {"Cookie": response.headers["set-cookie"].partition(";")[0], "X-Palyra-Key": key}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil",
        "",
    ],
)
def test_a_foreign_host_header_is_refused_before_anything_else(
    served: DaemonProcess, host: str
) -> None:
    response = served.request("GET", "/healthz", headers={"Host": host.format(port=served.port)})
    assert (response.status, response.code) == (421, "forbidden")


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"]
)
def test_its_own_names_are_accepted(served: DaemonProcess, host: str) -> None:
    assert (
        served.request("GET", "/healthz", headers={"Host": host.format(port=served.port)}).status
        == 200
    )


def test_a_request_without_a_host_header_or_with_two_is_refused(served: DaemonProcess) -> None:
    without = raw(served, b"GET /healthz HTTP/1.0\r\n\r\n")
    twice = raw(
        served, b"GET /healthz HTTP/1.1\r\nHost: evil\r\nHost: 127.0.0.1:%d\r\n\r\n" % served.port
    )
    assert without.startswith(b"HTTP/1.1 421 ")
    assert twice.startswith((b"HTTP/1.1 421 ", b"HTTP/1.1 400 "))
    assert b'"error"' in without
    assert b'"error"' in twice


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"]
)
def test_pages_elsewhere_may_not_write_even_with_a_token(
    served: DaemonProcess, origin: str
) -> None:
    response = served.request("POST", "/v1/sessions", {}, headers={"Origin": origin})
    assert (response.status, response.code) == (403, "forbidden")
    assert not any(name.startswith("access-control") for name in response.headers)


def test_its_own_pages_may_write(served: DaemonProcess) -> None:
    assert served.request("POST", "/v1/sessions", {}, headers={"Origin": served.url}).status == 201


def test_no_answer_carries_cors_headers_and_every_answer_security_headers(
    served: DaemonProcess,
) -> None:
    answers = [
        served.request("GET", "/v1/status", headers={"Origin": "https://evil.example"}),
        served.request("OPTIONS", "/v1/status", headers={"Origin": "https://evil.example"}),
        served.request("GET", "/nothing"),
        served.request("GET", "/v1/status", token="wrong"),
        served.request("POST", "/v1/sessions", b"{"),
    ]
    assert [answer.status for answer in answers] == [200, 405, 404, 401, 400]
    for answer in answers:
        assert not any(name.startswith("access-control") for name in answer.headers)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


@pytest.mark.parametrize("token", ["", "plr_wrong"])
def test_without_a_good_token_everything_but_the_open_door_is_shut(
    served: DaemonProcess, token: str
) -> None:
    with_token = [route for route in ROUTES if route.scope is not None]
    open_ones = {route.path for route in ROUTES if route.scope is None}
    signed = {
        "/v1/hooks/{schedule_id}",
        "/v1/channels/{channel}/hook",
        "/v1/witness/add-checkpoint",
    }
    assert open_ones - signed == {
        "/",
        "/assets/{asset}",
        "/manifest.webmanifest",
        "/worker.js",
        "/verify",
        "/diagram.html",
        "/healthz",
        "/readyz",
        "/login",
    }
    for route in with_token:
        path = re.sub(r"\{\w+\}", NOBODY, route.path)
        response = served.request(route.method, path, {} if route.body else None, token=token)
        assert (response.status, response.code) == (401, "unauthenticated"), route.path


def test_a_refusal_says_how_to_authenticate(served: DaemonProcess) -> None:
    response = served.request("GET", "/v1/status", token="")
    assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
    assert (
        served.request(
            "GET", "/v1/status", token="", headers={"Authorization": "Basic eDp5"}
        ).status
        == 401
    )


def test_a_viewer_reads_and_never_writes(served: DaemonProcess, session_id: str) -> None:
    viewer, _ = token_of(served, "viewer")
    for route in ROUTES:
        path = re.sub(r"\{session_id\}", session_id, route.path)
        path = re.sub(r"\{\w+\}", NOBODY, path)
        if route.scope in ("operator", "owner"):
            assert (
                served.request(route.method, path, {} if route.body else None, token=viewer).status
                == 403
            ), route.path
    assert served.request("GET", f"/v1/sessions/{session_id}", token=viewer).status == 200


def test_an_operator_works_but_does_not_administer(served: DaemonProcess) -> None:
    operator, _ = token_of(served, "operator")
    assert served.request("POST", "/v1/sessions", {}, token=operator).status == 201
    for method, path in (
        ("GET", "/v1/tokens"),
        ("POST", "/v1/login-links"),
        ("POST", "/v1/policy/reload"),
    ):
        assert served.request(method, path, {}, token=operator).status == 403
    assert served.request("GET", "/v1/journal/export", token=operator).status == 403


@pytest.mark.parametrize("scope", ["connector", "worker"])
def test_connectors_and_workers_have_nothing_here(served: DaemonProcess, scope: str) -> None:
    token, _ = token_of(served, scope)
    assert served.request("GET", "/v1/status", token=token).status == 403


def test_a_revoked_token_is_refused_at_once_and_its_streams_end(
    served: DaemonProcess, session_id: str
) -> None:
    token, token_id = token_of(served, "viewer")
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request(
        "GET", f"/v1/sessions/{session_id}/events", headers={"Authorization": f"Bearer {token}"}
    )
    stream = connection.getresponse()
    assert stream.status == 200
    assert b"id: 1" in stream.readline()
    revoked = served.request("DELETE", f"/v1/tokens/{token_id}")
    assert (revoked.status, revoked.json["revoked_ms"] > 0) == (200, True)
    assert served.request("GET", "/v1/status", token=token).status == 401
    assert b"session.created" in stream.read()
    connection.close()
    assert served.request("DELETE", f"/v1/tokens/{token_id}").json == revoked.json
    assert served.request("DELETE", f"/v1/tokens/{NOBODY}").status == 404


def test_a_token_expires(served: DaemonProcess) -> None:
    # Long enough that a busy machine has made and used it by then.
    expires_ms = int(time.time() * 1000) + 5_000
    token, _ = token_of(served, "viewer", expires_ms=expires_ms)
    assert served.request("GET", "/v1/status", token=token).status == 200
    # Streams that are open end when the token does; waiting for that is waiting for the expiry.
    list(served_events(served, "/v1/events", token))
    assert int(time.time() * 1000) >= expires_ms
    response = served.request("GET", "/v1/status", token=token)
    assert (response.status, response.code) == (401, "unauthenticated")
    assert (
        served.request(
            "POST", "/v1/tokens", {"name": "late", "scope": "viewer", "expires_ms": 1}
        ).code
        == "invalid_input"
    )


def served_events(served: DaemonProcess, path: str, token: str) -> list[Any]:
    return list(served.events(path, headers={"Authorization": f"Bearer {token}"}, timeout_s=30))


def test_tokens_are_listed_without_their_secret_and_stored_only_as_a_digest(
    served: DaemonProcess,
) -> None:
    token, token_id = token_of(served, "viewer")
    listed = served.request("GET", "/v1/tokens")
    assert token_id in [each["token_id"] for each in listed.json["tokens"]]
    assert token.encode() not in listed.body
    stored = b"".join(path.read_bytes() for path in served.home.glob("journal.db*"))
    assert token.encode() not in stored
    assert token.removeprefix("plr_").encode() not in stored


def test_tokens_survive_a_restart_and_so_does_their_revocation(tmp_path: Path) -> None:
    with daemon.start(tmp_path) as served:
        kept, _ = token_of(served, "viewer")
        gone, gone_id = token_of(served, "viewer")
        served.request("DELETE", f"/v1/tokens/{gone_id}")
        owner = served.token
        served.kill()
        served.restart()
        assert served.token == owner
        assert served.request("GET", "/v1/status", token=kept).status == 200
        assert served.request("GET", "/v1/status", token=gone).status == 401


def test_a_lost_owner_token_is_made_anew_at_the_next_start(tmp_path: Path) -> None:
    with daemon.start(tmp_path) as served:
        lost = served.token
        served.stop()
        (served.home / "owner.token").unlink()
        served.restart()
        assert served.token != lost
        assert served.get("/v1/status")["version"]
        assert (served.home / "owner.token").stat().st_mode & 0o777 == 0o600


def test_whoever_guesses_is_told_to_wait_and_a_good_token_still_works(tmp_path: Path) -> None:
    with daemon.start(tmp_path) as served:
        statuses = [
            served.request("GET", "/v1/status", token=f"plr_guess{number}").status
            for number in range(14)
        ]
        assert statuses == [401] * 10 + [429] * 4
        # A program that goes on with a token that was revoked is not guessing, and is told what is
        # wrong.
        assert served.request("GET", "/v1/status", token="plr_guess0").status == 401
        blocked = served.request("GET", "/v1/status", token="plr_guess")
        assert (blocked.code, blocked.json["error"]["retryable"]) == ("limit_exceeded", True)
        assert 0 < int(blocked.headers["retry-after"]) <= 61
        assert served.request("GET", "/login?code=guess", token="").status == 429
        assert served.get("/v1/status")["version"]
        logged_in(served)


def test_too_many_requests_a_second_are_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    # One, so that also a busy machine asks faster than that.
    with daemon.start(tmp_path, config="[limits]\nrequests_per_second = 1\n") as served:
        viewer, _ = token_of(served, "viewer")
        responses = [served.request("GET", "/v1/models", token=viewer) for _ in range(20)]
        refused = [response for response in responses if response.status == 429]
        assert [response.status for response in responses[:2]] == [200] * 2
        assert refused
        assert refused[0].headers["retry-after"] == "1"
        # The limit is the caller's own.
        assert served.request("GET", "/v1/models").status == 200


def test_there_is_a_limit_to_open_streams(tmp_path: Path) -> None:
    with daemon.start(tmp_path, config="[limits]\nstreams = 2\n") as served:
        opened = []
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
            connection.request(
                "GET", "/v1/events", headers={"Authorization": f"Bearer {served.token}"}
            )
            assert connection.getresponse().status == 200
            opened.append(connection)
        third = served.request("GET", "/v1/events")
        assert (third.status, third.code) == (429, "limit_exceeded")
        opened.pop().close()
        deadline = time.monotonic() + 30
        while metric(served, "palyra_streams") > 1:
            assert time.monotonic() < deadline
        last = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        last.request("GET", "/v1/events", headers={"Authorization": f"Bearer {served.token}"})
        assert last.getresponse().status == 200
        for connection in (*opened, last):
            connection.close()


def metric(served: DaemonProcess, name: str) -> float:
    found = re.search(
        rf"^{name} (\S+)$", served.request("GET", "/metrics").body.decode(), re.MULTILINE
    )
    assert found is not None
    return float(found[1])


def browser(
    served: DaemonProcess, method: str, path: str, known: dict[str, str], **headers: str
) -> Response:
    body: dict[str, Any] | None = {} if method == "POST" else None
    return served.request(method, path, body, token="", headers={**known, **headers})


def test_a_login_link_works_once_and_gives_a_strict_cookie(served: DaemonProcess) -> None:
    path = served.post("/v1/login-links")["url"].removeprefix(served.url)
    first = served.request("GET", path, token="")
    assert first.status == 303
    assert "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000" in first.headers["set-cookie"]
    assert served.request("GET", path, token="").status == 401
    assert served.request("GET", "/login", token="").status == 400


def test_a_browser_session_needs_both_halves_and_writes_from_its_own_origin(
    served: DaemonProcess,
) -> None:
    known = logged_in(served)
    own = {"Origin": served.url}
    assert browser(served, "GET", "/v1/status", known).status == 200
    assert browser(served, "POST", "/v1/sessions", known, **own).status == 201
    assert browser(served, "POST", "/v1/sessions", known).status == 403
    assert (
        browser(served, "POST", "/v1/sessions", known, Origin="https://evil.example").status == 403
    )


def test_a_cookie_that_another_server_on_this_machine_was_sent_opens_nothing(
    served: DaemonProcess,
) -> None:
    """Browsers send cookies to every port of a host: whoever serves pages here gets it, and can say
    any Origin.
    """
    known = logged_in(served)
    stolen = {"Cookie": known["Cookie"], "Origin": served.url, "X-Palyra-CSRF": "1"}
    for headers in (
        stolen,
        {**stolen, "X-Palyra-Key": ""},
        {**stolen, "X-Palyra-Key": known["Cookie"].partition("=")[2]},
    ):
        assert served.request("GET", "/v1/status", token="", headers=headers).status == 401
        assert (
            served.request(
                "POST", "/v1/tokens", {"name": "x", "scope": "owner"}, token="", headers=headers
            ).status
            == 401
        )
    key = known["X-Palyra-Key"]
    # Streams and downloads name the other half in their address; what has effects may not.
    assert (
        served.request("GET", f"/v1/sessions?key={key}&limit=1", token="", headers=stolen).status
        == 200
    )
    assert (
        served.request("POST", f"/v1/sessions?key={key}", {}, token="", headers=stolen).status
        == 401
    )


def test_logging_out_ends_the_browser_session(served: DaemonProcess) -> None:
    known = logged_in(served)
    left = browser(served, "POST", "/v1/logout", known, Origin=served.url)
    assert (left.status, "Max-Age=0" in left.headers["set-cookie"]) == (204, True)
    assert browser(served, "GET", "/v1/status", known).status == 401
    assert served.request("POST", "/v1/logout", {}).status == 204
    assert served.request("GET", "/v1/status").status == 200


def test_an_origin_that_the_operator_named_may_call_and_read(tmp_path: Path) -> None:
    with daemon.start(
        tmp_path, config='[server]\nallowed_origins = ["https://mine.example"]\n'
    ) as served:
        origin = {"Origin": "https://mine.example"}
        preflight = served.request("OPTIONS", "/v1/sessions", headers=origin, token="")
        made = served.request("POST", "/v1/sessions", {}, headers=origin)
        assert (preflight.status, made.status) == (204, 201)
        for response in (preflight, made):
            assert response.headers["access-control-allow-origin"] == "https://mine.example"
            assert "access-control-allow-credentials" not in response.headers


def test_a_host_that_the_operator_named_is_accepted(tmp_path: Path) -> None:
    with daemon.start(tmp_path, config='[server]\nallowed_hosts = ["palyra.example"]\n') as served:
        host = {"Host": "palyra.example"}
        assert served.request("GET", "/healthz", headers=host).status == 200
        assert (
            served.request(
                "POST", "/v1/sessions", {}, headers={**host, "Origin": "https://palyra.example"}
            ).status
            == 201
        )


def upgrade(served: DaemonProcess, session_id: str, **headers: str) -> int:
    """The status of a WebSocket handshake."""
    import aiohttp

    async def connect() -> int:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as client:
            try:
                async with client.ws_connect(
                    f"{served.url}/v1/sessions/{session_id}/ws", headers=headers
                ):
                    return 101
            except aiohttp.WSServerHandshakeError as error:
                return error.status

    return asyncio.run(connect())


def test_a_websocket_from_another_site_is_refused(served: DaemonProcess, session_id: str) -> None:
    bearer, known = f"Bearer {served.token}", logged_in(served)
    evil = "https://evil.example"
    assert upgrade(served, session_id, Authorization=bearer) == 101
    assert upgrade(served, session_id, Authorization=bearer, Origin=served.url) == 101
    assert upgrade(served, session_id, Authorization=bearer, Origin=evil) == 403
    assert upgrade(served, session_id, **known, Origin=served.url) == 101
    assert upgrade(served, session_id, **known, Origin=evil) == 403
    assert upgrade(served, session_id, **known) == 403
    assert upgrade(served, session_id, Cookie=known["Cookie"], Origin=served.url) == 401
    assert upgrade(served, session_id) == 401
    assert upgrade(served, session_id, Authorization=bearer, Host="evil.example") == 421
    assert upgrade(served, NOBODY, Authorization=bearer) == 404


def test_a_websocket_address_without_an_upgrade_says_so(
    served: DaemonProcess, session_id: str
) -> None:
    response = served.request("GET", f"/v1/sessions/{session_id}/ws")
    assert (response.status, response.code) == (426, "invalid_input")


def test_a_look_ahead_does_not_use_the_login_link_up(served: DaemonProcess) -> None:
    link = served.post("/v1/login-links")["url"].removeprefix(served.url)
    for _ in range(2):
        # As mail programs and chats do before a person clicks.
        assert served.request("HEAD", link, token="").status == 405
    assert served.request("GET", link, token="").status == 303
    assert served.request("GET", link, token="").status == 401
