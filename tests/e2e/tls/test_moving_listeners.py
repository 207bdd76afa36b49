"""TLS, the address and HTTP/3 change while the daemon runs: nothing that works is interrupted, and
nobody stays on a connection that the settings no longer allow.
"""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from palyra.api.listen_sockets import bind
from tests.daemon import DaemonProcess, start
from tests.e2e.tls.test_listeners import Https, command

SCRIPT = {"write": [{"calls": [{"name": "fs.write", "arguments": {"path": "a", "content": "b"}}]}]}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    with start(tmp_path, script=SCRIPT) as running:
        yield running


def change(daemon: DaemonProcess, **wanted: Any) -> Any:
    response = daemon.request("PATCH", "/v1/listeners", wanted)
    assert response.status == 200, response.body
    return response.json


def secured(daemon: DaemonProcess) -> Https:
    return Https(daemon, str(daemon.home / "tls" / "ca.pem"))


def doors(state: Any) -> list[tuple[str, bool]]:
    return [(each["name"], each["tls"]) for each in state["listeners"]]


def test_tls_and_http3_come_and_go_while_a_run_waits(daemon: DaemonProcess) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "write"})["run_id"]
    old = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
    old.request("GET", "/healthz")
    assert old.getresponse().read()
    stream = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
    secret = {"Authorization": f"Bearer {daemon.token}"}
    stream.request("GET", f"/v1/sessions/{session}/events", headers=secret)
    watched = stream.getresponse()
    assert watched.status == 200

    done = change(daemon, tls=True)
    assert (done["live"], done["after_restart"]) == (["server.tls.enabled"], [])
    https = secured(daemon)
    status, told, state = https.ask("GET", "/v1/tls")
    assert (status, doors(state)) == (200, [("http", True)])
    assert https.ask("GET", f"/v1/runs/{run}")[2]["state"] in ("in_progress", "waiting")
    # Programs on this machine find it, and those of the old way are sent off.
    found = json.loads((daemon.home / "daemon.json").read_text())
    assert (found["pid"], found["url"]) == (daemon.pid, f"https://127.0.0.1:{daemon.port}")
    assert command(daemon.home, "status").returncode == 0
    with suppress(OSError, http.client.HTTPException):
        watched.read()  # It ends.
    assert old.sock.recv(1) == b""
    with pytest.raises((OSError, http.client.HTTPException)):
        daemon.request("GET", "/healthz")

    assert https.ask("PATCH", "/v1/listeners", {"quic": True})[0] == 200
    _, told, state = https.ask("GET", "/v1/tls")
    assert doors(state) == [("http", True), ("http3", True)]
    assert told["alt-svc"].startswith('h3=":')
    assert https.ask("PATCH", "/v1/listeners", {"quic": False, "tls": False})[0] == 200
    assert doors(daemon.get("/v1/tls")) == [("http", False)]
    assert "alt-svc" not in daemon.request("GET", "/healthz").headers
    listening = [
        event["details"] for event in admin_changes(daemon) if event["what"] == "listening"
    ]
    assert [each.get("tls", False) for each in listening] == [True, True, False]


def admin_changes(daemon: DaemonProcess) -> list[Any]:
    lines = daemon.request("GET", "/v1/journal/export").body.splitlines()
    entries = [json.loads(line) for line in lines]
    return [each["event"] for each in entries if each["kind"] == "admin.changed"]


def test_grpc_moves_with_the_address_that_it_shares(tmp_path: Path) -> None:
    with start(tmp_path, config="[server]\ngrpc = true\ngrpc_port = 0\n") as daemon:
        assert doors(daemon.get("/v1/tls")) == [("http", False), ("grpc", False)]
        change(daemon, tls=True)
        _, _, state = secured(daemon).ask("GET", "/v1/tls")
        assert doors(state) == [("http", True), ("grpc", True)]
        grpc = json.loads((daemon.home / "daemon.json").read_text())["grpc"]
        assert grpc == state["listeners"][1]["address"]


def test_what_cannot_be_served_is_refused_and_all_stays_as_it_was(daemon: DaemonProcess) -> None:
    before = daemon.get("/v1/tls")
    settings = daemon.home / "config.toml"
    written = settings.read_bytes()
    for wanted in (
        {"host": "0.0.0.0"},
        {"host": "0.0.0.0", "tls": True},
        {"host": "192.0.2.7", "tls": True},
    ):
        assert daemon.request("PATCH", "/v1/listeners", wanted).status >= 400, wanted
    made = command(daemon.home, "--json", "token", "create", "laptop", "--scope", "operator")
    assert made.returncode == 0, made.stderr
    # No address of this machine: known only when it is tried.
    refused = daemon.request("PATCH", "/v1/listeners", {"host": "192.0.2.7", "tls": True})
    assert refused.status >= 400
    assert "192.0.2.7" in refused.body.decode()
    assert daemon.get("/v1/tls")["listeners"] == before["listeners"]
    assert settings.read_bytes() == written
    assert command(daemon.home, "status").returncode == 0


def test_it_is_opened_to_other_machines_and_closed_again(daemon: DaemonProcess) -> None:
    made = command(daemon.home, "--json", "token", "create", "laptop", "--scope", "operator")
    assert made.returncode == 0, made.stderr
    change(daemon, host="0.0.0.0", tls=True)
    https = secured(daemon)
    status, _, state = https.ask("GET", "/v1/tls")
    assert (status, state["exposure"]["host"]) == (200, "0.0.0.0")
    # Another address of this machine reaches it as well.
    elsewhere = http.client.HTTPSConnection(
        "127.0.0.2", daemon.port, timeout=30, context=ssl._create_unverified_context()
    )
    elsewhere.request("GET", "/healthz", headers={"Host": f"localhost:{daemon.port}"})
    assert elsewhere.getresponse().status == 200
    assert https.ask("PATCH", "/v1/listeners", {"host": "127.0.0.1", "tls": False})[0] == 200
    assert daemon.get("/v1/tls")["exposure"].get("host", "127.0.0.1") == "127.0.0.1"
    with pytest.raises(OSError):
        http.client.HTTPConnection("127.0.0.2", daemon.port, timeout=5).request("GET", "/healthz")
    # Nothing holds the port at the other addresses.
    bind("127.0.0.2", daemon.port).close()


def test_a_daemon_that_serves_tls_ends_like_any_other(tmp_path: Path) -> None:
    with start(tmp_path, config="[server.tls]\nenabled = true\n") as daemon:
        assert daemon.stop() == 0
        assert "Traceback" not in daemon.said()
