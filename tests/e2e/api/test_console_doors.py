"""What the console needs beside the rest of the API: paths to complete, where a question stands on
the tape, a hard restart.
"""

import http.client
import time
from collections.abc import Iterator

import pytest

from tests.daemon import START_S, DaemonProcess, start

WRITE = {"name": "fs.write", "arguments": {"path": "plan.txt", "content": "one\n"}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("doors")
    script = {"*": [{"text": "I write.", "calls": [WRITE]}, {"text": "It is settled."}]}
    with start(folder, config="[limits]\nrequests_per_second = 1000\n", script=script) as running:
        for name in ("notes.md", "src/main.py", "src/mass.py", ".env", "private.pem"):
            path = running.workspace / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        (running.workspace / "way-out").symlink_to(folder)
        yield running


@pytest.mark.parametrize(
    ("prefix", "paths"),
    [
        ("", ["notes.md", "src/"]),
        ("n", ["notes.md"]),
        ("src/ma", ["src/main.py", "src/mass.py"]),
        ("src/mai", ["src/main.py"]),
    ],
)
def test_paths_are_completed_inside_the_workspace(
    daemon: DaemonProcess, prefix: str, paths: list[str]
) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    assert daemon.get(f"/v1/sessions/{session}/paths?prefix={prefix}") == {"paths": paths}


@pytest.mark.parametrize(
    "prefix", ["../", "/etc/", "way-out/", ".en", "priv", "nowhere/", "src/../../", "%00"]
)
def test_what_lies_outside_or_is_protected_has_no_name(daemon: DaemonProcess, prefix: str) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    assert daemon.get(f"/v1/sessions/{session}/paths?prefix={prefix}") == {"paths": []}


def test_a_question_says_where_on_the_tape_it_was_asked_and_outlives_a_hard_restart(
    daemon: DaemonProcess,
) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "write"})["run_id"]
    asked = next(
        data
        for _, _, data in daemon.events(f"/v1/sessions/{session}/events")
        if data["kind"] == "approval.requested"
    )
    (approval,) = daemon.get("/v1/approvals")["approvals"]
    assert approval["seq"] == asked["seq"]
    before = daemon.get("/v1/status")["started_ms"]
    assert daemon.request("POST", "/v1/restart", {"started_ms": before}, token="").status == 401
    assert daemon.request("POST", "/v1/restart", {"started_ms": before}).status == 202
    assert _status_after(daemon, before)["url"] == daemon.url
    assert daemon.request("POST", "/v1/restart", {"started_ms": before}).code == "conflict"
    assert daemon.process.poll() is None
    daemon.post(f"/v1/approvals/{approval['approval_id']}/answer", {"decision": "allow"})
    entries = [
        data
        for _, event, data in daemon.events(f"/v1/sessions/{session}/events?until={run}")
        if event == "entry"
    ]
    assert entries[-1]["kind"] == "run.completed"
    assert (daemon.workspace / "plan.txt").read_text() == "one\n"
    assert daemon.get("/v1/journal/verify")["ok"] is True


def _status_after(daemon: DaemonProcess, before: int) -> dict[str, object]:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            status: dict[str, object] = daemon.get("/v1/status")
        except (OSError, http.client.HTTPException):
            status = {"started_ms": before}
        if status["started_ms"] != before:
            return status
        time.sleep(
            0.02
        )  # It needs the processor to start, and there is nothing to wait on but the clock.
    raise AssertionError(f"it did not come back:\n{daemon.said()}")
