"""The daemon as a process: where it listens, what it leaves on disk, what it says, how it stops,
and what it refuses.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import daemon
from tests.daemon import DaemonProcess

KEY = "sk-proj-" + "Zq3vW8xT2mK9pL4nR7sB1cY6dF0gH5jA" * 2


def start_fails(home: Path, *more: str) -> str:
    """What a daemon says that cannot start."""
    done = subprocess.run(
        [sys.executable, "-m", "palyra.serve", "--home", str(home), *more],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_its_files_are_private_and_say_where_it_is(tmp_path: Path) -> None:
    with daemon.start(tmp_path) as served:
        running = json.loads((served.home / "daemon.json").read_text())
        assert running.keys() == {"pid", "url", "started_ms", "version"}
        assert (running["pid"], running["url"]) == (served.pid, served.url)
        assert (served.home / "owner.token").read_text().startswith("plr_")
        assert served.home.stat().st_mode & 0o777 == 0o700
        for name in ("daemon.json", "daemon.lock", "owner.token", "logs/daemon.log", "journal.db"):
            assert (served.home / name).stat().st_mode & 0o777 == 0o600, name
        for name in ("logs", "keys", "policies"):
            assert (served.home / name).stat().st_mode & 0o777 == 0o700, name
    assert not (served.home / "daemon.json").exists()


def test_it_says_where_it_is_which_model_it_uses_and_how_to_log_in(tmp_path: Path) -> None:
    with daemon.start(tmp_path, env={"ANTHROPIC_API_KEY": KEY}) as served:
        said = served.said(until="Ctrl-C")
        assert served.url in said
        assert str(served.home) in said
        assert "found ANTHROPIC_API_KEY: using anthropic/" in said
        assert KEY not in said
        login = next(word for word in said.split() if word.startswith(f"{served.url}/login?code="))
        assert served.request("GET", login.removeprefix(served.url), token="").status == 303
        assert served.get("/v1/status")["notes"] == [
            "found ANTHROPIC_API_KEY: using " + served.get("/v1/models")["models"][0]["name"]
        ]


def test_the_log_is_json_lines_without_secrets(tmp_path: Path) -> None:
    script = {"*": [{"fail": {"failure": "bad_request", "message": f"the key {KEY} is not known"}}]}
    with daemon.start(tmp_path, config='[log]\nlevel = "debug"\n', script=script) as served:
        served.run(f"use {KEY} please")
        served.stop()
        lines = (served.home / "logs" / "daemon.log").read_text().splitlines()
        assert len(lines) >= 2
        assert all(
            {"time_ms", "level", "logger", "message"} <= json.loads(line).keys() for line in lines
        )
        assert f"started at {served.url}" in [json.loads(line)["message"] for line in lines]
        everything = b"".join(
            path.read_bytes()
            for path in served.home.rglob("*")
            if path.is_file() and path.name != "script.json"
        )
        assert KEY.encode() not in everything


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_at_once_and_ends_its_streams_cleanly(
    tmp_path: Path, number: signal.Signals
) -> None:
    with daemon.start(tmp_path) as served:
        session_id = served.post("/v1/sessions")["session_id"]
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request(
            "GET",
            f"/v1/sessions/{session_id}/events",
            headers={"Authorization": f"Bearer {served.token}"},
        )
        stream = connection.getresponse()
        assert b"id: 1" in stream.readline()
        os.kill(served.pid, number)
        # A stream that was cut off would raise here.
        assert b"session.created" in stream.read()
        assert served.process.wait(daemon.STOP_S) == 0
        connection.close()


def test_what_waited_when_it_stopped_still_waits_when_it_starts(tmp_path: Path) -> None:
    script = {
        "write": [
            {"calls": [{"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}]},
            {"text": "done"},
        ]
    }
    with daemon.start(tmp_path, script=script) as served:
        session_id = served.post("/v1/sessions")["session_id"]
        run_id = served.post(f"/v1/sessions/{session_id}/messages", {"text": "write"})["run_id"]
        for _, event, data in served.events(f"/v1/sessions/{session_id}/events"):
            if event == "entry" and data["kind"] == "approval.requested":
                break
        assert served.stop() == 0
        served.restart()
        (approval,) = served.get("/v1/approvals")["approvals"]
        served.post(f"/v1/approvals/{approval['approval_id']}/answer", {"decision": "allow"})
        kinds = [
            data["kind"]
            for _, _, data in served.events(f"/v1/sessions/{session_id}/events?until={run_id}")
            if "seq" in data
        ]
        assert kinds[-1] == "run.completed"
        assert (served.workspace / "a.txt").read_text() == "x"


def test_a_second_daemon_on_the_same_home_names_the_first(tmp_path: Path) -> None:
    with daemon.start(tmp_path) as served:
        said = start_fails(served.home, "--port", "0")
        assert f"process {served.pid}" in said
        assert served.get("/healthz")["status"] == "ok"
        assert json.loads((served.home / "daemon.json").read_text())["pid"] == served.pid


def test_a_port_that_is_taken_is_an_error_that_names_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = start_fails(tmp_path / "home", "--port", str(taken.getsockname()[1]))
        assert f"process {os.getpid()}" in said
        assert "--port" in said


@pytest.mark.parametrize(
    ("host", "advice"), [("0.0.0.0", "server.allowed_hosts"), ("example.com", "server.tls.names")]
)
def test_it_does_not_listen_beyond_loopback_just_like_that(
    tmp_path: Path, host: str, advice: str
) -> None:
    daemon.configure(tmp_path / "home", config=f'[server]\nhost = "{host}"\n')
    assert advice in start_fails(tmp_path / "home", "--port", "0")


def test_a_wrong_setting_is_named_and_nothing_starts(tmp_path: Path) -> None:
    daemon.configure(tmp_path / "home", config="[server]\nhttp_prot = 1\n")
    said = start_fails(tmp_path / "home")
    assert "http_prot" in said
    assert "http_port" in said
    assert not (tmp_path / "home" / "daemon.json").exists()


def test_ipv6_loopback_is_loopback_too(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with daemon.start(tmp_path, config='[server]\nhost = "::1"\n') as served:
        assert served.url.startswith("http://[::1]:")
        connection = http.client.HTTPConnection("::1", served.port, timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


def test_idle_it_costs_nearly_nothing(served: DaemonProcess) -> None:
    """Its resident memory, right after the start, is within what was promised."""
    statm = Path(f"/proc/{served.pid}/statm").read_text().split()
    assert int(statm[1]) * os.sysconf("SC_PAGE_SIZE") < 70 << 20
