"""`ask` as a script uses it: the answer and nothing else, exit codes that tell, and a daemon that
may die meanwhile.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palyra.cli import lookup
from palyra.client import Client, discovery
from palyra.client.http import Api, LinkState, StopSignal
from tests import daemon as daemons
from tests.cli_terminal import environment, palyra, terminal
from tests.daemon import DaemonProcess

LONGEST_S = 60.0
MISSING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
WRITE = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x\n"}}
SCRIPT = {
    "*": [{"text": "the answer"}],
    "write": [{"text": "I will write", "calls": [WRITE]}, {"text": "written"}],
    "look": [
        {"calls": [{"name": "shell.run", "arguments": {"command": "ls"}}]},
        {"text": "looked"},
    ],
    "broken": [{"fail": {"failure": "auth", "message": "the key is wrong"}}],
    "think": [{"reasoning": "hmm", "text": "thought about it"}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemons.start(
        tmp_path_factory.mktemp("daemon"), config=daemons.IMPATIENT, script=SCRIPT
    ) as started:
        yield started


def _ok(daemon: DaemonProcess, *arguments: str, stdin: str | None = None) -> Any:
    """What a command prints with --json."""
    done = palyra(daemon.home, *arguments, "--json", cwd=daemon.workspace, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ask_prints_the_answer_and_nothing_else(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "ask", "anything", cwd=daemon.workspace)
    assert (done.returncode, done.stdout) == (0, "the answer\n")


def test_ask_adds_what_is_piped_in_to_the_question(daemon: DaemonProcess) -> None:
    asked = _ok(daemon, "ask", "read", "this", stdin="line one\nline two\n")
    entries = daemon.get(f"/v1/sessions/{asked['session_id']}/entries")["entries"]
    assert [e["event"]["text"] for e in entries if e["kind"] == "input.received"] == [
        "read this\n\n```\nline one\nline two\n```"
    ]
    assert asked["text"] == "the answer"


def test_ask_says_what_it_waits_for_when_its_input_is_left_open(daemon: DaemonProcess) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "palyra.cli.main", "ask", "hello"], cwd=daemon.workspace, env=environment(daemon.home),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as asking:  # fmt: skip
        assert asking.stdin is not None
        assert asking.stderr is not None
        assert "< /dev/null" in asking.stderr.readline()
        asking.stdin.close()
        assert asking.wait(LONGEST_S) == 0


def test_ask_speaks_of_undo_only_where_something_can_be_undone(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "ask", "look", cwd=daemon.workspace)
    assert (done.returncode, done.stdout) == (0, "looked\n")
    assert "✓ shell.run ls" in done.stderr
    assert "undo" not in done.stderr


def test_ask_denies_without_a_terminal_and_says_so(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "ask", "write", cwd=daemon.workspace)
    assert (done.returncode, done.stdout) == (1, "I will write\nwritten\n")
    assert "denied, because there is no terminal to approve it on" in done.stderr
    assert "palyra chat --session" in done.stderr
    assert not (daemon.workspace / "a.txt").exists()


def test_ask_will_not_ask_where_there_is_no_terminal(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "ask", "write", "--approve", "ask", cwd=daemon.workspace)
    assert done.returncode == 2
    assert "no terminal" in done.stderr


def test_ask_asks_on_the_terminal_also_when_a_question_is_piped_in(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / "question").write_text("write\n")
    command = (
        f"{sys.executable} -m palyra.cli.main ask < {tmp_path / 'question'} > {tmp_path / 'answer'}"
    )
    with _shell(daemon, command, tmp_path) as shown:
        shown.expect("Approve fs.write: create a.txt")
        shown.expect(r"\[q\]uit › ")
        shown.type("\n")
        shown.expect("nothing was decided")
        shown.type("y\n")
        shown.expect("✓ fs.write a.txt")
        assert shown.ends() == 0
    assert (tmp_path / "answer").read_text() == "I will write\nwritten\n"


def _shell(daemon: DaemonProcess, command: str, cwd: Path) -> Any:
    return terminal(daemon.home, cwd=cwd, program=["/bin/sh", "-c", command])


def test_a_run_that_fails_is_exit_code_1_with_its_reason(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "ask", "broken", cwd=daemon.workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: failed" in done.stderr
    shown = palyra(daemon.home, "ask", "broken", "--json", cwd=daemon.workspace)
    assert shown.returncode == 1
    assert json.loads(shown.stdout)["reason"] == "model_auth"


def test_an_interrupted_ask_stops_its_run(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    with daemons.start(tmp_path, script={"*": [{"text": "never", "hold": str(hold)}]}) as daemon:
        process = subprocess.Popen(
            [sys.executable, "-m", "palyra.cli.main", "ask", "go"],
            cwd=daemon.workspace,
            env=environment(daemon.home),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + LONGEST_S
        while not (tmp_path / "hold.reached").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)  # Another process's file: there is nothing to wait on but the clock.
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LONGEST_S)
        assert (process.returncode, said) == (130, b"error: interrupted; the run was stopped\n")
        session_id = daemon.get("/v1/sessions")["sessions"][0]["session_id"]
        assert daemon.get(f"/v1/sessions/{session_id}/runs")["runs"][0]["state"] == "cancelled"


def test_an_interrupt_that_gets_lost_on_its_way_stops_the_run_all_the_same(tmp_path: Path) -> None:
    # Python drops an exception that a signal raises in the middle of a callback of its own, as at
    # the end of an import.
    drops = """
import os, signal, sys
from palyra.cli import follow_run as asking, main
real = asking.decode
def dropping(message):
    item = real(message)
    if getattr(item, "kind", "") == "run.started":
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        except KeyboardInterrupt:
            pass
    return item
asking.decode = dropping
sys.exit(main.main(["ask", "go"]))
"""
    with daemons.start(
        tmp_path, script={"*": [{"text": "never", "hold": str(tmp_path / "hold")}]}
    ) as daemon:
        done = subprocess.run(
            [sys.executable, "-c", drops],
            cwd=daemon.workspace,
            env=environment(daemon.home),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LONGEST_S,
        )
        assert (done.returncode, done.stderr) == (130, b"error: interrupted; the run was stopped\n")


def test_an_interrupt_while_the_question_is_on_its_way_stops_the_run(tmp_path: Path) -> None:
    late = """
import sys
from functools import partial
from palyra.cli import lookup, main
from palyra.client import Client
submit, cancel, on_its_way = lookup.submit, Client.cancel, []
def interrupted(*given, **more):
    on_its_way.append(partial(submit, *given, **more))
    raise KeyboardInterrupt
def overtaking(*given, **more):
    try:
        return cancel(*given, **more)
    finally:
        while on_its_way:
            on_its_way.pop()()
lookup.submit, Client.cancel = interrupted, overtaking
sys.exit(main.main(["ask", "go"]))
"""
    with daemons.start(
        tmp_path, script={"*": [{"text": "never", "hold": str(tmp_path / "hold")}]}
    ) as daemon:
        done = subprocess.run(
            [sys.executable, "-c", late],
            cwd=daemon.workspace,
            env=environment(daemon.home),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LONGEST_S,
        )
        assert (done.returncode, done.stderr) == (130, b"error: interrupted; the run was stopped\n")
        session_id = daemon.get("/v1/sessions")["sessions"][0]["session_id"]
        assert [run["state"] for run in daemon.get(f"/v1/sessions/{session_id}/runs")["runs"]] == [
            "cancelled"
        ]


def test_ask_survives_a_daemon_that_is_killed_and_started_again(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    with daemons.start(tmp_path, script={"*": [{"text": "at last", "hold": str(hold)}]}) as daemon:
        process = subprocess.Popen(
            [sys.executable, "-m", "palyra.cli.main", "ask", "go"],
            cwd=daemon.workspace,
            env=environment(daemon.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        deadline = time.monotonic() + LONGEST_S
        while not (tmp_path / "hold.reached").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)  # Another process's file: there is nothing to wait on but the clock.
        daemon.kill()
        hold.touch()
        daemon.restart()
        answer, _ = process.communicate(timeout=LONGEST_S)
        assert (process.returncode, answer) == (0, b"at last\n")


def test_watching_has_no_gap_and_no_duplicate_across_a_kill(tmp_path: Path) -> None:
    with daemons.start(
        tmp_path, script={"*": [{"text": f"answer {n}"} for n in range(9)]}
    ) as daemon:
        session_id, _ = daemon.run("one")
        api = Client.over(Api(lambda: discovery.discover(daemon.home, {})))
        head = daemon.get("/v1/sessions")["sessions"][0]["head_seq"]
        seen: list[int] = []
        links: list[str] = []
        for message in lookup.watch(api, session_id, 2, StopSignal(), patience_s=20):
            if isinstance(message, LinkState):
                links.append(message.state)
            elif message.id:
                seen.append(int(message.id))
            if seen and seen[-1] == head and links == ["up"]:
                daemon.kill()
                daemon.restart()
                daemon.run("two", session_id)
                head = daemon.get("/v1/sessions")["sessions"][0]["head_seq"]
            elif seen and seen[-1] == head:
                break
    assert seen == list(range(3, head + 1))
    assert (links[0], set(links[1:-1]), links[-1]) == ("up", {"lost"}, "up")


def test_ask_starts_a_daemon_that_stays_and_two_at_once_share_one(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text("x\n")
    env = {**environment(home), "PALYRA_SERVER__HTTP_PORT": "0"}
    words = [sys.executable, "-m", "palyra.cli.main", "ask", "--final", "what is in this folder?"]
    try:
        asked = [
            subprocess.Popen(
                words, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        said = [each.communicate(timeout=LONGEST_S) for each in asked]
        assert [each.returncode for each in asked] == [0, 0], said
        assert all("notes.md" in out for out, _ in said)
        assert any("palyra stop --daemon" in err for _, err in said)
        running = discovery.running(home)
        assert running is not None
        again = palyra(home, "ask", "what is in this folder?", cwd=work)
        assert (again.returncode, "Started" in again.stderr) == (0, False)
    finally:
        palyra(home, "stop", "--daemon")
    assert discovery.running(home) is None


def test_ask_starts_nothing_where_another_place_is_named(tmp_path: Path) -> None:
    env = {**environment(tmp_path / "home"), "PALYRA_URL": "http://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "ask", "hello"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 5
    assert not (tmp_path / "home" / "daemon.json").exists()
