"""The whole of it as people use it: two programs on two sides, the command line on both, and a
daemon that is killed in between.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import ports
from tests.daemon import DaemonProcess, start

CONFIG = '[rehearsal]\ntools = true\n[memory]\nembeddings = false\n[workers]\nlisten = "127.0.0.1:{port}"\n'
HELD = {
    "name": "worker:attic/test.once",
    "arguments": {"path": "lines.txt", "line": "effect", "hold": "hold"},
}
SCRIPT = {"*": [{"calls": [HELD]}, {"text": "done"}]}
LONGEST_S = 20.0


def palyra(daemon: DaemonProcess, *arguments: str) -> Any:
    command = [
        sys.executable,
        "-m",
        "palyra.cli.main",
        *arguments,
        "--json",
        "--home",
        str(daemon.home),
    ]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout) if done.stdout else None


def at_fifo(path: Path) -> int:
    deadline = time.monotonic() + LONGEST_S
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline, f"nobody came to {path}"
            time.sleep(0.005)  # Another process opens it: there is nothing to wait on.


def begin(daemon: DaemonProcess, folder: Path) -> tuple[str, Path, dict[str, Any], int]:
    """A call at the worker that stands still with its effect behind it."""
    session_id = daemon.post("/v1/sessions")["session_id"]
    there = folder / "work" / session_id
    there.mkdir()
    os.mkfifo(there / "hold")
    submitted = daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "go"})
    return session_id, there, submitted, at_fifo(there / "hold")


def ended(daemon: DaemonProcess, session_id: str, submitted: dict[str, Any]) -> list[str]:
    path = f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
    return [data["kind"] for _, event, data in daemon.events(path) if event == "entry"]


@pytest.mark.timeout(300)
def test_a_daemon_that_is_killed_takes_up_what_its_worker_went_on_with(tmp_path: Path) -> None:
    policies = tmp_path / "home" / "policies"
    policies.mkdir(parents=True)
    (policies / "all.cedar").write_text('@id("all")\npermit (principal, action, resource);\n')
    port, folder = ports.free(), tmp_path / "there"
    with start(tmp_path, config=CONFIG.format(port=port), script=SCRIPT) as daemon:
        made = palyra(daemon, "workers", "enrol", "attic")
        arguments = ("--authority", made["authority"], "--folder", str(folder))
        assert (
            palyra(daemon, "worker", "enrol", f"127.0.0.1:{port}", made["code"], *arguments)["name"]
            == "attic"
        )
        offered = ["--offer", "shell.run,test.once", "--rehearsal", "--folder", str(folder)]
        worker = subprocess.Popen(
            [sys.executable, "-m", "palyra.cli.main", "worker", "run", *offered],
            stdout=subprocess.PIPE,
        )
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"connected as attic\n"

            # Killed while it runs, and released only when the daemon is back.
            session_id, there, submitted, held = begin(daemon, folder)
            (running,) = daemon.get("/v1/workers")["workers"][0]["running"]
            assert (running["tool"], running["session_id"]) == ("test.once", session_id)
            daemon.kill()
            daemon.restart()
            os.write(held, b"x")
            kinds = ended(daemon, session_id, submitted)
            assert kinds.count("tool.started") == 1
            assert "approval.requested" not in kinds
            assert kinds[-1] == "run.completed"
            assert (there / "lines.txt").read_text() == "effect\n"

            # Killed, and it ends while nobody is there to hear of it.
            session_id, there, submitted, held = begin(daemon, folder)
            daemon.kill()
            os.write(held, b"x")
            (record,) = (folder / "state" / "calls").glob("*.json")
            deadline = time.monotonic() + LONGEST_S
            while b'"finished"' not in record.read_bytes():
                assert time.monotonic() < deadline
                time.sleep(0.005)
            daemon.restart()
            kinds = ended(daemon, session_id, submitted)
            assert (kinds.count("tool.started"), kinds[-1]) == (1, "run.completed")
            assert (there / "lines.txt").read_text() == "effect\n"

            shown = palyra(daemon, "workers", "show", "attic")
            assert [lease["state"] for lease in shown["recent"]] == ["done", "done"]
            assert "palyra_workers_connected 1" in daemon.request("GET", "/metrics").body.decode()
            assert palyra(daemon, "workers", "revoke", "attic")["state"] == "revoked"
            assert worker.wait(LONGEST_S) != 0
        finally:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
                worker.wait(10)
