"""Managed blocks: the daemon's lines and a person's words in one document, and neither ever
lost.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, PalyraError
from palyra.features.compaction import notes_file
from palyra.tools.files import content as files_content
from palyra.tools.paths import PathGuard, PathRefused

DOCUMENT = "# Mine\n\nwords\n"
TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
LINE = TEXT.filter(
    lambda line: (
        line.splitlines() == [line]
        and "<!--" not in line
        and "-->" not in line
        and "[redacted" not in line
    )
)


def test_a_block_is_put_at_the_end_and_then_kept_up_to_date_in_its_place() -> None:
    first = notes_file.replaced(DOCUMENT, "facts", ["- one"])
    assert first.startswith(f"{DOCUMENT}\n<!-- palyra:begin facts ")
    assert first.endswith("\n- one\n<!-- palyra:end -->\n")
    more = first + "\nbelow\n"
    second = notes_file.replaced(more, "facts", ["- two"])
    assert "- one" not in second
    assert second.index("- two") < second.index("below")


def test_merging_keeps_what_is_there_and_says_each_line_once() -> None:
    first = notes_file.merged(DOCUMENT, "facts", ["- one", "- two"])
    second = notes_file.merged(first, "facts", ["- two", "- three"])
    assert notes_file.find(second)["facts"].lines == ("- one", "- two", "- three")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("- one", "- ONE"),
        lambda text: text.replace("- one\n", ""),
        lambda text: text.replace("- one\n", "- one\n- mine\n"),
        lambda text: text.replace("<!-- palyra:end -->\n", ""),
        lambda text: text.replace("palyra:begin facts", "palyra:begin  facts"),
        lambda text: text + text,
        lambda text: text + "<!-- palyra:end -->\n",
    ],
)
def test_what_a_person_changed_is_a_conflict_and_never_overwritten(change: "object") -> None:
    assert callable(change)
    written = notes_file.replaced(DOCUMENT, "facts", ["- one"])
    with pytest.raises(Conflict):
        notes_file.replaced(change(written), "facts", ["- two"])


def test_a_block_that_a_person_removed_is_made_anew() -> None:
    again = notes_file.replaced(DOCUMENT, "facts", ["- two"])
    assert notes_file.find(again)["facts"].lines == ("- two",)


@pytest.mark.parametrize(
    ("name", "lines", "error"),
    [
        ("a b", ["x"], InvalidInput),
        ("", ["x"], InvalidInput),
        ("a", ["x\ny"], InvalidInput),
        ("a", ["x\u2028y"], InvalidInput),
        ("a", ["<!-- palyra:end -->"], InvalidInput),
        ("a", ["[redacted:api-key:0123abcd]"], InvalidInput),
        ("a", ["x" * 501], InvalidInput),
        ("a", ["x"] * 201, LimitExceeded),
    ],
)
def test_what_could_not_be_read_back_is_refused(
    name: str, lines: list[str], error: type[PalyraError]
) -> None:
    with pytest.raises(error):
        notes_file.replaced("", name, lines)


@given(st.lists(LINE, max_size=5), st.lists(LINE, max_size=5), TEXT, TEXT)
def test_whatever_is_written_is_read_back_and_the_rest_stays(
    first: list[str], second: list[str], above: str, below: str
) -> None:
    if "palyra:" in above + below:
        return
    text = notes_file.replaced(above, "b", first)
    assert notes_file.find(text)["b"].lines == tuple(first)
    later = notes_file.replaced(text + below, "b", second)
    assert notes_file.find(later)["b"].lines == tuple(second)
    assert later.startswith(above)
    assert later.endswith(below)


def test_a_document_in_a_workspace_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text(DOCUMENT)
    change = notes_file.plan(PathGuard(), str(tmp_path), "MEMORY.md", "facts", ["- one"])
    assert change is not None
    assert (tmp_path / "MEMORY.md").read_text() == DOCUMENT
    files_content.apply([change])
    assert "- one" in (tmp_path / "MEMORY.md").read_text()
    assert notes_file.plan(PathGuard(), str(tmp_path), "MEMORY.md", "facts", ["- one"]) is None


def test_no_document_outside_the_workspace_and_none_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(b"\xff\xfe")
    with pytest.raises(Conflict):
        notes_file.plan(PathGuard(), str(tmp_path), "MEMORY.md", "facts", ["- one"])
    with pytest.raises(PathRefused):
        notes_file.plan(PathGuard(), str(tmp_path), "../MEMORY.md", "facts", ["- one"])
