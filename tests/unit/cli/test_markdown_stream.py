"""Words of a model on a terminal: wrapped between words, lightly marked up, never lost, never
obeyed.
"""

import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palyra.cli.render.entries import edited_lines, said_lines
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.safe_text import clean, width_of

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_CODES = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "cyan": 36,
    "green": 32,
    "red": 31,
    "blue": 34,
    "yellow": 33,
    "magenta": 35,
}


def _colored(text: str, *styles: str) -> str:
    return (
        f"\x1b[{';'.join(str(_CODES[each]) for each in styles)}m{text}\x1b[0m"
        if styles and text
        else text
    )


def _marked(text: str, *styles: str) -> str:
    return f"<{'+'.join(styles)}|{text}>" if styles and text else text


def _shown(text: str, width: int = 30, **more: Any) -> str:
    return Prose(_marked, lambda: width, **more).whole(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a **bold word** here", "a <bold|bold> <bold|word> here"),
        ("call `f(x)` now", "call <cyan|f(x)> now"),
        ("`` a`b ``", "<cyan|a`b> "),
        ("# Title", "<bold|Title>"),
        ("- one\n  * two", "• one\n  • two"),
        ("**`x` y**", "<cyan+bold|x> <bold|y>"),
        ("2 * 3 ** 4", "2 * 3 ** 4"),
        ("**never closed", "**never closed"),
        ("one ` tick", "one ` tick"),
        ("**a\nb**", "**a\nb**"),
        ("__init__ and a_b_c", "__init__ and a_b_c"),
        ("#!/bin/sh", "#!/bin/sh"),
        ("-5 and *", "-5 and *"),
        ("an *old word* here", "an <italic|old> <italic|word> here"),
        ("2*3*4 and a*b*", "2*3*4 and a*b*"),
        (
            "see [the docs](https://a.example/x)",
            "see <blue+underline|the> <blue+underline|docs> \n<dim|(https://a.example/x)>",
        ),
        ("[https://a.example](https://a.example)", "<blue+underline|https://a.example>"),
        ("[1] and a[0]", "[1] and a[0]"),
        ("- [ ] one\n- [x] two", "☐ one\n☑ two"),
        ("---\nend", f"<dim|{'─' * 30}>\nend"),
        ("> said", "<dim|│ >said"),
        (
            "> a quote that is longer than the line is",
            "<dim|│ >a quote that is longer than \n<dim|│ >the line is",
        ),
        (
            "```sh\n# not a *heading*\n```\n# one",
            f"<dim|── sh {'─' * 24}>\n<dim|# not a *heading*>\n<dim|{'─' * 30}>\n<bold|one>",
        ),
        (
            "```\nplain\n```",
            f"<dim|{'─' * 30}>\n<cyan|plain>\n<dim|{'─' * 30}>",
        ),
        (
            '~~~python\ndef f(x):  # one\n    return "a" + 1\n~~~',
            f"<dim|── python {'─' * 20}>\n<magenta|def> f(x):  <dim|# one>\n"
            f'    <magenta|return> <green|"a"> + <yellow|1>\n<dim|{"─" * 30}>',
        ),
        (
            "| a | n |\n|---|--:|\n| **x** | 1 |\n| yy | 10 |\nend",
            "<bold|a> <dim| │ > <bold|n>\n<dim|───┼───>\n<bold|x> <dim| │ > 1\nyy<dim| │ >10\nend",
        ),
        ("| no table", "| no table"),
    ],
)
def test_light_markdown_is_shown_and_what_only_looks_like_it_is_left(text: str, shown: str) -> None:
    assert _shown(text) == shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("the quick brown fox jumps", ["the quick", "brown fox", "jumps"]),
        ("- the quick brown fox", ["• the", "  quick", "  brown", "  fox"]),
        ("see https://a.example/very/long now", ["see", "https://a.example/very/long", "now"]),
        ("12. abc def ghi", ["12. abc", "    def", "    ghi"]),
        ("exactly ten\nnext", ["exactly", "ten", "next"]),
        ("漢字漢字漢字", ["漢字漢字漢", "字"]),
        ("a word of abcdefghijklmnopqrst next", ["a word of", "abcdefghijklmnopqrst", "next"]),
        ("ends (`a.b`).", ["ends", "(a.b)."]),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str]) -> None:
    shown = Prose(lambda text, *styles: text, lambda: 10).whole(text)
    assert [line.rstrip() for line in shown.split("\n")] == lines


_written = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "**",
                "*",
                "`",
                "``",
                "```",
                "\n",
                " ",
                "- ",
                "# ",
                "1. ",
                "> ",
                "[a](b)",
                "[",
                "| a | b |\n|---|---|\n| c | d |\n",
                "|",
                "---",
                "~~~",
                "word",
                "\x1b[31m",
                "\u202e",
                "漢",
                "\t",
            ]
        ),
        st.text(max_size=6),
    ),
    max_size=30,
).map("".join)


@example("**`word**", 20, True)
@given(_written, st.integers(20, 60), st.booleans())
def test_nothing_is_lost_but_marks_and_nothing_goes_out_but_styles(
    text: str, width: int, markdown: bool
) -> None:
    shown = _SGR.sub("", Prose(_colored, lambda: width, markdown=markdown).whole(text))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    marks = str.maketrans("", "", "*`~#-+•─│┼>|:\\[]()☐☑x \t\n" if markdown else " \t\n")
    assert shown.translate(marks) == clean(text).translate(marks)
    # The second line of a table is drawn as one.
    assert clean(text).count("\n") <= shown.count("\n")


@given(_written.map(lambda text: text.replace("\r", "")), st.data())
def test_it_looks_the_same_however_it_comes_in_pieces(text: str, data: st.DataObject) -> None:
    whole = _SGR.sub("", Prose(_colored, lambda: 24).whole(text))
    prose, shown, at = Prose(_colored, lambda: 24), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 7))
        shown += prose.feed(text[at : at + size])
        at += size
    assert _SGR.sub("", shown + prose.end()) == whole


@given(
    st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=40),
    st.integers(20, 40),
)
def test_no_line_is_wider_than_the_terminal_if_no_word_is(words: list[str], width: int) -> None:
    shown = Prose(lambda text, *styles: text, lambda: width).whole(" ".join(words))
    assert max(width_of(line) for line in shown.split("\n")) <= width
    assert shown.split() == words


def test_finished_words_are_shown_at_once() -> None:
    prose = Prose(_marked, lambda: 80)
    assert prose.feed("one two thr") == "one two "
    assert prose.feed("ee ") == "three "


def test_long_text_with_marks_that_never_close_takes_no_time() -> None:
    text = "**b " * 50_000
    began = time.process_time()
    assert Prose(lambda text, *styles: text, lambda: 80).whole(text).split() == text.split()
    assert time.process_time() - began < 5


def test_edited_arguments_are_shown_as_a_diff_of_what_is_different() -> None:
    lines = edited_lines(
        lambda text, *styles: text,
        {"path": "a", "content": "one\ntwo\n"},
        {"path": "a", "content": "one\n2\n"},
    )
    shown = [line.strip() for line in lines]
    assert ("-two" in shown, "+2" in shown, any("path" in line for line in shown)) == (
        True,
        True,
        False,
    )
    assert not any("{" in line for line in shown)


def test_what_a_person_said_at_length_is_cut_on_the_screen() -> None:
    lines = said_lines(lambda text, *styles: text, "line\n" * 1_000, 80)
    assert len(lines) < 30
    assert lines[-1] == "  … 980 more lines"
