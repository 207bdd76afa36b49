"""Keys and names on a real terminal: an approval answered by one key, a command of the person's own,
sessions by number and name.
"""

from pathlib import Path
from typing import Any

from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

PROMPT = "› "
CHOICES = r"\[y\]es once .* \[q\]uit › "
WRITE = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x\n"}}
SECOND = {"name": "fs.write", "arguments": {"path": "b.txt", "content": "x\n"}}
LONG = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "line\n" * 90}}
SEND = {"name": "shell.run", "arguments": {"command": "rm -rf build"}}


def _events(daemon: DaemonProcess, kind: str) -> list[dict[str, Any]]:
    found = daemon.get("/v1/sessions")["sessions"][0]["session_id"]
    entries = daemon.get(f"/v1/sessions/{found}/entries?limit=1000")["entries"]
    return [entry["event"] for entry in entries if entry["kind"] == kind]


def test_one_key_answers_without_enter(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE]}, {"text": "written"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("go")
        chat.expect(r"\? Approve fs.write: create a.txt")
        chat.expect(CHOICES)
        chat.type("d")
        chat.expect("policy: default-ask")
        chat.expect(r"a wider approval can cover 1\. fs.write on")
        chat.expect(CHOICES)
        chat.type("y")
        chat.expect("fs.write: allowed")
        chat.expect("written")
        assert (daemon.workspace / "a.txt").read_text() == "x\n"


def _together(daemon: DaemonProcess, chat: Any) -> None:
    chat.expect(PROMPT)
    chat.line("go")
    chat.expect(r"\? Approve fs.write: create a.txt")
    chat.expect(r"2\. fs.write: create b.txt")
    chat.expect(r"\[\+\] all 2 .* \[-\] none of 2")
    chat.expect(PROMPT)


def test_one_key_answers_all_calls_of_a_turn(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE, SECOND]}, {"text": "written"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _together(daemon, chat)
        chat.type("+")
        chat.expect("written")
        assert (daemon.workspace / "a.txt").read_text() == "x\n"
        assert (daemon.workspace / "b.txt").read_text() == "x\n"


def test_one_key_denies_all_calls_of_a_turn(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE, SECOND]}, {"text": "left alone"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _together(daemon, chat)
        chat.type("-")
        chat.expect("left alone")
        assert not list(daemon.workspace.glob("*.txt"))


def test_calls_of_a_turn_are_answered_one_by_one_by_a_key_each(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE, SECOND]}, {"text": "half done"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        _together(daemon, chat)
        chat.type("y")
        chat.expect(r"\? Approve fs.write: create b.txt")
        chat.expect(CHOICES)
        chat.type("n")
        chat.expect("reason for the agent")
        chat.line("")
        chat.expect("half done")
        assert (daemon.workspace / "a.txt").exists()
        assert not (daemon.workspace / "b.txt").exists()


def test_a_wider_yes_takes_a_key_and_a_number(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE]}, {"calls": [SECOND]}, {"text": "written"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("go")
        chat.expect(CHOICES)
        chat.type("s")
        chat.expect(r"2\. fs.write on")
        chat.expect(r"which\? \(1-3")
        chat.type("2")
        chat.expect("allowed for this session")
        chat.expect("written")
        assert len(_events(daemon, "approval.requested")) == 1


def test_a_risky_yes_needs_enter(tmp_path: Path) -> None:
    script = {"*": [{"calls": [SEND]}, {"text": "not done"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("go")
        chat.expect("High risk")
        chat.expect(CHOICES)
        chat.type("y")
        chat.expect("y")
        chat.type("\x03")
        chat.type("n")
        chat.expect("reason for the agent")
        chat.line("")
        chat.expect("not done")
        assert [each["decision"] for each in _events(daemon, "approval.resolved")] == ["deny"]


def test_what_does_not_fit_the_screen_is_looked_at_before_a_yes(tmp_path: Path) -> None:
    script = {"*": [{"calls": [LONG]}, {"text": "written"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("go")
        chat.expect("lines not shown")
        chat.expect(r"\[v\]iew all .* › ")
        chat.type("y")
        chat.expect("only a part of it was shown")
        chat.expect(r"\[v\]iew all .* › ")
        chat.type("v")
        chat.expect("that is all of it")
        chat.expect(CHOICES)
        chat.type("y")
        chat.expect("written")


def test_an_edited_path_is_allowed_for_the_session(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/a\\.txt/c.txt/' \"$1\"\n")
    editor.chmod(0o700)
    script = {"*": [{"calls": [WRITE]}, {"text": "written"}]}
    env = {"EDITOR": str(editor), "VISUAL": ""}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace, env=env) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("go")
        chat.expect(CHOICES)
        chat.type("e")
        chat.expect(r"allow with these arguments\? .*discard › ")
        chat.type("s")
        chat.expect(r"1\. fs.write on \S*/c.txt")
        chat.expect(r"which\? \(1-3")
        chat.type("1")
        chat.expect("allowed for this session, with edited arguments")
        chat.expect("written")
        assert (daemon.workspace / "c.txt").exists()
        (resolved,) = _events(daemon, "approval.resolved")
        assert resolved["subject"]["value"].endswith("/c.txt")


def test_ask_is_answered_by_one_key_too(tmp_path: Path) -> None:
    script = {"*": [{"calls": [WRITE]}, {"text": "written"}]}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "ask", "go", cwd=daemon.workspace) as shown,
    ):
        shown.expect(CHOICES)
        shown.type("y")
        shown.expect("written")
        assert shown.ends() == 0
    assert (daemon.workspace / "a.txt").exists()


def test_a_typed_command_runs_is_shown_and_is_part_of_the_session(tmp_path: Path) -> None:
    script = {"*": [{"text": "I saw it"}] * 4}
    with (
        daemons.start(tmp_path, script=script) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("!echo $((40 + 2)) > answer.txt; cat answer.txt")
        chat.expect("✓ shell.run echo")
        chat.expect("exit code 0")
        chat.expect("42")
        chat.expect(PROMPT)
        chat.line("go on")
        chat.expect("I saw it")
        assert (daemon.workspace / "answer.txt").read_text() == "42\n"
        (proposed,) = _events(daemon, "tool.proposed")
        assert proposed["arguments"] == {"command": "echo $((40 + 2)) > answer.txt; cat answer.txt"}
        (answered,) = _events(daemon, "approval.resolved")
        assert answered["decision"] == "allow"


def test_a_typed_command_that_policy_denies_does_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "policies"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "no.cedar").write_text(
        '@id("no-shell") @reason("no commands here")\n'
        'forbid (principal, action == Action::"run", resource == Tool::"shell.run");\n'
    )
    with (
        daemons.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("!touch made.txt")
        chat.expect("⊘ shell.run touch made.txt denied")
        chat.expect("no commands here")
        assert not (daemon.workspace / "made.txt").exists()


def test_sessions_have_numbers_and_names(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "the answer"}] * 5}) as daemon:

        def cli(*arguments: str) -> Any:
            return palyra(daemon.home, *arguments, cwd=daemon.workspace)

        for text in ("plant tomatoes", "water the beans"):
            assert cli("ask", text).returncode == 0
        first, second = cli("sessions").stdout.splitlines()[1:]
        assert (first.split()[0], second.split()[0]) == ("#2", "#1")
        assert "plant tomatoes" in second
        assert cli("sessions", "title", "1", "Garden plan").returncode == 0
        for given in ("1", "#1", "garden plan", "Garden", "plan"):
            assert "› plant tomatoes" in cli("sessions", "show", given).stdout, given
        assert cli("ask", "--session", "garden", "and now?").returncode == 0
        assert "› and now?" in cli("sessions", "show", "1").stdout
        assert cli("ask", "--continue", "still there?").returncode == 0
        assert "› still there?" in cli("sessions", "show", "1").stdout
        missing = cli("sessions", "show", "9")
        assert (missing.returncode, "there is no session #9" in missing.stderr) == (3, True)
        several = cli("sessions", "show", "a")
        assert several.returncode == 2
        assert "give a number" in several.stderr


def test_the_menu_offers_sessions_by_name(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "the answer"}]}) as daemon:
        palyra(daemon.home, "ask", "plant tomatoes", cwd=daemon.workspace)
        palyra(daemon.home, "ask", "water the beans", cwd=daemon.workspace)
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.expect(PROMPT)
            chat.type("/session toma")
            chat.expect("/session #1 .*plant tomatoes")
            chat.type("\t\r\r")
            chat.expect("plant tomatoes  session [0-9A-Z]{26}")
            chat.expect("› plant tomatoes")


def test_a_near_chat_command_is_suggested(tmp_path: Path) -> None:
    with (
        daemons.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace) as chat,
    ):
        chat.expect(PROMPT)
        chat.line("/modle")
        chat.expect(r"there is no command /modle: did you mean /model\?")
