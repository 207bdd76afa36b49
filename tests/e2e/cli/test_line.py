"""The line that is being written in a chat, on a real terminal: keys in, messages out, and what a
person sees meanwhile.
"""

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli_terminal import Terminal, terminal

PROGRAM = [sys.executable, "-m", "tests.line_program"]
# Ended by a signal as soon as the line is on the screen, while it is still being drawn.
_ENDED = """
import io, os, runpy, signal, sys

class Drawn(io.BufferedWriter):
    line = False

    def write(self, data):
        self.line = self.line or b"?2004h" in data
        return super().write(data)

class Screen(io.TextIOWrapper):
    def flush(self):
        super().flush()
        if self.buffer.line:
            self.buffer.line = False
            os.kill(os.getpid(), signal.SIGTERM)

def leave(number, frame):
    raise SystemExit(128 + number)

signal.signal(signal.SIGTERM, leave)
sys.stdout = Screen(Drawn(io.FileIO(1, "wb", closefd=False)), encoding="utf-8")
runpy.run_module("tests.line_program", run_name="__main__")
"""
ROOT = Path(__file__).parents[3]


@contextmanager
def opened(folder: Path, *history: str, columns: int = 80) -> Iterator[Terminal]:
    env = {"PYTHONPATH": str(ROOT)}
    with terminal(
        folder, cwd=folder, env=env, program=[*PROGRAM, *history], columns=columns
    ) as line:
        line.shows(">")
        yield line


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with opened(tmp_path_factory.mktemp("line")) as started:
        yield started


def test_the_terminal_is_put_back_when_a_signal_ends_the_first_drawing(tmp_path: Path) -> None:
    env, program = {"PYTHONPATH": str(ROOT)}, [sys.executable, "-c", _ENDED]
    with terminal(tmp_path, cwd=tmp_path, env=env, program=program) as line:
        before = line.modes
        assert line.ends() == 128 + signal.SIGTERM
        assert "\x1b[?2004h" in line.raw
        assert line.raw.rfind("\x1b[?2004l") > line.raw.rfind("\x1b[?2004h")
        assert line.screen == []
        assert line.modes == before


def entered(line: Terminal) -> str:
    return str(json.loads(line.expect(r"entered (\".*\")\s")[1]))


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\r", "hello"),
        ("hello\n", "hello"),
        ("helo\x1b[Dl\r", "hello"),
        ("world\x01hello \r", "hello world"),
        ("one two\x17three\r", "one three"),
        ("abc\x7f\x7f\r", "a"),
        ("abc\x1b[H\x1b[3~\r", "bc"),
        ("abc\x1b[1~\x04\r", "bc"),
        ("abc\x02\x0b!\r", "ab!"),
        ("one two\x1bb\x15three \r", "three two"),
        ("one\\\rtwo\r", "one\ntwo"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        ("one\x1b\rtwo\x15three\r", "three"),
        ("one\x1b\rtwo\x1b[A!\r", "one!\ntwo"),
        ("\x1b[200~first\rsecond\r\nthird\x1b[201~\r", "first\nsecond\nthird"),
        ("\x1b[200~/quit\r\x1b[201~ no\r", "/quit\n no"),
        ("naïve 漢字\x7f\r", "naïve 漢"),
        ("漢字\x1b[D\x1b[Da👍 \r", "a👍 漢字"),
        ("a\x1b[15~b\r", "ab"),
        ("draft\x03kept\r", "kept"),
    ],
)
def test_keys_become_the_message_they_mean(line: Terminal, keys: str, text: str) -> None:
    line.type(keys)
    assert entered(line) == text


def test_keys_that_arrive_in_pieces_mean_the_same(line: Terminal) -> None:
    for byte in "é漢\x1b[D\x1b[C!".encode():
        line.type_bytes(bytes([byte]))
        line.type("")
    line.type("\r")
    assert entered(line) == "é漢!"


def test_bytes_that_are_no_text_are_marked_and_do_no_harm(line: Terminal) -> None:
    line.type_bytes(b"a\xffb\r")
    assert entered(line) == "a\ufffdb"


def test_control_keys_in_an_empty_line_are_told_and_ctrl_d_leaves(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("\x03")
        line.expect("interrupted")
        line.type("x\x04")
        line.shows("> x")
        line.type("\x7f\x04")
        assert line.ends() == 0
        assert line.screen == ['interrupted ""']


def test_a_suspended_line_goes_on_as_it_was(tmp_path: Path) -> None:
    shell = ["/bin/bash", "--norc", "-i"]
    with terminal(
        tmp_path, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PS1": "shell: "}, program=shell
    ) as line:
        line.shows("shell:")
        line.line(" ".join(PROGRAM))
        line.shows("\n>")
        modes = line.modes
        line.type("draft\x1a")
        line.shows("Stopped.*\nshell:")
        assert line.modes != modes
        line.line("fg")
        line.shows("\n> draft")
        assert line.modes == modes
        line.type("!\r")
        assert entered(line) == "draft!"


def test_what_was_written_before_is_recalled_and_the_draft_comes_back(tmp_path: Path) -> None:
    with opened(tmp_path, "one", "two\nlines") as line:
        line.type("dra\x1b[A")
        line.shows("> two\n  lines")
        line.type("\x1b[A\x1b[A")
        line.shows("> one")
        line.type("\x1b[B\x1b[B\x1b[B\r")
        assert entered(line) == "dra"
        line.shows("\n>")
        line.type("\x10")
        line.shows("> dra")
        line.type("!\r")
        assert entered(line) == "dra!"


def test_the_history_is_searched_with_ctrl_r(tmp_path: Path) -> None:
    with opened(tmp_path, "list the files", "run the tests", "say hello") as line:
        line.type("\x12TEST")
        line.shows("> run the tests\n.*search.*TEST")
        line.type("\x7f\x7f\x7f\x7fthe")
        line.shows("> run the tests\n.*search.*the")
        line.type("\x12")
        line.shows("> list the files\n.*search.*the")
        line.type("\r")
        line.shows("> list the files")
        line.type("\r")
        assert entered(line) == "list the files"
        line.shows("\n>")
        # Ctrl-C leaves the search, not what was written.
        line.type("draft\x12hello")
        line.shows("search.*hello")
        line.type("\x03")
        line.shows("> draft")


def test_a_menu_opens_under_commands_and_references_and_tab_goes_through_it(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a (1).py").write_text("")
    with opened(tmp_path) as line:
        line.type("/se")
        shown = line.shows(r"> /se\n /session .*\n /sessions .*")
        assert "open another session" in shown[-2]
        line.type("\t")
        line.shows(r"> /session\n /session .*\n /sessions .*")
        line.type("\t\t")
        line.shows(r"> /sessions\n /session .*\n /sessions .*")
        # Enter takes what is chosen, and sends it only when it is pressed again.
        line.type("\r")
        line.shows("> /sessions")
        line.type("\r")
        assert entered(line) == "/sessions"
        line.shows("\n>")
        line.type("see @f")
        line.shows(r"> see @f\n @file: .*\n @folder: .*")
        line.type("il\tsr\t")
        line.shows(r"> see @file:src/\n @file:src/a.*\n @file:src/deep/")
        line.type("\x1b")
        line.shows("> see @file:src/")
        line.type("a\t\r")
        assert entered(line) == r"see @file:src/a\ \(1\).py "


def test_tab_completes_what_is_unambiguous(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("/sto\t\r")
        assert entered(line) == "/stop "


def test_wide_characters_take_the_columns_they_take(tmp_path: Path) -> None:
    with opened(tmp_path, columns=20) as line:
        line.type("漢字👍ab\x1b[D")
        line.shows("> 漢字👍ab")
        assert line.cursor[1] == 2 + 2 + 2 + 2 + 1
        line.type("\x15\x0b" + "字" * 12)
        line.shows("> " + "字" * 9 + "\n  " + "字" * 3)


def test_several_lines_are_shown_below_each_other_and_half_a_screen_at_most(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("\x1b[200~one\rtwo\x1b[201~")
        line.shows("> one\n  two")
        line.type(
            "\x15\x1b[200~" + "\r".join(f"line {number}" for number in range(100)) + "\x1b[201~"
        )
        shown = line.shows("  line 98\n  line 99")
        assert len([each for each in shown if "line " in each]) == 20


def test_what_was_pasted_cannot_command_the_terminal(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("\x1b[200~a\x1b]52;c;ZXZpbA==\x07b\u202etxt\x9b31m\x1b[201~!")
        line.shows(re.escape(r"> a\x1b]52;c;ZXZpbA==\x07b\u202etxt\x9b31m!"))
        assert "\x1b]52" not in line.raw
        assert "\u202e" not in line.raw
        line.type("\x1b[D\x7f\x7f\r")
        assert entered(line) == "a\x1b]52;c;ZXZpbA==\x07b\u202etxt\x9b3!"


def test_what_is_said_meanwhile_stands_above_the_line_and_does_not_tear_it(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("stream 100\rmy \x1b\rdraft")
        shown = line.shows("streamed\n> my\n  draft")
        words = " ".join(shown).split()
        assert [each for each in words if each.startswith("word")] == [
            f"word{number}" for number in range(100, -1, -1)
        ]
        line.type("!\r")
        assert entered(line) == "my \ndraft!"


def test_a_long_stream_is_not_drawn_word_by_word(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.line("stream 10000")
        line.expect("streamed")
        # The cursor is hidden while the line is drawn.
        assert line.raw.count("\x1b[?25l") < 2_000


def test_of_a_long_line_that_goes_on_the_end_is_shown_and_all_of_it_when_it_has_ended(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, columns=100) as line:
        line.line("begin 4000")
        shown = line.shows("x\n>")
        assert "".join(shown) == "…" + "x" * 499 + ">"
        line.line("end")
        assert "".join(line.shows('entered "end"\n>')) == "x" * 4_000 + 'entered "end">'


def test_many_keys_that_come_at_once_are_taken_as_they_are(tmp_path: Path) -> None:
    with opened(tmp_path) as line:
        line.type("漢" * 20_000 + "\r")
        assert entered(line) == "漢" * 20_000


def test_a_line_survives_another_width(tmp_path: Path) -> None:
    with opened(tmp_path, columns=60) as line:
        line.type("a message of more than thirty columns")
        line.shows("> a message of more than thirty columns")
        line.resize(30)
        line.shows("> a message of more than thirt\n  y columns")
        line.type("!\r")
        assert entered(line) == "a message of more than thirty columns!"


def test_a_terminal_that_goes_away_ends_the_program(tmp_path: Path) -> None:
    # Also where nobody is told by a signal.
    program = [
        "/bin/sh",
        "-c",
        f"trap '' HUP; {sys.executable} -m tests.line_program; echo $? > ended",
    ]
    with terminal(tmp_path, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, program=program) as line:
        line.shows(">")
        line.hang_up()
        line.reaped()
        assert (tmp_path / "ended").exists()
