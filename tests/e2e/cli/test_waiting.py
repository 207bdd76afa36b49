"""A run that waits for its provider, on a terminal: why, a clock that counts, and what to do."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

CONFIG = """[models]
default = "scripted/s1"
[providers.spare]
kind = "scripted"
models = ["p1"]
script = "{spare}"
"""
AWAY = {"failure": "overloaded", "message": "too many people", "retry_after_ms": 90_000}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    spare = tmp_path / "spare.json"
    spare.write_text(json.dumps({"*": [{"text": "the spare one answers"}]}))
    script = {
        "*": [{"fail": AWAY}],
        "once": [{"text": "back again", "fail": {**AWAY, "times": 1}}],
    }
    with daemons.start(tmp_path, config=CONFIG.format(spare=spare), script=script) as started:
        yield started


def _waiting(daemon: DaemonProcess, text: str) -> str:
    """The id of a run that waits."""
    session_id = daemon.post("/v1/sessions")["session_id"]
    run_id = daemon.post(f"/v1/sessions/{session_id}/messages", {"text": text})["run_id"]
    for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events"):
        if event == "entry" and data["kind"] == "run.waiting":
            return str(run_id)
    raise AssertionError("the run did not wait")


def test_a_chat_counts_down_and_switches_the_model(daemon: DaemonProcess) -> None:
    with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
        chat.type("hello\n")
        chat.expect("Model overloaded: the run waits")
        chat.expect(r"Model overloaded; next try in \d+ s\. /model switches")
        chat.type("/model spare/p1\n")
        chat.expect("the spare one answers")


def test_a_chat_tries_now(daemon: DaemonProcess) -> None:
    with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
        chat.type("once\n")
        chat.expect(r"next try in \d+ s\.")
        chat.type("/retry\n")
        chat.expect("back again")


def test_going_back_to_the_default_model_tries_now_as_well(daemon: DaemonProcess) -> None:
    with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
        chat.type("once\n")
        chat.expect(r"next try in \d+ s\.")
        chat.type("/model default\n")
        chat.expect("back again")


def test_ask_counts_down_and_a_key_tries_now(daemon: DaemonProcess) -> None:
    with terminal(daemon.home, "ask", "once", cwd=daemon.workspace) as asking:
        asking.expect(r"Model overloaded; next try in \d+ s\. r: try now")
        asking.type("r")
        asking.expect("back again")
        assert asking.ends() == 0


def test_ask_switches_the_model_by_a_key(daemon: DaemonProcess) -> None:
    with terminal(daemon.home, "ask", "hello", cwd=daemon.workspace) as asking:
        asking.expect(r"next try in \d+ s\.")
        asking.type("m")
        asking.expect("model: ")
        asking.type("spare/p1\n")
        asking.expect("the spare one answers")
        assert asking.ends() == 0


def test_runs_are_shown_tried_again_switched_and_cancelled(daemon: DaemonProcess) -> None:
    run_id = _waiting(daemon, "once")
    shown = palyra(daemon.home, "runs", "show", run_id)
    assert "waiting for scripted/s1. Model overloaded; next try in" in shown.stdout
    assert "Gives up in" in shown.stdout
    tried = palyra(daemon.home, "runs", "retry", run_id, "--json")
    assert json.loads(tried.stdout)["state"] == "in_progress"
    other = _waiting(daemon, "hello")
    wrong = palyra(daemon.home, "runs", "retry", other, "--model", "nobody/x")
    assert wrong.returncode != 0
    assert "spare/p1" in wrong.stderr
    assert palyra(daemon.home, "runs", "retry", other, "--model", "spare/p1").returncode == 0
    third = _waiting(daemon, "hello")
    assert f"{third}: cancelled" in palyra(daemon.home, "runs", "cancel", third).stdout
    refused = palyra(daemon.home, "runs", "retry", third)
    assert refused.returncode == 6
    assert "does not wait for a provider" in refused.stderr
