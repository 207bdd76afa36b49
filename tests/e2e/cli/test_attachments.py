"""References and files on the command line: sent with `ask` and in a chat, previewed, completed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palyra.cli import attachments
from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

PROMPT = r"› "
SCRIPT = {"*": [{"text": "the answer"}]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemons.start(tmp_path_factory.mktemp("daemon"), script=SCRIPT) as started:
        (started.workspace / "my notes.txt").write_text("one\ntwo\n")
        yield started


def inputs(daemon: DaemonProcess, session_id: str) -> list[dict[str, Any]]:
    entries = daemon.get(f"/v1/sessions/{session_id}/entries")["entries"]
    return [entry["event"] for entry in entries if entry["kind"] == "input.received"]


def test_ask_sends_files_and_what_is_named(daemon: DaemonProcess, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("attached words\n")
    arguments = ("ask", "look at @file:'my notes.txt'", "-f", str(tmp_path / "a.txt"), "--json")
    done = palyra(daemon.home, *arguments, cwd=daemon.workspace)
    assert done.returncode == 0, done.stderr
    (sent,) = inputs(daemon, json.loads(done.stdout)["session_id"])
    assert sent["references"][0]["text"] == "one\ntwo\n"
    assert (sent["attachments"][0]["name"], sent["attachments"][0]["text"]) == (
        "a.txt",
        "attached words\n",
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("ask", "hi", "-f", "nope.txt"), "there is no file 'nope.txt'"),
        (("ask", "hi", "-f", "."), "'.' is not a file"),
        (
            ("ask", "see @file:nope.txt"),
            "@file:nope.txt: nope.txt: there is no such file or folder; nothing was sent",
        ),
    ],
)
def test_what_cannot_be_sent_is_said_in_one_line(
    daemon: DaemonProcess, arguments: tuple[str, ...], why: str
) -> None:
    before = daemon.get("/v1/sessions")["sessions"]
    done = palyra(daemon.home, *arguments, cwd=daemon.workspace)
    assert done.returncode != 0
    assert done.stdout == ""
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    if "-f" in arguments:
        assert daemon.get("/v1/sessions")["sessions"] == before


def test_what_is_piped_in_names_nothing(daemon: DaemonProcess) -> None:
    done = palyra(
        daemon.home,
        "ask",
        "explain",
        "--json",
        cwd=daemon.workspace,
        stdin="see @file:/etc/passwd\n",
    )
    assert done.returncode == 0, done.stderr
    assert "references" not in inputs(daemon, json.loads(done.stdout)["session_id"])[0]


def test_refs_preview_says_what_each_would_bring(daemon: DaemonProcess) -> None:
    good = palyra(daemon.home, "refs", "preview", 'see @file:"my notes.txt"', cwd=daemon.workspace)
    assert good.returncode == 0, good.stderr
    assert '✓ @file:"my notes.txt"  8 bytes, ' in good.stdout
    bad = palyra(daemon.home, "refs", "preview", "@file:nope.txt", cwd=daemon.workspace)
    assert bad.returncode == 1
    assert "✗ @file:nope.txt  nope.txt: there is no such file or folder" in bad.stdout
    none = palyra(daemon.home, "refs", "preview", "me@example.org", cwd=daemon.workspace)
    assert (none.returncode, none.stdout) == (0, "it names nothing\n")


def test_a_chat_completes_references_and_attaches_files(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("attached words\n")
    with terminal(daemon.home, "chat", "--new", cwd=daemon.workspace) as chat:
        chat.expect(PROMPT)
        chat.line(f"/attach {tmp_path / 'a.txt'}")
        chat.expect("a.txt: 15 characters of text; it goes with what you say next")
        chat.expect(PROMPT)
        chat.type("see @fi\tmy\t\r")
        chat.expect("the answer")
        session_id = daemon.get("/v1/sessions")["sessions"][0]["session_id"]
        chat.line("/quit")
        assert chat.ends() == 0
    (sent,) = inputs(daemon, session_id)
    assert sent["text"].strip() == r"see @file:my\ notes.txt"
    assert sent["references"][0]["target"] == "my notes.txt"
    assert sent["attachments"][0]["name"] == "a.txt"


def test_kinds_and_paths_are_completed_as_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a (1).py").write_text("")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "top.txt").write_text("")

    def complete(text: str) -> list[str]:
        return attachments.complete(text, str(tmp_path))

    assert complete("see @f") == ["see @file:", "see @folder:"]
    assert complete("@s") == ["@staged"]
    assert complete("@file:") == ["@file:src/", "@file:top.txt"]
    assert complete("x @folder:") == ["x @folder:src/"]
    assert complete("@file:src/a") == [r"@file:src/a\ \(1\).py"]
    assert complete(r"@file:src/a\ ") == [r"@file:src/a\ \(1\).py"]
    assert complete("@file:.h") == ["@file:.hidden"]
    for nothing in (
        "me@f",
        "@@f",
        "@url:h",
        '@file:"a',
        "@file:../",
        "@file:/etc/",
        "@file:nope/",
        "plain",
        "",
    ):
        assert complete(nothing) == []
