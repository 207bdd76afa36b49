"""Approvals and ids from the command line: what was allowed beyond one call is seen and taken back;
ids are short and whole.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

MISSING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def _write(name: str) -> dict[str, Any]:
    return {"name": "fs.write", "arguments": {"path": name, "content": "x\n"}}


SCRIPT = {
    "*": [{"text": "the answer"}],
    "many": [
        {"calls": [_write("many.txt"), _write("more.txt"), _write("most.txt")]},
        {"text": "wrote many"},
    ],
    **{
        name: [{"calls": [_write(f"{name}.txt")]}, {"text": f"wrote {name}"}]
        for name in ("one", "two", "three", "four", "five", "six", "seven")
    },
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemons.start(tmp_path_factory.mktemp("daemon"), script=SCRIPT) as started:
        yield started


def _pending(daemon: DaemonProcess, text: str, session_id: str = "") -> tuple[str, str]:
    """A run that waits for an approval: its session and the approval."""
    session_id = (
        session_id
        or daemon.post("/v1/sessions", {"workspace": str(daemon.workspace)})["session_id"]
    )
    daemon.post(f"/v1/sessions/{session_id}/messages", {"text": text})
    for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events"):
        if (
            event == "entry"
            and data["kind"] == "approval.requested"
            and data["event"]["preview"]["title"].endswith(f"{text}.txt (+1 -0)")
        ):
            return session_id, str(data["event"]["approval_id"])
    raise AssertionError("no approval was asked for")


def test_whoever_waits_for_approvals_answers_them_as_they_come_whatever_else_happens(
    daemon: DaemonProcess,
) -> None:
    with terminal(daemon.home, "approvals", "watch", cwd=daemon.workspace) as watching:
        watching.expect("waiting for approvals")
        session_id, _ = _pending(daemon, "five")
        watching.expect(r"\[q\]uit › ")
        watching.line("y")
        watching.expect(r"\(\+1 -0\): allow")
        daemon.post("/v1/tokens", {"name": "a change", "scope": "viewer"})
        _pending(daemon, "six", session_id)
        watching.expect(r"\[q\]uit › ")
        watching.line("y")
        watching.expect(r"\(\+1 -0\): allow")


def test_what_is_asked_while_somebody_begins_to_wait_for_approvals_is_not_missed(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    slow = f"""
import os, sys, time
from palyra.cli import main, output
real = output.Output.note
def note(self, text):
    real(self, text)
    while not os.path.exists({str(tmp_path / "go")!r}):
        time.sleep(0.005)
output.Output.note = note
sys.exit(main.main(["approvals", "watch"]))
"""
    with terminal(
        daemon.home, cwd=daemon.workspace, program=[sys.executable, "-c", slow]
    ) as watching:
        watching.expect("waiting for approvals")
        _pending(daemon, "seven")
        (tmp_path / "go").touch()
        watching.expect(r"\[q\]uit › ")
        watching.line("y")
        watching.expect(r"\(\+1 -0\): allow")


def test_grants_are_listed_named_on_what_ran_by_them_and_revoked(daemon: DaemonProcess) -> None:
    session_id, approval_id = _pending(daemon, "one")
    allowed = palyra(daemon.home, "approvals", "allow", approval_id, "--session", "--subject", "3")
    assert allowed.returncode == 0, allowed.stderr
    assert "with any arguments" in allowed.stdout
    listed = palyra(daemon.home, "approvals", "grants").stdout
    assert approval_id in listed
    assert "fs.write with any arguments" in listed
    assert session_id in listed
    with terminal(daemon.home, "chat", "--session", session_id, cwd=daemon.workspace) as chat:
        chat.expect("› ")
        chat.line("two")
        chat.expect(r"✓ fs.write two.txt +\d+ ms +\(allowed by your answer of \d\d:\d\d\)")
        chat.expect("wrote two")
        chat.line("/quit")
        assert chat.ends() == 0
    shown = palyra(daemon.home, "sessions", "show", session_id).stdout
    assert re.search(r"two.txt .*\(allowed by your answer of \d\d:\d\d\)", shown)
    assert "allowed by" not in next(line for line in shown.splitlines() if "one.txt" in line)
    assert (
        json.loads(palyra(daemon.home, "approvals", "grants", "--json").stdout)["grants"][0][
            "approval_id"
        ]
        == approval_id
    )
    assert palyra(daemon.home, "approvals", "revoke", MISSING).returncode == 3
    revoked = palyra(daemon.home, "approvals", "revoke", approval_id)
    assert (revoked.returncode, approval_id in revoked.stdout) == (0, True)
    assert approval_id not in palyra(daemon.home, "approvals", "grants").stdout
    _, asked_again = _pending(daemon, "three", session_id)
    assert palyra(daemon.home, "approvals", "deny", asked_again).returncode == 0


def test_the_only_approval_that_waits_needs_no_id_and_two_do(daemon: DaemonProcess) -> None:
    assert palyra(daemon.home, "approvals", "allow").returncode == 3
    _, first = _pending(daemon, "four")
    assert "create four.txt" in palyra(daemon.home, "approvals", "show").stdout
    _, second = _pending(daemon, "three")
    unclear = palyra(daemon.home, "approvals", "allow")
    assert (unclear.returncode, "say which" in unclear.stderr) == (2, True)
    length = next(size for size in range(6, 27) if first[:size] != second[:size])
    denied = palyra(daemon.home, "approvals", "deny", first[:length].lower())
    assert denied.returncode == 0, denied.stderr
    assert "create four.txt" in denied.stdout
    assert palyra(daemon.home, "approvals", "deny").returncode == 0
    assert json.loads(palyra(daemon.home, "approvals", "--json").stdout)["approvals"] == []
    assert palyra(daemon.home, "approvals", "show", first[:20]).returncode == 0


def test_calls_that_were_asked_together_are_answered_by_line(daemon: DaemonProcess) -> None:
    session_id, first = _pending(daemon, "many")
    shown = palyra(daemon.home, "approvals", "show", first).stdout
    for line in ("1. fs.write: create many.txt", "3. fs.write: create most.txt"):
        assert f"asked together {line}" in shown
    # One diff over all of them.
    for name in ("many.txt", "more.txt", "most.txt"):
        assert f"+++ b/{name}" in shown
    wrong = palyra(daemon.home, "approvals", "allow", first, "--only", "4")
    assert (wrong.returncode, "there is no line 4" in wrong.stderr) == (2, True)
    answered = palyra(daemon.home, "approvals", "allow", first, "--only", "1,3")
    assert answered.returncode == 0, answered.stderr
    for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events"):
        if event == "entry" and data["kind"] == "run.completed":
            break
    there = {name: (daemon.workspace / name).exists() for name in ("many.txt", "more.txt")}
    assert there == {"many.txt": True, "more.txt": False}
    assert json.loads(palyra(daemon.home, "approvals", "--json").stdout)["approvals"] == []


def test_a_session_is_named_by_the_beginning_of_its_id(daemon: DaemonProcess) -> None:
    made = [daemon.post("/v1/sessions", {"title": f"number {n}"})["session_id"] for n in range(2)]
    length = next(size for size in range(6, 27) if made[0][:size] != made[1][:size])
    shown = palyra(daemon.home, "sessions", "show", made[1][:length].lower())
    assert shown.stdout.startswith(made[1])
    assert palyra(daemon.home, "sessions", "show", made[1][:5]).returncode == 2
    unclear = palyra(daemon.home, "sessions", "show", made[1][:6])
    assert (unclear.returncode, made[1] in unclear.stderr) == (2, True)
    assert palyra(daemon.home, "sessions", "show", MISSING[:10]).returncode == 3


@pytest.mark.parametrize("columns", [40, 60])
def test_an_id_is_never_broken_in_two(daemon: DaemonProcess, columns: int) -> None:
    session_id = daemon.post("/v1/sessions", {"title": "a title of some length " * 3})["session_id"]
    with terminal(daemon.home, "sessions", cwd=daemon.workspace, columns=columns) as shown:
        shown.expect(session_id)
        assert shown.ends() == 0


def test_a_long_conversation_opens_with_its_end_and_says_where_the_rest_is(tmp_path: Path) -> None:
    script = {"*": [{"text": "".join(f"line {n}\n" for n in range(300))}]}
    with daemons.start(tmp_path, script=script) as daemon:
        session_id, _ = daemon.run(
            "go", daemon.post("/v1/sessions", {"workspace": str(daemon.workspace)})["session_id"]
        )
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.expect(f"palyra sessions show {session_id}")
            chat.expect("line 299")
            chat.expect("› ")
            assert "line 250" not in chat.text
            assert "line 270" in chat.text


def test_a_provider_that_is_down_is_said_once_and_counted_down(tmp_path: Path) -> None:
    config = '[providers.gone]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ["m"]\n'
    with (
        daemons.start(tmp_path, config=config) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect("› ")
        chat.line("hello")
        chat.expect("gone: network")
        chat.expect(r"retrying gone in \d+ s")
        chat.expect(r"Cannot reach the model; next try in \d+ s")
        assert chat.text.count("gone: network") == 1
        assert "ssl:" not in chat.text
