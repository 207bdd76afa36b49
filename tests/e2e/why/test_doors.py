"""`palyra why` and its route against a daemon that runs: as a tree, as JSON, and after a crash."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.crash.test_process import CONFIG, TERMINAL, call, permit_all, submitted, wait_for
from tests.daemon import DaemonProcess


def said(daemon: DaemonProcess, *arguments: str, cwd: Path | None = None) -> str:
    done = palyra(daemon.home, "why", *arguments, **({"cwd": cwd} if cwd else {}))
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def flat(cause: dict[str, Any]) -> list[dict[str, Any]]:
    return [cause, *(each for inner in cause.get("causes", ()) for each in flat(inner))]


def test_a_file_an_entry_a_run_and_a_position_are_asked_from_a_terminal(tmp_path: Path) -> None:
    permit_all(tmp_path)
    script = {"go": [call("fs.write", path="a b.txt", content="x\n"), {"text": "done"}]}
    with daemons.start(tmp_path, config=CONFIG, script=script) as daemon:
        session, run = submitted(daemon, "go")
        wait_for(daemon, session, *TERMINAL)
        finished = wait_for(daemon, session, "tool.finished")
        place = f"{session}:{finished['seq']}"
        tree = said(daemon, place)
        assert tree.splitlines()[0].startswith("effect  fs.write a b.txt · ok: created a b.txt")
        for role in ("decision  allow by policy", "model  ", "prompt  turn 1", "input  go"):
            assert role in tree, tree
        assert "└─ " in tree
        # The file, from its folder; the session by the beginning of its id; and as JSON.
        assert said(daemon, "a b.txt", cwd=daemon.workspace) == tree
        answer = json.loads(said(daemon, str(daemon.workspace / "a b.txt"), "--json"))
        assert answer["about"] == os.path.realpath(daemon.workspace / "a b.txt")
        assert answer["found"] == json.loads(said(daemon, place, "--json"))["found"]
        assert said(daemon, f"{session[:20].lower()}:{finished['seq']}") == tree
        roles = [each["role"] for each in flat(answer["found"][0])]
        assert roles[0] == "effect"
        assert {"decision", "call", "model", "prompt", "input"} <= set(roles)
        assert said(daemon, run["run_id"]).startswith("cost  2 model calls")
        assert said(daemon, run["run_id"][:20]).startswith("cost  2 model calls")
        assert said(daemon, str(finished["position"])) == tree


def test_a_mistake_is_named(tmp_path: Path) -> None:
    with daemons.start(tmp_path, config=CONFIG, script={"go": [{"text": "done"}]}) as daemon:
        for about, words in (
            ("nothing.txt", "no call of a session of yours changed"),
            ("01JD0000000000000000000009", "nothing here has the id"),
            ("99999999", "no entry at position"),
        ):
            done = palyra(daemon.home, "why", about)
            assert (done.returncode != 0, words in done.stderr) == (True, True), done.stderr
        for query in ("", "?about=", "?about=x&limit=0", "?about=x&limit=51", "?about=..%2fx"):
            assert daemon.request("GET", f"/v1/journal/why{query}").code == "invalid_input"
        assert daemon.request("GET", "/v1/journal/why?about=1", token="wrong").status == 401


@pytest.mark.parametrize("answer", ["happened", "again", "skip"])
def test_a_call_in_doubt_names_who_settled_it(tmp_path: Path, answer: str) -> None:
    permit_all(tmp_path)
    script = {
        "go": [
            call("test.once", path="once.txt", line="x", hold="gate", hold_at="before"),
            {"text": "done"},
        ]
    }
    with daemons.start(tmp_path, config=CONFIG, script=script) as daemon:
        os.mkfifo(daemon.workspace / "gate")
        session, _ = submitted(daemon, "go")
        wait_for(daemon, session, "tool.started")
        # Returns once the tool stands at the gate.
        arrived = os.open(daemon.workspace / "gate", os.O_WRONLY)
        daemon.kill()
        os.close(arrived)
        os.unlink(daemon.workspace / "gate")
        daemon.restart()
        asked = wait_for(daemon, session, "approval.requested", *TERMINAL)
        approval_id = asked["event"]["approval_id"]
        daemon.post(f"/v1/approvals/{approval_id}/answer", {"decision": answer})
        wait_for(daemon, session, *TERMINAL)
        finished = wait_for(daemon, session, "tool.finished")
        (tree,) = daemon.get(f"/v1/journal/why?about={session}:{finished['seq']}")["found"]
        found = flat(tree)
        (settled,) = [each for each in found if each["role"] == "approval"]
        assert (settled["by"], settled["names"]) == ("user:owner", [approval_id])
        assert settled["causes"][0]["text"].startswith("test.once may have run")
        attempts = [each["text"] for each in found if each["role"] == "attempt"]
        assert attempts == ["attempt 1", "attempt 2"][: 1 + (answer == "again")]
        assert {"decision", "model", "input"} <= {each["role"] for each in found}
