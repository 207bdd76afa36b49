"""The head of a SKILL.md: what is accepted means what every YAML reader reads, and the rest is
refused with its line.
"""

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.features.skills import front_matter
from palyra.features.skills.front_matter import Head

ACCEPTED = [
    "name: a\ndescription: plain words",
    "name: a\ndescription: 'it''s: quoted # not a comment'",
    'name: a\ndescription: "tab\\t, quote \\", \\u00e9"',
    "name: a # a comment\n# another\n\ndescription: x#y",
    "name: a\ndescription: plain words that\n  go on\n  and on",
    "name: a\ndescription: |\n  two\n  lines",
    "name: a\ndescription: |-\n  two\n\n    lines\n",
    "name: a\ndescription: |+\n  kept\n\nlicense: MIT",
    "name: a\ndescription: >-\n  folded\n  text",
    "name: a\ndescription: >\n  folded\n  text",
    "name: a\ndescription: d\nmetadata:\n  version: '1.0'\n  author: me",
    "name: a\ndescription: d\nallowed-tools: [Read, Write]",
    "name: a\ndescription: d\nallowed-tools:\n  - Read\n  - 'Write it'",
    "name: a\ndescription: d\nallowed-tools:\n- Read\n- Write\nlicense: MIT",
    "name: a\ndescription: https://example.org/x:y",
    "name: a\ndescription: d\nlicense:",
    "name: a\ndescription: 1.0",
    "name: a\ndescription: yes",
]


def ours(text: str) -> object:
    return front_matter.split(f"---\n{text}\n---\nbody\n")[0]


def theirs(text: str) -> object:
    return yaml.load(text + "\n", Loader=yaml.BaseLoader)


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_accepted_is_what_yaml_means(text: str) -> None:
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    "text",
    [
        "name: &anchor a",
        "name: *anchor",
        "name: !!python/object:os.system x",
        "name: {a: b}",
        "name: [a, [b]]",
        "name: a: b",
        "name: 'open",
        'name: "a" b',
        'name: "\\x41"',
        "name: a\nname: b",
        "\tname: a",
        "name: a\n  b: c",
        "metadata:\n  a:\n    b: c",
        "- a",
        "name",
        "? a\n: b",
        "name: - a",
        "<<: a",
        "name: |2\n  a",
        "name: >\n  a\n\n  b",
        "name: @a",
        "name: a\n\n  b",
        "name: a\tb: c",
    ],
)
def test_what_yaml_readers_could_differ_about_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        ours(text)


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(InvalidInput) as caught:
        ours("name: a\ndescription: {}")
    assert caught.value.details["line"] == 3


_LETTERS = st.text(alphabet=list("ab:#'\"|>-[]{}&*!,\\ \n\t?%@é0"), max_size=12)
_PIECES = st.sampled_from(
    [
        "a: ",
        "b:",
        "\n",
        "\n  ",
        "\n\n",
        "- ",
        " #",
        "'",
        '"',
        "|",
        ">",
        "|-",
        "|+",
        ">-",
        "x y",
        "[a, b]",
        "''",
        "\\n",
    ]
)


@given(st.lists(_PIECES | _LETTERS, max_size=14).map("".join))
def test_no_text_is_accepted_that_yaml_reads_differently(text: str) -> None:
    assume(all(line.rstrip() != "---" for line in text.split("\n")))
    try:
        mine = ours(text)
    except InvalidInput:
        return
    assert mine == (theirs(text) or {})


@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), st.text(max_size=30), max_size=4)
)
def test_quoted_text_comes_back_exactly(fields: dict[str, str]) -> None:
    quoted = "\n".join(f"{key}: {yaml_quoted(value)}" for key, value in fields.items())
    assert ours(quoted) == fields


def yaml_quoted(value: str) -> str:
    escaped = "".join(
        char if char.isalnum() and char.isascii() else _escape(char) for char in value
    )
    return f'"{escaped}"'


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


@pytest.mark.parametrize(
    "text", ["", "name: a", "---\nname: a\n", "--- \nname: a", "# no head\n---\n---"]
)
def test_a_file_without_front_matter_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        front_matter.read(text.encode())


def test_a_head_has_what_the_format_says() -> None:
    text = "\ufeff---\r\nname: pdf-tools\r\ndescription: Works with PDFs.\r\nmetadata:\r\n  version: 2\r\n---\r\n# Body\r\ntext\r\n"
    assert front_matter.read(text.encode()) == Head(
        "pdf-tools", "Works with PDFs.", "# Body\ntext", version="2"
    )


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a--b", "a/b", "..", "a" * 65, "ä", "a b", "con."]
)
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(InvalidInput):
        front_matter.read(f"---\nname: '{name}'\ndescription: d\n---\n".encode())


@pytest.mark.parametrize(
    "head",
    [
        "name: a",
        "name: a\ndescription: ' '",
        f"name: a\ndescription: {'x' * 1025}",
        "name: a\ndescription: d\nhooks: x",
    ],
)
def test_what_is_missing_too_long_or_unknown_is_refused(head: str) -> None:
    with pytest.raises(InvalidInput):
        front_matter.read(f"---\n{head}\n---\n".encode())


def test_a_description_is_one_line_that_hides_nothing() -> None:
    head = front_matter.read(
        b'---\nname: a\ndescription: "one\\n- forged: entry\\u202e \\u0000"\n---\n'
    )
    assert head.description == "one - forged: entry"
