"""Long answers in a platform's messages: everything arrives, code stays code, tables keep their
heads.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.features.channels.message_splitter import LengthLimit, Unit, split

LIMITS = [
    LengthLimit(64),
    LengthLimit(200),
    LengthLimit(2_000),
    LengthLimit(100, "utf16"),
    LengthLimit(4_096, "utf16"),
    LengthLimit(120, "bytes"),
    LengthLimit(4_000, "bytes"),
]
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_no_piece_is_longer_than_the_platform_allows(limit: LengthLimit) -> None:
    text = "\n\n".join(
        ["Ein Satz mit Umlauten: äöü. " * 20, "```python\n" + "x = 1\n" * 900 + "```", "🦀" * 500]
    )
    pieces = split(text, limit)
    assert len(pieces) > 1
    assert all(limit.of(piece) <= limit.size for piece in pieces)


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab cdé🦀\n.,|`~-é👨‍👩‍👧"), max_size=1_500))
def test_whatever_is_written_every_character_arrives_in_order(
    limit: LengthLimit, text: str
) -> None:
    pieces = split(text, limit)
    assert all(limit.of(piece) <= limit.size for piece in pieces)
    if not any(FENCE.match(line) for line in text.split("\n")) and "|" not in text:
        assert bare("".join(pieces)) == bare(text)
    else:
        # Fences and heads may be repeated; nothing else is added, and nothing is left out.
        letters = re.compile(r"[\s`~|-]+")
        assert letters.sub("", text) == "" or set(letters.sub("", "".join(pieces))) == set(
            letters.sub("", text)
        )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="abc 123(){}=é🦀", max_size=90), min_size=1, max_size=120),
    st.sampled_from(["```", "````", "~~~"]),
    st.sampled_from(["", "python", "c++ title"]),
    st.sampled_from(["characters", "utf16", "bytes"]),
)
def test_code_that_is_cut_is_code_in_every_piece_and_the_same_code_together(
    lines: list[str], fence: str, language: str, unit: Unit
) -> None:
    code = [line.rstrip() for line in lines]
    text = "\n".join(["Here it is:", "", f"{fence}{language}", *code, fence, "", "That was it."])
    limit = LengthLimit(400, unit)
    pieces = split(text, limit)
    assert all(limit.of(piece) <= limit.size for piece in pieces)
    found: list[str] = []
    for piece in pieces:
        inside = False
        for line in piece.split("\n"):
            if line in (f"{fence}{language}", fence) and (line == fence or not inside):
                inside = not inside if line == fence or not inside else inside
            elif inside:
                found.append(line)
        assert not inside
    assert "".join(found) == "".join(code)


def test_a_fence_inside_a_longer_fence_does_not_close_it() -> None:
    inner = "\n".join(f"line {n}" for n in range(60))
    text = f"````markdown\n```python\n{inner}\n```\nmore\n````\nthe end"
    pieces = split(text, LengthLimit(200))
    assert len(pieces) > 2
    for piece in pieces[:-1]:
        assert piece.startswith("````markdown\n")
        assert piece.endswith("\n````")
    assert "the end" in pieces[-1]
    code = "\n".join(
        line for piece in pieces for line in piece.split("\n") if not line.startswith("````")
    )
    assert code == f"```python\n{inner}\n```\nmore\nthe end"


def test_a_fence_that_nobody_closed_is_closed_in_every_piece() -> None:
    pieces = split("```\n" + "word\n" * 100, LengthLimit(100))
    assert all(piece.startswith("```\n") and piece.endswith("\n```") for piece in pieces)


def test_a_table_that_is_cut_has_its_head_in_every_piece() -> None:
    rows = [f"| row {n} | {n * n} |" for n in range(40)]
    text = "\n".join(["Numbers:", "", "| name | square |", "|------|-------:|", *rows, "", "Done."])
    pieces = split(text, LengthLimit(200))
    with_rows = [piece for piece in pieces if "| row" in piece]
    assert len(with_rows) > 2
    assert all("| name | square |\n|------|-------:|\n| row" in piece for piece in with_rows)
    assert [
        line for piece in pieces for line in piece.split("\n") if line.startswith("| row")
    ] == rows
    assert pieces[-1].endswith("Done.")


def test_code_that_fits_a_message_is_not_cut() -> None:
    code = "```js\n" + "f();\n" * 20 + "```"
    pieces = split(
        "Some words before it. " * 7 + "\n\n" + code + "\n\nAnd after.", LengthLimit(200)
    )
    assert any(code in piece for piece in pieces)


def test_words_are_not_torn_where_there_is_a_space() -> None:
    pieces = split("The quick brown fox jumps over the lazy dog. " * 30, LengthLimit(100))
    assert all(piece.strip().endswith(".") for piece in pieces)


def test_a_character_of_several_code_points_is_not_torn() -> None:
    family = "👨‍👩‍👧‍👦"
    pieces = split(family * 40, LengthLimit(100, "utf16"))
    assert "".join(pieces) == family * 40
    assert all(piece.replace(family, "") == "" for piece in pieces)


def test_an_accent_stays_with_its_letter() -> None:
    pieces = split("e\u0301" * 300, LengthLimit(101))
    assert all(not piece.startswith("\u0301") for piece in pieces)


@pytest.mark.parametrize(("unit", "size"), [("characters", 1), ("utf16", 2), ("bytes", 4)])
def test_each_platform_counts_in_its_own_way(unit: Unit, size: int) -> None:
    assert LengthLimit(64, unit).of("🦀") == size


def test_nothing_to_say_is_no_message() -> None:
    assert split(" \n\n ", LengthLimit(100)) == []


def test_what_fits_is_left_as_it_is() -> None:
    assert split("one\n\n\n  two", LengthLimit(100)) == ["one\n\n\n  two"]
