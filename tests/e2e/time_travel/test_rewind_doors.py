"""Time travel through its doors: HTTP and the command line, against a real daemon."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.crash.scenarios import PERMIT_ALL
from tests.daemon import DaemonProcess

ONE = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "one\n"}}
TWO = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "two\n"}}
SCRIPT = {
    "one": [{"calls": [ONE]}, {"text": "wrote one"}],
    "two": [{"calls": [TWO]}, {"text": "wrote two"}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "home/policies").mkdir(parents=True)
    (folder / "home/policies/all.cedar").write_text(PERMIT_ALL)
    with daemons.start(folder, script=SCRIPT) as started:
        yield started


def _told(daemon: DaemonProcess, session_id: str, text: str) -> int:
    """Say something, wait for the answer; where the tape ends then."""
    run_id = daemon.post(f"/v1/sessions/{session_id}/messages", {"text": text})["run_id"]
    kinds = [
        data["kind"]
        for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events?until={run_id}")
        if event == "entry"
    ]
    assert kinds[-1] == "run.completed"
    return int(daemon.get(f"/v1/sessions/{session_id}")["head_seq"])


@pytest.fixture
def changed(daemon: DaemonProcess) -> tuple[str, int]:
    """A session whose file says two, and the entry after which it said one."""
    session_id = str(
        daemon.post("/v1/sessions", {"workspace": str(daemon.workspace)})["session_id"]
    )
    (daemon.workspace / "a.txt").unlink(missing_ok=True)
    seq = _told(daemon, session_id, "one")
    _told(daemon, session_id, "two")
    return session_id, seq


def _cli(daemon: DaemonProcess, *arguments: str, code: int = 0, stdin: str | None = None) -> str:
    done = palyra(daemon.home, *arguments, cwd=daemon.workspace, stdin=stdin)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def _text(daemon: DaemonProcess) -> str:
    return (daemon.workspace / "a.txt").read_text()


def test_a_session_is_looked_at_and_rewound_over_http(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    session_id, seq = changed
    moment = daemon.get(f"/v1/sessions/{session_id}/at/{seq}")
    assert [turn["who"] for turn in moment["turns"]] == ["user", "model", "model"]
    assert [(each["path"], each["change"], each["by"]) for each in moment["changed"]] == [
        ("a.txt", "modified", "fs.write")
    ]
    path = f"/v1/sessions/{session_id}/rewind"
    look = daemon.post(path, {"to": seq, "preview": True})
    assert "-two" in look["diff"]
    assert _text(daemon) == "two\n"
    done = daemon.post(path, {"to": seq})
    assert (done["changes"], _text(daemon)) == (look["changes"], "one\n")
    assert len(daemon.get(f"/v1/sessions/{session_id}/at/{done['seq']}")["turns"]) == 3


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"to": 0}, 400),
        ({"to": 10**9}, 400),
        ({"to": 1, "force": True}, 400),
        ({}, 400),
        ({"to": -1}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    daemon: DaemonProcess, changed: tuple[str, int], body: Any, status: int
) -> None:
    assert daemon.request("POST", f"/v1/sessions/{changed[0]}/rewind", body).status == status
    assert _text(daemon) == "two\n"


def test_an_entry_that_is_not_there_is_refused(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    for wrong, status in (("0", 400), ("999999", 400), ("x", 400)):
        assert daemon.request("GET", f"/v1/sessions/{changed[0]}/at/{wrong}").status == status


def test_somebody_elses_change_is_a_conflict_that_names_the_file(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    session_id, seq = changed
    (daemon.workspace / "a.txt").write_text("mine\n")
    refused = daemon.request("POST", f"/v1/sessions/{session_id}/rewind", {"to": seq})
    assert (refused.status, refused.code, refused.json["error"]["details"]["files"]) == (
        409,
        "conflict",
        ["a.txt"],
    )
    said = _cli(daemon, "rewind", session_id, str(seq), "--yes", code=6)
    assert "a.txt" in said
    assert "skip-conflicts" in _cli(daemon, "rewind", session_id, str(seq), code=6, stdin="y\n")
    _cli(daemon, "rewind", session_id, str(seq), "--yes", "--skip-conflicts")
    assert _text(daemon) == "mine\n"


def test_the_command_line_shows_asks_goes_back_and_says_the_way_forward(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    session_id, seq = changed
    shown = _cli(daemon, "rewind", session_id, str(seq), "--preview")
    assert "-two" in shown
    assert "+one" in shown
    assert "nothing was done" in _cli(daemon, "rewind", session_id, str(seq), stdin="n\n", code=130)
    assert "--yes" in _cli(daemon, "rewind", session_id, str(seq), stdin="", code=2)
    assert _text(daemon) == "two\n"
    said = _cli(daemon, "rewind", session_id, str(seq), stdin="y\n")
    assert _text(daemon) == "one\n"
    forward = said.rpartition("palyra rewind ")[2].split()[:2]
    done = json.loads(_cli(daemon, "rewind", *forward, "--yes", "--json"))
    assert (done["to"], _text(daemon)) == (int(forward[1]), "two\n")


def test_the_command_line_shows_a_session_as_it_was(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    session_id, seq = changed
    said = _cli(daemon, "sessions", "at", session_id, str(seq))
    assert "wrote one" in said
    assert "wrote two" not in said
    assert "modified a.txt by fs.write" in said
    assert json.loads(_cli(daemon, "sessions", "at", session_id, str(seq), "--json"))["seq"] == seq


def test_the_changes_of_a_run_are_shown_before_they_are_undone(
    daemon: DaemonProcess, changed: tuple[str, int]
) -> None:
    run_id = daemon.get(f"/v1/sessions/{changed[0]}/runs")["runs"][0]["run_id"]
    shown = _cli(daemon, "undo", "--run", run_id, "--preview")
    assert "-two" in shown
    assert _text(daemon) == "two\n"
    _cli(daemon, "undo", "--run", run_id)
    assert _text(daemon) == "one\n"
