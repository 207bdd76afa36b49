"""MCP servers over HTTP and the command line, with a real daemon: added, shown, accepted,
permitted, restarted, removed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import mcp_servers
from tests.daemon import DaemonProcess, start

SCRIPT = {
    "add": [{"calls": [{"name": "mcp:s/add", "arguments": {"a": 2, "b": 3}}]}, {"text": "done"}],
}
TESTS = os.path.dirname(mcp_servers.SCRIPT)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with start(tmp_path_factory.mktemp("mcp"), script=SCRIPT) as running:
        yield running


def palyra(daemon: DaemonProcess, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "--home", str(daemon.home), *words],
        env={**os.environ, "PALYRA_HOME": str(daemon.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def until(holds: Callable[[], Any], seconds: float = 40) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # Another process does it: there is nothing to wait on but the clock.
    return found


def server(daemon: DaemonProcess, name: str = "s") -> dict[str, Any]:
    found: list[dict[str, Any]] = daemon.get("/v1/mcp")["servers"]
    return next((each for each in found if each["name"] == name), {})


def changes(daemon: DaemonProcess) -> list[tuple[str, str, str]]:
    export = daemon.request("GET", "/v1/journal/export")
    events = [json.loads(line) for line in export.body.splitlines()]
    found = [each["event"] for each in events if each["kind"] == "admin.changed"]
    return [(each["what"], each["action"], each.get("subject", "")) for each in found]


def test_a_server_goes_from_the_command_line_to_a_run_and_away_again(daemon: DaemonProcess) -> None:
    assert "no MCP server is configured" in palyra(daemon, "mcp")
    palyra(
        daemon,
        "mcp",
        "add",
        "s",
        "--readable",
        TESTS,
        "--",
        sys.executable,
        mcp_servers.SCRIPT,
        "honest",
    )
    table = (daemon.home / "config.toml").read_text()
    assert f'command = "{sys.executable}"' in table
    assert sys.prefix in table, "what the program needs to run was found"
    assert "there is an MCP server s already" in palyra(
        daemon, "mcp", "add", "s", "/bin/cat", code=6
    )
    until(lambda: server(daemon).get("state") == "ready")

    shown = palyra(daemon, "mcp", "show", "s")
    assert "waits      add: a new tool" in shown
    assert "Add two numbers." in shown
    assert "MCP server s: ready, 9 of its tools need to be accepted" in palyra(daemon, "doctor")
    assert "--yes" in palyra(daemon, "mcp", "accept", "s", code=2)
    assert "no such tool" in palyra(daemon, "mcp", "accept", "s", "sub", "--yes", code=3)
    palyra(daemon, "mcp", "accept", "s", "add", "--yes")
    assert server(daemon)["tools"] == ["mcp:s/add"]
    assert len(json.loads(palyra(daemon, "mcp", "accept", "s", "--yes", "--json"))["tools"]) == 9

    # What its arguments are for was proposed, and is the owner's to change.
    assert "arguments: only reads; what = target" in shown
    assert server(daemon)["uses"]["look"]["reads_only"] is True
    assert "only reads; what = target" in palyra(daemon, "mcp", "arguments", "s", "look")
    palyra(daemon, "mcp", "arguments", "s", "look", "what=url", "--changes")
    assert "changes things; what = url" in palyra(daemon, "mcp", "show", "s")
    assert "no argument 'where'" in palyra(
        daemon, "mcp", "arguments", "s", "look", "where=url", code=2
    )
    assert "a role of" in palyra(daemon, "mcp", "arguments", "s", "look", "what=thing", code=2)

    _, entries = daemon.run("add")
    assert denied(entries)
    assert "palyra mcp permit s add" in palyra(
        daemon, "policy", "explain", "mcp:s/add", '{"a": 1, "b": 2}'
    )
    palyra(daemon, "mcp", "permit", "s", "add", "--unattended")
    assert "says so already" in palyra(daemon, "mcp", "permit", "s", "add", "--unattended")
    palyra(daemon, "policy", "reload")
    assert palyra(daemon, "policy", "explain", "mcp:s/add", '{"a": 1, "b": 2}').startswith("allow")
    _, entries = daemon.run("add", timeout_s=60)
    assert [each["event"]["text"] for each in entries if each["kind"] == "tool.finished"] == ["5"]

    starts = server(daemon)["starts"]
    palyra(daemon, "mcp", "restart", "s")
    until(lambda: server(daemon)["starts"] == starts + 1 and server(daemon)["state"] == "ready")
    palyra(daemon, "mcp", "remove", "s")
    assert server(daemon) == {}
    assert "[mcp" not in (daemon.home / "config.toml").read_text()
    assert "mcp:s/add" not in [each["name"] for each in daemon.get("/v1/tools")["tools"]]
    found = changes(daemon)
    assert found.count(("mcp", "accepted", "s")) == 2
    assert ("mcp", "arguments", "s") in found
    assert ("mcp", "restarted", "s") in found
    assert ("config", "reloaded", "") in found


def denied(entries: list[dict[str, Any]]) -> bool:
    return [each["event"]["verdict"] for each in entries if each["kind"] == "tool.decided"] == [
        "deny"
    ]


def test_settings_apply_live_and_one_changed_server_leaves_the_others_alone(
    daemon: DaemonProcess,
) -> None:
    config = daemon.home / "config.toml"
    before = config.read_text()
    config.write_text(
        before
        + '[mcp.one]\ncommand = "/bin/cat"\nenabled = false\n[mcp.two]\nurl = "http://127.0.0.1:9/mcp"\n'
    )
    reloaded = daemon.post("/v1/config/reload")
    assert "mcp.two.url" in reloaded["live"]
    assert not [key for key in reloaded["after_restart"] if key.startswith("mcp.")]
    until(lambda: server(daemon, "two").get("detail"))
    assert (server(daemon, "one")["state"], server(daemon, "two")["where"]) == (
        "disabled",
        "127.0.0.1:9",
    )
    refused = daemon.request("POST", "/v1/mcp/one/restart", {})
    assert (refused.status, refused.code) == (409, "conflict")
    config.write_text(before)
    daemon.post("/v1/config/reload")
    assert daemon.get("/v1/mcp") == {"servers": []}


def test_what_is_not_there_or_not_right_is_refused_by_name(daemon: DaemonProcess) -> None:
    wrong = [
        ("POST", "/v1/mcp/nobody/accept", {"fingerprint": "0" * 64}, 404),
        ("POST", "/v1/mcp/nobody/restart", {}, 404),
        ("POST", "/v1/mcp/nobody/accept", {"fingerprint": "all"}, 400),
        ("POST", "/v1/mcp/nobody/accept", {}, 400),
    ]
    for method, path, body, status in wrong:
        assert daemon.request(method, path, body).status == status, path
    viewer = daemon.post("/v1/tokens", {"name": "v", "scope": "operator"})["token"]
    assert daemon.request("POST", "/v1/mcp/s/restart", {}, token=viewer).status == 403
    assert daemon.request("GET", "/v1/mcp", token=viewer).status == 200
    assert "there is no MCP server" in palyra(daemon, "mcp", "show", "nobody", code=3)
    assert "there is no program" in palyra(
        daemon, "mcp", "add", "x", "no-such-program-here", code=3
    )
    assert "either a command or --url" in palyra(daemon, "mcp", "add", "x", code=2)
    secret = palyra(
        daemon,
        "mcp",
        "add",
        "x",
        "--url",
        "http://127.0.0.1:9/",
        "--header",
        "Authorization: Bearer swordfish",
        code=7,
    )
    assert "vault:NAME" in secret
    assert "swordfish" not in secret


def test_a_hanging_server_neither_delays_the_start_nor_the_end(tmp_path: Path) -> None:
    settings = '[mcp.slow]\ncommand = "/bin/sleep"\nargs = ["600"]\n'
    with start(tmp_path, config=settings, script=SCRIPT) as running:
        assert server(running, "slow")["state"] == "starting"
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 25
