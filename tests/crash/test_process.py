"""A real daemon process, killed with SIGKILL and started again on the same home."""

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.store.sqlite_files import inspect
from tests.daemon import DaemonProcess, start
from tests.escapes.world import patience

CONFIG = '[models]\ndefault = "scripted/s1"\n[rehearsal]\ntools = true\n[limits]\nrequests_per_second = 100000\n'
PERMIT_ALL = '@id("all")\npermit (principal, action, resource);\n'
TERMINAL = ("run.completed", "run.failed", "run.cancelled")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def permit_all(folder: Path) -> None:
    (folder / "home/policies").mkdir(parents=True)
    (folder / "home/policies/all.cedar").write_text(PERMIT_ALL)


def entries(daemon: DaemonProcess, session: str) -> list[dict[str, Any]]:
    return list(daemon.get(f"/v1/sessions/{session}/entries?limit=1000")["entries"])


def wait_for(daemon: DaemonProcess, session: str, *kinds: str, after: int = 0) -> dict[str, Any]:
    for _, event, data in daemon.events(f"/v1/sessions/{session}/events?after={after}"):
        if event == "entry" and data["kind"] in kinds:
            return dict(data)
    raise AssertionError(f"none of {kinds} came")


def submitted(daemon: DaemonProcess, text: str) -> tuple[str, dict[str, Any]]:
    session = daemon.post("/v1/sessions")["session_id"]
    return session, daemon.post(f"/v1/sessions/{session}/messages", {"text": text})


def test_a_pending_approval_is_still_answerable_after_a_kill(tmp_path: Path) -> None:
    script = {"go": [call("fs.write", path="a.txt", content="x\n"), {"text": "done"}]}
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        session, _ = submitted(daemon, "go")
        asked = wait_for(daemon, session, "approval.requested")
        daemon.kill()
        daemon.restart()
        (pending,) = daemon.get("/v1/approvals?pending=true")["approvals"]
        assert pending["approval_id"] == asked["event"]["approval_id"]
        daemon.post(f"/v1/approvals/{pending['approval_id']}/answer", {"decision": "allow"})
        assert wait_for(daemon, session, *TERMINAL)["kind"] == "run.completed"
        assert (daemon.workspace / "a.txt").read_text() == "x\n"
    assert inspect(tmp_path / "home/journal.db").ok


def test_a_run_killed_in_a_model_call_goes_on_within_a_second_of_ready(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = {"go": [{"text": ["half "], "hold": str(gate), "hold_after": 1}]}
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        session, run = submitted(daemon, "go")
        reached(gate)
        daemon.kill()
        gate.touch()
        slow = patience()
        daemon.restart()
        ready = time.monotonic()
        assert wait_for(daemon, session, *TERMINAL)["kind"] == "run.completed"
        took = time.monotonic() - ready
        assert took < 1.0 * max(slow, patience())
        kinds = [entry["kind"] for entry in entries(daemon, session)]
        assert kinds.count("model.replied") == 1
        assert "run.resumed" in kinds
        assert daemon.get(f"/v1/runs/{run['run_id']}")["state"] == "done"


def reached(gate: Path) -> None:
    deadline = time.monotonic() + 20
    while not gate.with_name(gate.name + ".reached").exists():
        assert time.monotonic() < deadline, "the model was not asked"
        time.sleep(0.005)  # Another process's file: there is nothing to wait on but the clock.


@pytest.mark.parametrize(
    ("hold_at", "answer", "lines"),
    [("after", "happened", 1), ("after", "skip", 1), ("before", "again", 1), ("before", "skip", 0)],
)
def test_a_once_effect_killed_in_the_middle_is_never_repeated_by_itself(
    tmp_path: Path, hold_at: str, answer: str, lines: int
) -> None:
    permit_all(tmp_path)
    script = {
        "go": [
            call("test.once", path="once.txt", line="x", hold="gate", hold_at=hold_at),
            {"text": "done"},
        ]
    }
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        os.mkfifo(daemon.workspace / "gate")
        session, run = submitted(daemon, "go")
        wait_for(daemon, session, "tool.started")
        arrived = os.open(
            daemon.workspace / "gate", os.O_WRONLY
        )  # Returns once the tool stands at the gate.
        daemon.kill()
        os.close(arrived)
        os.unlink(daemon.workspace / "gate")
        daemon.restart()
        asked = wait_for(daemon, session, "approval.requested", *TERMINAL)
        assert asked["event"]["about"] == "in_doubt"
        state = daemon.get(f"/v1/runs/{run['run_id']}")
        assert (state["state"], state["reason"]) == ("waiting", "in_doubt")
        refused = daemon.request(
            "POST", f"/v1/approvals/{asked['event']['approval_id']}/answer", {"decision": "allow"}
        )
        assert refused.code == "invalid_input"
        daemon.post(f"/v1/approvals/{asked['event']['approval_id']}/answer", {"decision": answer})
        assert wait_for(daemon, session, *TERMINAL)["kind"] == "run.completed"
        path = daemon.workspace / "once.txt"
        assert (path.read_text().splitlines() if path.exists() else []) == ["x"] * lines


def test_a_file_someone_changed_after_the_crash_is_not_overwritten_by_the_rollback(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    script = {
        "go": [
            call("test.reversible", path="r.txt", line="x", hold="gate", hold_at="after"),
            {"text": "done"},
        ]
    }
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        os.mkfifo(daemon.workspace / "gate")
        session, _ = submitted(daemon, "go")
        wait_for(daemon, session, "tool.started")
        arrived = os.open(daemon.workspace / "gate", os.O_WRONLY)
        daemon.kill()
        os.close(arrived)
        os.unlink(daemon.workspace / "gate")
        (daemon.workspace / "r.txt").write_text("mine\n")
        daemon.restart()
        asked = wait_for(daemon, session, "approval.requested", *TERMINAL)
        assert asked["event"]["about"] == "in_doubt"
        assert (daemon.workspace / "r.txt").read_text() == "mine\n"


@pytest.mark.timeout(300)
def test_a_watcher_that_reconnects_through_kills_sees_every_entry_once(tmp_path: Path) -> None:
    permit_all(tmp_path)
    script = {
        "go": [
            *(call("test.idempotent", folder="keys", text=str(n)) for n in range(12)),
            {"text": ["a ", "b ", "c"]},
        ]
    }
    rng = random.Random(3)
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        session, run = submitted(daemon, "go")
        seen: list[int] = []
        done = threading.Event()
        watcher = threading.Thread(
            target=follow, args=(lambda: daemon, session, run["run_id"], seen, done)
        )
        watcher.start()
        for _ in range(6):
            if done.wait(rng.uniform(0.0, 0.05)):
                break
            daemon.kill()
            daemon.restart()
        assert done.wait(120)
        watcher.join(20)
        assert seen == list(range(1, len(entries(daemon, session)) + 1))
        assert len(list((daemon.workspace / "keys").iterdir())) == 12
    assert inspect(tmp_path / "home/journal.db").ok


def follow(
    daemon: Callable[[], DaemonProcess],
    session: str,
    run_id: str,
    seen: list[int],
    done: threading.Event,
) -> None:
    """A client that only knows its cursor."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            for _, event, data in daemon().events(
                f"/v1/sessions/{session}/events?after={seen[-1] if seen else 0}"
            ):
                if event == "entry":
                    seen.append(data["seq"])
                    if data["kind"] in TERMINAL and data["run_id"] == run_id:
                        done.set()
                        return
        except Exception:  # noqa: BLE001  a connection that breaks off shows in many ways
            time.sleep(0.01)
