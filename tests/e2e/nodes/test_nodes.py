"""Two daemons on one journal: what people see of it, whichever they talk to."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_process import call
from tests.daemon import DaemonProcess
from tests.nodes import LEASE_MS, Nodes, until

pytestmark = pytest.mark.postgres


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path, {"*": [{"text": "hello"}] * 9, **_slow(tmp_path)})
    yield made
    made.stop()


def _slow(folder: Path) -> dict[str, Any]:
    return {
        "slow": [
            {"text": ["half ", "done"], "hold": str(folder / "gate"), "hold_after": 1},
        ],
        "line": [call("test.once", path="lines.txt", line="one"), {"text": "wrote it"}],
    }


def test_one_leads_the_other_passes_on_and_takes_over(nodes: Nodes) -> None:
    first, second = nodes.start("first"), nodes.start("second")
    assert nodes.lease()["leader"] == "first"
    nodes.together()
    assert second.token == first.token
    for node in (first, second):
        assert node.request("GET", "/readyz").status == 200
        assert node.get("/healthz")["status"] == "ok"
    session, entries = second.run("hi")
    assert entries[-1]["kind"] == "run.completed"
    # A request that is refused is refused by the leader, in its words.
    refused = second.request("GET", "/v1/status", token="nonsense")
    assert (refused.status, refused.code) == (401, "unauthenticated")
    assert second.request("GET", "/v1/status", headers={"Host": "elsewhere"}).status == 421
    assert second.request("GET", "/nothing").status == 404
    listed = second.get("/v1/nodes")["nodes"]
    assert [(each["name"], each["state"]) for each in listed] == [
        ("first", "leading"),
        ("second", "standing by"),
    ]
    assert listed[0]["epoch"] == 1
    # What everybody needs is in both homes; what is one node's own is not.
    for name in ("keys/rights.key", "keys/redaction.key", "keys/seal.key", "owner.token"):
        assert (first.home / name).read_bytes() == (second.home / name).read_bytes()
    began = time.monotonic()
    first.kill()
    answers = []

    def answered() -> bool:
        answer = second.request("GET", f"/v1/sessions/{session}/entries")
        answers.append(answer)
        return answer.status == 200

    until(answered, "nobody took over")
    assert time.monotonic() - began < 10 * max(1.0, LEASE_MS / 5_000)
    assert [entry["kind"] for entry in answers[-1].json["entries"]][1:] == [
        entry["kind"] for entry in entries
    ]
    for answer in answers[:-1]:
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    _, entries = second.run("again", session)
    assert entries[-1]["kind"] == "run.completed"
    assert second.get("/v1/journal/verify?deep=true")["ok"]
    # The former leader comes back, and stands by.
    again = nodes.start("first")
    assert [each["state"] for each in again.get("/v1/nodes")["nodes"]] == [
        "leading",
        "standing by",
    ]
    _, entries = again.run("and again", session)
    assert entries[-1]["kind"] == "run.completed"


def test_a_watcher_through_a_node_that_stands_by_misses_nothing_when_the_leader_dies(
    nodes: Nodes, tmp_path: Path
) -> None:
    first, second = nodes.start("first"), nodes.start("second")
    third = nodes.start("third")
    nodes.together()
    session = third.post("/v1/sessions")["session_id"]
    seen: list[int] = []
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(third, session, seen, ended), daemon=True)
    watcher.start()
    run = third.post(f"/v1/sessions/{session}/messages", {"text": "slow"})["run_id"]
    until(lambda: (tmp_path / "gate.reached").exists() or len(seen) >= 4, "it never began")
    first.kill()
    (tmp_path / "gate").touch()
    assert nodes.led_by(not_by="first") in ("second", "third")
    until(lambda: _state(second, run) == "done", "the run did not go on")
    until(lambda: _ready(third), "a node does not find the one that leads")
    _, entries = third.run("hi", session)
    last = entries[-1]["seq"]
    until(lambda: bool(seen) and seen[-1] >= last, f"the watcher has seen {seen}")
    ended.set()
    assert seen == list(range(1, seen[-1] + 1))


def _state(node: DaemonProcess, run: str) -> str:
    answer = node.request("GET", f"/v1/runs/{run}")
    return str(answer.json["state"]) if answer.status == 200 else ""


def _watch(node: DaemonProcess, session: str, seen: list[int], ended: threading.Event) -> None:
    """Watch like every client: when the stream breaks, go on behind the last number."""
    while not ended.is_set():
        after = seen[-1] if seen else 0
        try:
            path = f"/v1/sessions/{session}/events?after={after}"
            for _, event, data in node.events(path, timeout_s=5):
                if event == "entry":
                    seen.append(data["seq"])
        except (OSError, AssertionError, ValueError):
            time.sleep(0.05)
        except Exception:  # noqa: BLE001  a stream that breaks off
            time.sleep(0.05)


def test_a_drained_leader_hands_over_at_once_and_stands_by(nodes: Nodes) -> None:
    first, second = nodes.start("first"), nodes.start("second")
    nodes.together()
    session, _ = second.run("hi")
    pid = first.pid
    done = _palyra(second, "node", "drain", "--json")
    assert json.loads(done.stdout)["name"] == "first"
    began = time.monotonic()
    assert nodes.led_by("second") == "second"
    assert time.monotonic() - began < 5
    until(lambda: _ready(first), "it did not come back")
    assert first.process.poll() is None
    assert first.pid == pid
    _, entries = first.run("again", session)
    assert entries[-1]["kind"] == "run.completed"
    states = {each["name"]: each["state"] for each in second.get("/v1/nodes")["nodes"]}
    assert states == {"second": "leading", "first": "draining"}
    # It leaves the lease to others, and takes it when there is nobody else.
    assert second.request("POST", "/v1/nodes/drain", {"node": "first"}).code == "conflict"
    second.post("/v1/nodes/drain", {"node": "second"})
    assert nodes.led_by("first") == "first"
    until(lambda: _ready(second), "it did not come back")
    assert json.loads(_palyra(second, "stop", "--daemon", "--json").stdout)["ended"] == second.pid
    assert second.process.wait(30) == 0


def _palyra(node: DaemonProcess, *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "--home", str(node.home), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def _ready(node: DaemonProcess) -> bool:
    try:
        return node.request("GET", "/readyz").status == 200
    except OSError:
        return False


def test_a_node_with_another_secret_is_refused(nodes: Nodes) -> None:
    first = nodes.start("first")
    alone = first.request("POST", "/v1/nodes/drain", {})
    assert (alone.status, alone.code) == (409, "conflict")
    with pytest.raises(AssertionError, match="is not the secret of the nodes of this journal"):
        nodes.start("second", env={"NODES_SECRET": "another secret of more than 32 characters"})
    with pytest.raises(AssertionError, match="fewer than 32 characters"):
        nodes.start("third", env={"NODES_SECRET": "short"})
