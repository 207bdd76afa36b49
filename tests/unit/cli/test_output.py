"""The parts of the command line that know no terminal and no daemon."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.cli import exit_codes, formatting
from palyra.cli.formatting import bar
from palyra.cli.render.reply import BEGINS_AGAIN, ReplyText
from palyra.cli.safe_text import clean, cut, one_line, width_of
from palyra.client.discovery import Unreachable
from palyra.core import errors
from palyra.core.errors import InvalidInput, PalyraError

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@given(st.text())
def test_no_clean_text_holds_a_character_that_a_terminal_obeys(text: str) -> None:
    assert not _OBEYED.search(clean(text))


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.lists(st.text()))
def test_a_sequence_cut_into_pieces_is_as_harmless_as_a_whole_one(pieces: list[str]) -> None:
    assert not _OBEYED.search("".join(map(clean, pieces)))


def test_what_was_hidden_is_shown_and_ordinary_text_is_left_alone() -> None:
    assert (
        clean("\x1b]0;title\x07 \x1b[31mred \u202etxt.exe")
        == r"\x1b]0;title\x07 \x1b[31mred \u202etxt.exe"
    )
    ordinary = "tab\tnew\nline, ümlaut, 漢字, 👩‍👩‍👧, עברית"
    assert clean(ordinary) == ordinary
    assert clean("dos\r\nline") == "dos\nline"


@given(st.text(), st.integers(2, 40))
def test_a_cut_line_fits_its_width_and_has_one_line(text: str, width: int) -> None:
    line = one_line(text, width)
    assert width_of(line) <= width
    assert "\n" not in line
    assert cut("短い文字列です", 5) == "短い…"


class _Shown:
    def __init__(self) -> None:
        self.text = ""
        self.notes: list[str] = []
        self.reply = ReplyText(self._say, self.notes.append)

    def _say(self, text: str) -> None:
        self.text += text


_pieces = st.lists(st.text("abc ", min_size=1, max_size=4), min_size=1, max_size=8)


@given(_pieces, st.data())
def test_a_reply_is_shown_exactly_once_however_the_daemon_broke_and_asked_again(
    pieces: list[str], data: st.DataObject
) -> None:
    """The same model, asked again after a crash, says the same; what we hear of it begins
    anywhere.
    """
    shown, whole = _Shown(), "".join(pieces)
    shown.reply.started("run")
    for piece in pieces[: data.draw(st.integers(0, len(pieces)))]:
        shown.reply.piece("run", 1, piece)
    for _ in range(data.draw(st.integers(0, 3))):
        shown.reply.connected()
        shown.reply.began_again()
        heard = pieces[data.draw(st.integers(0, len(pieces))) :]
        for piece in heard[: data.draw(st.integers(0, len(heard)))]:
            shown.reply.piece("run", 1, piece)
    shown.reply.finished("run", 1, whole)
    # Where the pieces could not be brought together, the whole stands behind a remark.
    assert shown.text == whole if not shown.notes else shown.text.endswith(whole)


def test_after_a_break_nothing_is_said_twice_and_the_rest_follows() -> None:
    shown = _Shown()
    shown.reply.started("run")
    shown.reply.piece("run", 1, "alpha ")
    shown.reply.connected()
    shown.reply.began_again()
    for piece in ("al", "pha ", "beta "):
        shown.reply.piece("run", 1, piece)
    assert shown.text == "alpha beta "
    shown.reply.finished("run", 1, "alpha beta gamma")
    assert (shown.text, shown.notes) == ("alpha beta gamma", [])


def test_a_reply_that_is_under_way_when_we_come_is_shown_when_it_is_whole() -> None:
    shown = _Shown()
    shown.reply.connected()
    shown.reply.piece("run", 1, "the middle")
    assert shown.text == ""
    shown.reply.finished("run", 1, "the beginning, the middle")
    shown.reply.piece("run", 2, "and more")
    assert shown.text == "the beginning, the middleand more"


def test_what_was_said_so_far_is_shown_to_who_comes_late_and_not_twice_to_who_was_there() -> None:
    late, back = _Shown(), _Shown()
    late.reply.connected()
    back.reply.started("run")
    back.reply.piece("run", 1, "alpha ")
    back.reply.connected()
    for shown in (late, back):
        shown.reply.so_far("run", 1, "alpha beta ")
        shown.reply.piece("run", 1, "gamma")
        shown.reply.finished("run", 1, "alpha beta gamma")
        assert (shown.text, shown.notes) == ("alpha beta gamma", [])


def test_another_answer_after_a_failure_is_said_to_be_another() -> None:
    shown = _Shown()
    shown.reply.started("run")
    shown.reply.piece("run", 1, "I think")
    shown.reply.began_again()
    shown.reply.piece("run", 1, "On second thought")
    shown.reply.finished("run", 1, "On second thought, no")
    assert (shown.text, shown.notes) == ("I thinkOn second thought, no", [BEGINS_AGAIN])


def test_every_error_of_the_family_has_an_exit_code_and_none_is_success() -> None:
    codes = {
        each.code: exit_codes.code_of(each("x"))
        for each in PalyraError.__subclasses__()
        if each.__module__ == errors.__name__
    }
    assert codes == {
        "not_found": 3,
        "conflict": 6,
        "invalid_input": 2,
        "unauthenticated": 4,
        "forbidden": 4,
        "illegal_transition": 6,
        "limit_exceeded": 1,
        "unavailable": 1,
        "chain_broken": 1,
        "config_invalid": 7,
    }
    assert exit_codes.code_of(Unreachable("x")) == 5
    assert exit_codes.code_of(exit_codes.InterruptedCommand("x")) == 130


def test_the_reference_names_every_command_and_exit_code() -> None:
    from palyra.cli.root import root

    text = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    for name in root.list_commands(None):  # type: ignore[arg-type]
        assert f"`palyra {name}" in text, name
    for number in (0, 1, 2, 3, 4, 5, 6, 7, 130):
        assert f"| {number} |" in text


def test_no_verb_is_described_by_half_a_sentence() -> None:
    import click

    from palyra.cli.root import root

    context = click.Context(root, info_name="palyra")
    for name in root.list_commands(context):
        found = root.get_command(context, name)
        assert found is not None
        text = found.get_help(
            click.Context(found, info_name=name, parent=context, terminal_width=80)
        )
        assert "..." not in text.partition("Commands:")[2], text


def test_durations_are_read_as_they_are_written() -> None:
    assert [formatting.parse_duration(each) for each in ("30s", "10m", "2h", "1d", "1w")] == [
        30_000,
        600_000,
        7_200_000,
        86_400_000,
        604_800_000,
    ]
    for wrong in ("", "10", "m", "0m", "-1h", "1y", "1h30m", "٣m"):
        with pytest.raises(InvalidInput):
            formatting.parse_duration(wrong)
    assert [formatting.duration(each) for each in (5, 1_500, 61_000, 3_660_000)] == [
        "5 ms",
        "1.5 s",
        "1 min 1 s",
        "1 h 1 min",
    ]


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_bar_is_never_longer_than_the_longest(value: int, more: int) -> None:
    assert len(bar(value, value + more)) <= 20
    assert bar(value + more, value + more) == "█" * 20
    assert bool(bar(value, value + more)) == bool(value)


def test_only_a_chat_loads_what_reads_its_line() -> None:
    code = """
import sys
import click
from palyra.cli.root import root
context = click.Context(root, info_name="palyra")
for name in root.list_commands(context):
    root.get_command(context, name)
print([each for each in ("prompt_toolkit", "tomlkit") if each in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
