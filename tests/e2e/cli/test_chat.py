"""The chat on a real terminal with a real daemon."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import WAIT_S, Terminal, palyra, terminal
from tests.daemon import DaemonProcess

# What stands below the line.
STATUS = r"\n[^\n]* · [^\n]*"
PROMPT = r"› "
CHOICES = r"\[y\]es once .* \[q\]uit › "
_FOLDED = r"\[y\]es once [^›]*\[q\]uit"


def _until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.005)  # Another process's file: there is nothing to wait on but the clock.


def _session(daemon: DaemonProcess) -> str:
    return str(daemon.get("/v1/sessions")["sessions"][0]["session_id"])


def _kinds(daemon: DaemonProcess, kind: str) -> list[dict[str, Any]]:
    entries = daemon.get(f"/v1/sessions/{_session(daemon)}/entries?limit=1000")["entries"]
    return [entry["event"] for entry in entries if entry["kind"] == kind]


def _say(chat: Terminal, text: str) -> None:
    chat.expect(PROMPT)
    chat.line(text)


def test_a_change_is_shown_approved_made_and_undone(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect("New session  session [0-9A-Z]{26}")
        _say(chat, "create hello.txt with the text good morning")
        chat.expect(r"\? Approve fs.write: create hello.txt")
        chat.expect("Low risk · changes hello.txt, can be undone")
        chat.expect(r"\+good morning")
        chat.expect(CHOICES)
        assert not (daemon.workspace / "hello.txt").exists()
        chat.line("y")
        chat.expect("fs.write: allow")
        chat.expect(r"✓ fs.write hello.txt +\d+ ms")
        chat.expect(r"\+ hello.txt")
        chat.expect(PROMPT)
        assert (daemon.workspace / "hello.txt").read_text().strip() == "good morning"
        chat.line("/undo")
        chat.expect("undone:")
        chat.expect("- hello.txt")
        assert not (daemon.workspace / "hello.txt").exists()
        chat.line("/why")
        chat.expect("decided: ask by default-ask")
        chat.expect("answered: allow")
        chat.expect("undone since")
        chat.line("/quit")
        assert chat.ends() == 0


def test_a_denial_reaches_the_model_with_its_reason(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "create hello.txt with the text hi")
        chat.expect(CHOICES)
        chat.line("n")
        chat.expect("reason for the agent")
        chat.line("not today")
        chat.expect("⊘ fs.write hello.txt denied")
        chat.expect("not today")
        assert not (daemon.workspace / "hello.txt").exists()
        assert [event["reason"] for event in _kinds(daemon, "approval.resolved")] == ["not today"]


def test_enter_alone_and_nonsense_decide_nothing(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "create hello.txt with the text hi")
        for given in ("", "maybe", "t", "Y E S", "yes but not here", "a moment please", ""):
            chat.expect(CHOICES)
            chat.line(given)
            if given == "t":
                chat.expect("for how long")
                chat.line("some time")
            chat.expect("nothing was decided")
        assert _kinds(daemon, "approval.resolved") == []
        assert not (daemon.workspace / "hello.txt").exists()


def test_a_wider_yes_covers_the_next_call_and_names_what_it_covers(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "create hello.txt with the text hi")
        chat.expect(CHOICES)
        chat.line("s")
        chat.expect(r"which\? \(1-\d")
        chat.line("")
        chat.expect("nothing was decided")
        chat.expect(CHOICES)
        chat.line("s")
        chat.expect(r"which\? \(1-\d")
        chat.line("1")
        chat.expect("fs.write: allowed for this session")
        chat.expect("✓ fs.write")
        (resolved,) = _kinds(daemon, "approval.resolved")
        assert resolved["scope"] == "session"
        assert resolved["subject"]["kind"] == "path_prefix"


def test_a_chat_stays_quick_while_a_long_text_is_pasted(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.type("\x1b[200~" + "a line of pasted text\r" * 10_000 + "the end\x1b[201~")
        chat.expect("the end")
        chat.type("\x15/help\r")
        chat.expect("/interrupt TEXT")


def test_the_choices_are_also_shown_on_a_narrow_terminal(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace, columns=40) as chat,
    ):
        _say(chat, "create hello.txt with the text hi")
        chat.expect(_FOLDED)
        chat.expect(PROMPT)
        chat.line("y")
        chat.expect("✓ fs.write")


def test_no_word_is_broken_on_a_narrow_terminal(tmp_path: Path) -> None:
    """Not of the model, not of the question, not of what we say ourselves."""
    script = {
        "*": [
            {
                "text": "extraordinarily " * 9,
                "calls": [{"name": "fs.write", "arguments": {"path": "a", "content": "x"}}],
            }
        ]
    }
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace, columns=44) as chat,
    ):
        _say(chat, "go")
        chat.expect(_FOLDED)
        chat.expect(PROMPT)
        chat.line("yes but where")
        chat.expect("your words")
        chat.line("/help")
        chat.expect(r"your next message is\s+queued")
        chat.line("/why")
        chat.expect("asked: risk low")
        shown = chat.screen
    # A terminal breaks what is too long for it, wherever that is.
    assert sum(line.count("extraordinarily") for line in shown) == 9
    said = "\n".join(shown)
    assert re.search(r"what\s+to\s+do\s+instead", said)
    assert re.search(r"interrupt\s+the\s+run\s+and\s+make\s+it\s+read\s+this\s+first", said)


def test_arguments_can_be_edited_before_a_yes(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/good morning/good night/' \"$1\"\n")
    editor.chmod(0o700)
    with (
        daemons.start(tmp_path) as daemon,
        terminal(
            daemon.home, "chat", cwd=daemon.workspace, env={"EDITOR": str(editor), "VISUAL": ""}
        ) as chat,
    ):
        _say(chat, "create hello.txt with the text good morning")
        chat.expect(CHOICES)
        chat.line("e")
        chat.expect(r"-good morning\s+\+good night")
        chat.expect(r"allow with these arguments\? \[y\]es once")
        chat.line("")
        chat.expect("nothing was decided")
        chat.expect(CHOICES)
        chat.line("e")
        chat.expect(r"allow with these arguments\? \[y\]es once")
        chat.line("y")
        chat.expect("✓ fs.write")
        assert (daemon.workspace / "hello.txt").read_text().strip() == "good night"
        chat.expect(PROMPT)
        chat.line("/why")
        chat.expect("the arguments were edited")
        chat.expect(r"-good morning\s+\+good night")
        assert (
            "with edited arguments"
            in palyra(daemon.home, "journal", "show", _session(daemon)).stdout
        )


def test_ctrl_c_stops_the_run_and_twice_leaves(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    script = {"*": [{"text": ["one ", "two ", "three"], "hold": str(hold), "hold_after": 2}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.expect("one two")
        chat.type("\x03")
        chat.expect("stopped: stopped in the chat")
        chat.expect(PROMPT)
        _until(lambda: daemon.get("/v1/status")["runs_working"] == 0, "that nobody works on it")
        chat.type("\x03\x03\x03")
        assert chat.ends() == 0


def test_what_is_typed_while_a_run_works_is_queued_behind_it(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    script = {
        "first": [{"text": ["one ", "done"], "hold": str(hold), "hold_after": 1}],
        "second": [{"text": "the second answer"}],
    }
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "first")
        chat.expect("one")
        chat.line("second")
        chat.expect("queued")
        hold.touch()
        chat.expect("done")
        chat.expect("the second answer")


def test_what_the_model_says_while_a_line_is_written_stands_above_it(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    script = {"*": [{"text": ["one ", "two\nthree ", "four"], "hold": str(hold), "hold_after": 1}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.shows(f"› go\n\none\n… working .*{STATUS}")
        chat.type("my draft")
        chat.shows(f"› go\n\none\n› my draft{STATUS}")
        hold.touch()
        chat.shows(f"› go\n\none two\nthree four\n\n› my draft{STATUS}")


@pytest.mark.parametrize(
    ("keys", "seen"), [("yes", f"› yes{STATUS}"), ("\x12g", "› go\n.*search.*: g")]
)
def test_no_approval_is_asked_while_a_line_is_written_or_searched_for(
    tmp_path: Path, keys: str, seen: str
) -> None:
    hold = tmp_path / "hold"
    call = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}
    script = {
        "*": [
            {"text": ["wait ", "on"], "calls": [call], "hold": str(hold), "hold_after": 1},
            {"text": "over"},
        ]
    }
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.expect("wait")
        chat.type(keys)
        chat.shows(f"wait\n{seen}")
        hold.touch()
        _until(lambda: daemon.get("/v1/approvals")["approvals"], "the approval")
        chat.shows(f"wait on\n{seen}")
        chat.type("\x03")
        chat.expect(CHOICES)
        chat.line("y")
        chat.expect("over")


def test_a_message_waits_for_a_daemon_that_is_away_and_ctrl_c_takes_it_back(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "the answer"}]}) as daemon:
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.shows(f"\n›{STATUS}")
            daemon.kill()
            chat.line("not this")
            chat.shows(f"… waiting for the daemon{STATUS}")
            chat.type("\x03")
            chat.shows(f"error: .*\n(?:.*\n)*›{STATUS}")
            chat.line("but this")
            chat.shows(f"… waiting for the daemon{STATUS}")
            chat.type("and a draft")
            daemon.restart()
            chat.shows(f"the answer\n\n› and a draft{STATUS}")
        assert [event["text"] for event in _kinds(daemon, "input.received")] == ["but this"]


def test_steering_joins_the_run(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    script = {"*": [{"text": "first try", "hold": str(hold)}, {"text": "with your hint"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        _until(lambda: hold.with_name("hold.reached").exists(), "the model's turn")
        chat.line("/steer try it this way")
        chat.expect("handed to the run")
        hold.touch()
        chat.expect("with your hint")
        assert [event.get("mode", "followup") for event in _kinds(daemon, "input.received")] == [
            "followup",
            "steer",
        ]


def test_a_chat_survives_kill_9_and_shows_the_rest_exactly_once(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    words = ["alpha ", "beta ", "gamma ", "delta"]
    script = {"*": [{"text": words, "hold": str(hold), "hold_after": 2}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.expect("alpha beta")
        daemon.kill()
        chat.expect("Connection lost")
        hold.touch()
        daemon.restart()
        chat.expect("Reconnected")
        shown = chat.shows(f"gamma delta\n\n›{STATUS}")
        assert [sum(word.strip() in line for line in shown) for word in words] == [1, 1, 1, 1], (
            shown
        )
        chat.line("/quit")
        assert chat.ends() == 0


def test_an_approval_from_before_a_crash_is_put_to_the_person_when_a_chat_opens(
    tmp_path: Path,
) -> None:
    with daemons.start(tmp_path) as daemon:
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            _say(chat, "create hello.txt with the text hi")
            chat.expect(CHOICES)
            chat.line("q")
            chat.expect("stays pending")
            assert chat.ends() == 0
        daemon.kill()
        daemon.restart()
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.expect("an approval is pending from before")
            chat.expect(r"\? Approve fs.write: create hello.txt")
            chat.expect(CHOICES)
            chat.line("y")
            chat.expect("✓ fs.write")
        assert (daemon.workspace / "hello.txt").exists()


def test_keys_typed_before_the_question_was_shown_are_not_its_answer(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    call = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}
    script = {
        "*": [
            {"text": ["wait ", "on"], "calls": [call], "hold": str(hold), "hold_after": 1},
            {"text": "over"},
        ]
    }
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.expect("wait")
        chat.type("y")
        chat.expect("› y")
        # The rest of the line and the question are both there when the chat looks again.
        chat.signal(signal.SIGSTOP)
        chat.line("")
        hold.touch()
        _until(lambda: daemon.get("/v1/approvals")["approvals"], "the approval")
        chat.signal(signal.SIGCONT)
        chat.expect("queued")
        chat.expect(CHOICES)
        assert daemon.get("/v1/approvals")["approvals"]
        assert not (daemon.workspace / "a.txt").exists()


def test_hostile_model_output_cannot_command_the_terminal(tmp_path: Path) -> None:
    hostile = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\u202edne\x9b31mf"
    script = {"*": [{"text": list(hostile)}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _say(chat, "go")
        chat.expect(re.escape(r"a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\u202edne\x9b31mf"))
        assert "\x1b]52" not in chat.raw
        assert "\u202e" not in chat.raw


def test_a_session_is_resumed_renamed_branched_reset_and_begun_anew(tmp_path: Path) -> None:
    with daemons.start(
        tmp_path, script={"*": [{"text": f"answer {n}"} for n in range(9)]}
    ) as daemon:
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            first = chat.expect("session ([0-9A-Z]{26})")[1]
            _say(chat, "first question")
            chat.expect("answer 0")
            chat.expect(PROMPT)
            chat.line("/title My own title")
            chat.expect("the title is now: My own title")
            chat.line("/quit")
            assert chat.ends() == 0
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.expect(f"My own title  session {first}")
            chat.expect("first question")
            chat.expect("answer 0")
            _say(chat, "/branch")
            branched = chat.expect("My own title \\(branch\\)  session ([0-9A-Z]{26})")[1]
            _say(chat, "again")
            chat.expect("answer 1")
            _say(chat, "/reset")
            chat.expect("the session was reset")
            _say(chat, "/new")
            chat.expect(f"session (?!{first}|{branched})[0-9A-Z]{{26}}")
            _say(chat, "/sessions")
            chat.expect(r"#1 .*My own title")
            _say(chat, "/model")
            chat.expect(r"\*  1  scripted/s1")
            _say(chat, "/usage")
            chat.expect("model calls")
            _say(chat, "/nonsense")
            chat.expect("there is no command /nonsense")
            _say(chat, "/help")
            chat.expect("/interrupt TEXT")


def test_the_terminal_is_put_back_when_the_chat_is_ended_from_outside(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        before = chat.modes
        chat.shows(f"› ?{STATUS}")
        assert chat.modes != before
        chat.signal(signal.SIGTERM)
        assert chat.ends() == 128 + signal.SIGTERM
        assert chat.raw.rfind("\x1b[?2004l") > chat.raw.rfind("\x1b[?2004h")
        assert chat.modes == before


def test_a_chat_without_a_terminal_says_what_to_use(tmp_path: Path) -> None:
    with daemons.start(tmp_path) as daemon:
        done = palyra(daemon.home, "chat", cwd=daemon.workspace)
    assert (done.returncode, done.stdout) == (2, "")
    assert "palyra ask" in done.stderr


def test_up_starts_a_daemon_chats_and_ends_it_with_the_chat(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with terminal(home, "up", "--no-setup", "--port", "0", cwd=work) as chat:
        chat.expect("Starting Palyra")
        chat.expect("Palyra stops with this chat")
        _say(chat, "hello")
        chat.expect("(?i)hello|hi")
        chat.expect(PROMPT)
        pid = int(palyra(home, "--json", "up", "--detach").stdout.split('"pid": ')[1].split(",")[0])
        chat.type("\x04")
        chat.expect("Palyra stopped")
        assert chat.ends() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_daemon_that_up_started_does_not_outlive_a_chat_that_was_killed(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with terminal(home, "up", "--no-setup", "--port", "0", cwd=work) as chat:
        chat.shows(f"›{STATUS}")
        chat.signal(signal.SIGKILL)
        chat.ends()
    _until(lambda: not (home / "daemon.json").exists(), "the daemon's end")
