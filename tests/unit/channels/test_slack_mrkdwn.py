"""Slack's own marks: what people see is what was said, code stays code, and nothing that was only
quoted pings anybody.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.features.channels.slack import client as cursors
from palyra.features.channels.slack import messages
from palyra.features.channels.slack.client import SlackCursor

MARKED = [
    ("**bold** and *slanted* and ~~gone~~", "*bold* and _slanted_ and ~gone~"),
    ("# Heading **strong** #", "*Heading strong*"),
    ("* one\n  - two", "• one\n  • two"),
    ("[a|b](https://x.example/?a=1&b=2)", "<https://x.example/?a=1&amp;b=2|a/b>"),
    ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
    ("`**not bold**` **bold**", "`**not bold**` *bold*"),
    ("```python\nx = '**y**' & 1\n```\n**z**", "```\nx = '**y**' &amp; 1\n```\n*z*"),
    ("~~~\n```\n~~~", "```\n```\n```"),
    ("2 * 3 * 4", "2 * 3 * 4"),
    ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
]


@pytest.mark.parametrize(("markdown", "marks"), MARKED)
def test_markdown_is_put_into_slacks_marks(markdown: str, marks: str) -> None:
    assert messages.written(markdown) == marks


SEEN = [
    ("<@U1> and <@U2|anna>", "<@U1> and <@U2>"),
    ("in <#C1|general> or <#C2>", "in #general or #C2"),
    ("<!here> <!channel|channel> <!subteam^S1|@team>", "@here @channel @team"),
    (
        "<https://x.example> <https://x.example|x.example> <https://x.example|this>",
        "https://x.example " * 2 + "this (https://x.example)",
    ),
    ("<mailto:a@b.example|a@b.example>", "a@b.example"),
    ("1 &lt; 2 &amp;&amp; &amp;lt;", "1 < 2 && &lt;"),
]


@pytest.mark.parametrize(("raw", "seen"), SEEN)
def test_what_people_wrote_is_read_as_they_see_it(raw: str, seen: str) -> None:
    assert messages.read(raw) == seen


@given(st.text())
def test_plain_words_of_people_survive_slacks_escapes(text: str) -> None:
    assert (
        messages.read(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")) == text
    )


PARTS = st.sampled_from(
    [
        "<!channel>",
        "<!here|x>",
        "`",
        "```",
        "\n",
        "**",
        "[a](https://x.example/",
        ")",
        "@everyone",
        " ",
        "a",
        "<",
        ">",
        "|",
    ]
)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_no_text_pings_everybody_unless_it_may(text: str) -> None:
    assert messages.EVERYONE.search(messages.written(text)) is None
    assert messages.EVERYONE.search(messages.pinging(text, everyone=False)) is None


def test_a_text_that_may_ping_everybody_does() -> None:
    assert (
        messages.written("@channel look, me@here.example", everyone=True)
        == "<!channel> look, me@here.example"
    )
    assert messages.pinging("@here", everyone=True) == "<!here>"


@given(st.lists(PARTS, max_size=200).map("".join))
def test_sections_fit_and_lose_no_word(text: str) -> None:
    pieces = messages.sections(text * 40)
    assert all(messages.SECTION.of(piece) <= messages.SECTION.size for piece in pieces)
    assert "".join(pieces).count("everyone") == messages.written(text * 40).count("everyone")


def test_a_cursor_goes_forward_only_and_a_broken_one_is_a_beginning() -> None:
    cursor = SlackCursor().after("1700000000.000200").after("999.9").after("1700000000.000100")
    assert cursor.last == "1700000000.000200"
    assert cursors.read(cursors.written(cursor.with_thread("C", "1.0"))) == SlackCursor(
        "1700000000.000200", (("C", "1.0"),)
    )
    assert cursors.read("{broken") == cursors.read('{"last": 5}') == SlackCursor()
    for number in range(300):
        cursor = cursor.with_thread("C", f"{number}.0")
    assert (len(cursor.threads), cursor.threads[-1]) == (100, ("C", "299.0"))
