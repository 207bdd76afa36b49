"""fs.patch puts a change where it belongs, or nowhere, and says what did not fit."""

from difflib import unified_diff
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.core.tools import Subject
from palyra.tools.files import diffs
from tests.tools_at_work import call, parsed, tree

POEM = "".join(f"line {number}\n" for number in range(1, 31))


def split(text: str) -> list[str]:
    """Lines with their ends; only a newline ends a line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.split("\n")[-1]] if not text.endswith("\n") and text else []
    )


def diff(old: str | None, new: str | None, name: str = "a.txt", context: int = 3) -> str:
    """The diff between two contents as git writes it; None is a file that does not exist."""
    names = (
        f"a/{name}" if old is not None else "/dev/null",
        f"b/{name}" if new is not None else "/dev/null",
    )
    lines = unified_diff(split(old or ""), split(new or ""), *names, n=context)
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def patched(folder: Path, old: str, patch: str, name: str = "a.txt") -> str:
    (folder / name).write_bytes(old.encode())
    result = call(folder, "fs.patch", diff=patch)
    assert result.outcome == "ok", result.text
    return (folder / name).read_bytes().decode()


def refused(folder: Path, **arguments: object) -> str:
    before = tree(folder)
    result = call(folder, "fs.patch", **arguments)
    assert result.outcome in ("error", "denied"), result.text
    assert tree(folder) == before
    return result.text


LINES = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "",
            " ",
            "--- a/x",
            "+++ b/x",
            "@@ -1 +1 @@",
            "-- ",
            "x\r",
            "\\",
            "é",
            "diff --git a/q b/q",
        ]
    ),
    max_size=14,
)
TEXTS = st.builds(
    lambda lines, ended: "\n".join(lines) + ("\n" if ended and lines else ""), LINES, st.booleans()
)


@settings(max_examples=500, deadline=None)
@given(old=TEXTS, new=TEXTS, context=st.integers(0, 4))
def test_the_diff_of_two_texts_turns_one_into_the_other(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str, context: int
) -> None:
    folder = tmp_path_factory.mktemp("patch")
    if old == new:
        return
    assert patched(folder, old, diff(old, new, context=context)) == new


@settings(max_examples=100, deadline=None)
@given(
    contents=st.dictionaries(
        st.sampled_from(["a", "b/c", "d"]),
        st.tuples(st.none() | TEXTS, st.none() | TEXTS),
        min_size=1,
    )
)
def test_a_diff_over_several_files_creates_changes_and_deletes(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, tuple[str | None, str | None]]
) -> None:
    # A diff cannot speak of an empty file that comes or goes without git's own headers.
    contents = {
        name: pair
        for name, pair in contents.items()
        if (pair[0] or None) != (pair[1] or None) and "" not in pair
    }
    if not contents:
        return
    folder = tmp_path_factory.mktemp("patch")
    for name, (old, _) in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if old is not None:
            (folder / name).write_bytes(old.encode())
    result = call(
        folder,
        "fs.patch",
        diff="".join(diff(old, new, name) for name, (old, new) in contents.items()),
    )
    assert result.outcome == "ok", result.text
    found = {name: content for name, content in tree(folder).items() if content != "folder"}
    assert found == {name: new.encode() for name, (_, new) in contents.items() if new is not None}


def test_a_hunk_whose_line_numbers_are_off_is_found_and_the_offset_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("new first\n" * 7 + POEM)
    result = call(tmp_path, "fs.patch", diff=diff(POEM, POEM.replace("line 20\n", "LINE 20\n")))
    assert "hunk 1 applied 7 lines below its place" in result.text
    assert (tmp_path / "a.txt").read_text() == "new first\n" * 7 + POEM.replace(
        "line 20\n", "LINE 20\n"
    )


def test_of_several_places_that_fit_the_nearest_is_taken(tmp_path: Path) -> None:
    old = "x\ny\n" + "-\n" * 10 + "x\ny\n" + "-\n" * 10 + "x\ny\n"
    assert (
        patched(tmp_path, old, "--- a/a.txt\n+++ b/a.txt\n@@ -14,2 +14,2 @@\n x\n-y\n+Y\n")
        == "x\ny\n" + "-\n" * 10 + "x\nY\n" + "-\n" * 10 + "x\ny\n"
    )


def test_wrong_counts_in_headers_do_not_matter(tmp_path: Path) -> None:
    first = "@@ -2,1 +2,9 @@\n line 2\n-line 3\n+three\n line 4\n"
    second = "@@ -10,99 +10,1 @@\n line 10\n+ten and a half\n line 11\n"
    patch = f"--- a/a.txt\n+++ b/a.txt\n{first}{second}"
    wanted = POEM.replace("line 3\n", "three\n", 1).replace(
        "line 10\n", "line 10\nten and a half\n"
    )
    assert patched(tmp_path, POEM, patch) == wanted


def test_a_header_without_numbers_needs_context_that_fits_once(tmp_path: Path) -> None:
    assert patched(
        tmp_path, POEM, "--- a/a.txt\n+++ b/a.txt\n@@\n line 7\n-line 8\n"
    ) == POEM.replace("line 8\n", "")
    (tmp_path / "a.txt").write_text("x\nx\n")
    assert "2 places" in refused(tmp_path, diff="--- a/a.txt\n+++ b/a.txt\n@@ @@\n-x\n+y\n")


def test_prose_fences_and_git_headers_around_a_diff_are_skipped(tmp_path: Path) -> None:
    inner = diff(POEM, POEM.replace("line 4\n", "four\n"))
    patch = f"Here it is:\n```diff\ndiff --git a/a.txt b/a.txt\nindex 123..456 100644\n{inner}```\nDone.\n"
    assert patched(tmp_path, POEM, patch) == POEM.replace("line 4\n", "four\n")


def test_empty_context_lines_that_lost_their_space_still_count(tmp_path: Path) -> None:
    assert (
        patched(
            tmp_path, "a\n\nb\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n\n"
        )
        == "a\n\nc\n"
    )


def test_trailing_white_space_and_windows_line_ends_are_tolerated(tmp_path: Path) -> None:
    old = "def f():  \r\n    return 1\r\n\r\nend\r\n"
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n def f():\n-    return 1\n+    x = 2\n+    return x\n \n"
    assert patched(tmp_path, old, patch) == "def f():  \r\n    x = 2\r\n    return x\r\n\r\nend\r\n"


def test_another_indent_is_tolerated_and_added_lines_get_the_files_own(tmp_path: Path) -> None:
    old = "class A:\n\tdef f(self):\n\t\treturn 1\n"
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -2,2 +2,3 @@\n     def f(self):\n-        return 1\n+        x = 1\n+        return x\n"
    (tmp_path / "a.txt").write_text(old)
    result = call(tmp_path, "fs.patch", diff=patch)
    assert "ignoring white space" in result.text
    assert (tmp_path / "a.txt").read_text() == "class A:\n\tdef f(self):\n\t\tx = 1\n\t\treturn x\n"


def test_bytes_that_are_not_utf8_and_a_byte_order_mark_survive(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ncaf\xe9\ntwo\n")
    assert (
        call(
            tmp_path, "fs.patch", diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n"
        ).outcome
        == "ok"
    )
    assert (tmp_path / "a.txt").read_bytes() == b"\xef\xbb\xbfONE\ncaf\xe9\ntwo\n"


def test_names_with_prefixes_time_stamps_and_quotes_are_understood() -> None:
    hunk = "@@ -1 +1 @@\n-a\n+b\n"
    assert (
        diffs.parse(f"--- a.txt\t2024-01-01 00:00:00\n+++ a.txt\t2024-01-02\n{hunk}")[0].path
        == "a.txt"
    )
    assert (
        diffs.parse(
            f'--- "a/caf\\303\\251 \\"x\\".txt"\n+++ "b/caf\\303\\251 \\"x\\".txt"\n{hunk}'
        )[0].path
        == 'café "x".txt'
    )
    assert (
        diffs.parse(f"--- a/dir with space/f\n+++ b/dir with space/f\n{hunk}")[0].path
        == "dir with space/f"
    )


def test_git_headers_alone_create_and_delete_empty_files(tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    patch = (
        "diff --git a/new.sh b/new.sh\nnew file mode 100755\nindex 0000000..e69de29\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\nindex e69de29..0000000\n"
    )
    assert call(tmp_path, "fs.patch", diff=patch).outcome == "ok"
    assert tree(tmp_path) == {"new.sh": b""}
    assert (tmp_path / "new.sh").stat().st_mode & 0o111


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "nothing here",
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a/a.txt\n+++ b/a.txt\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n line 1\n",
        "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-a\n+b\n",
        "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+b\n",
        "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
        "diff --git a/a.txt b/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b.txt\n",
        "diff --git a/a.txt b/a.txt\nGIT binary patch\nliteral 3\n",
    ],
)
def test_what_is_no_diff_or_asks_for_more_is_refused(tmp_path: Path, patch: str) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    refused(tmp_path, diff=patch)
    if patch:
        with pytest.raises(InvalidInput):
            diffs.parse(patch)


def test_a_diff_that_changes_nothing_beside_edits_is_left_out(tmp_path: Path) -> None:
    """Weak models fill in whatever they see."""
    edits = [{"path": "a.txt", "search": "red", "replace": "blue"}]
    for empty in ("s/red/blue/g", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n red\n"):
        (tmp_path / "a.txt").write_text("red\n")
        assert call(tmp_path, "fs.patch", diff=empty, edits=edits).outcome == "ok"
        assert (tmp_path / "a.txt").read_text() == "blue\n"
    both = diff("blue\n", "green\n")
    assert "either diff or edits" in refused(tmp_path, diff=both, edits=edits)
    assert "either diff or edits" in refused(tmp_path, diff="", edits=[])


def test_a_hunk_that_does_not_fit_is_named_with_the_nearest_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM.replace("line 15\n", "line fifteen\n"))
    (tmp_path / "b.txt").write_text(POEM)
    both = diff(POEM, POEM.replace("line 2\n", "two\n").replace("line 16\n", "sixteen\n")) + diff(
        POEM, "x\n" + POEM, "b.txt"
    )
    said = refused(tmp_path, diff=both)
    assert "a.txt: hunk 2 does not fit" in said
    assert "15: line fifteen" in said


def test_a_patch_that_was_applied_already_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM.replace("line 5\n", "five\n"))
    assert "applied already" in refused(
        tmp_path, diff=diff(POEM, POEM.replace("line 5\n", "five\n"))
    )


def test_hunks_out_of_order_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -20 +20 @@\n-line 20\n+x\n@@ -5 +5 @@\n-line 5\n+y\n"
    assert "order" in refused(tmp_path, diff=patch)


def test_creating_what_exists_and_changing_what_does_not_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    assert "exists already" in refused(tmp_path, diff=diff(None, "new\n"))
    assert "does not exist" in refused(tmp_path, diff=diff("x\n", "y\n", "other.txt"))
    assert "not all of its lines" in refused(
        tmp_path, diff="--- a/a.txt\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n"
    )


def test_a_file_that_ends_earlier_than_the_diff_says_is_not_run_together(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n")
    refused(
        tmp_path,
        diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n",
    )


def test_sixty_four_files_are_changed_and_sixty_five_are_refused(tmp_path: Path) -> None:
    files = "".join(diff(None, "x\n", f"f{number}") for number in range(64))
    assert "64 files" in refused(tmp_path, diff=files + diff(None, "x\n", "one-more"))
    assert call(tmp_path, "fs.patch", diff=files).outcome == "ok"
    assert len(tree(tmp_path)) == 64


def test_a_patch_cannot_reach_what_is_refused(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    ws.mkdir()
    for name in ["../out.txt", "/etc/x", ".git/hooks/pre-commit", ".env", "d/../../out.txt"]:
        assert "is refused" in refused(
            ws, diff=diff(None, "x\n", name) + diff(None, "x\n", "fine.txt")
        )
    assert tree(tmp_path) == {"ws": "folder"}


def test_a_binary_file_is_not_patched(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\0\n")
    assert "binary" in refused(tmp_path, edits=[{"path": "a.txt", "search": "a", "replace": "b"}])


def test_placeholders_are_neither_written_nor_looked_for(tmp_path: Path) -> None:
    secret = "token=hunter2hunter2\nname=x\n"
    (tmp_path / "a.txt").write_text(secret)
    added = "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-name=x\n+name=[redacted:token:0a1b2c3d]\n"
    assert "would destroy the secret" in refused(tmp_path, diff=added)
    context = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n token=[redacted:token:0a1b2c3d]\n-name=x\n+name=y\n"
    assert "leave that line out" in refused(tmp_path, diff=context)
    assert "would destroy" in refused(
        tmp_path, edits=[{"path": "a.txt", "search": "x", "replace": "[redacted:token:0a1b2c3d]"}]
    )
    assert (
        patched(tmp_path, secret, "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-name=x\n+name=y\n")
        == "token=hunter2hunter2\nname=y\n"
    )


def test_edits_are_made_in_order_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two\n")
    (tmp_path / "b").write_text("three\n")
    edits = [
        {"path": "a", "search": "one", "replace": "two"},
        {"path": "b", "search": "three\n", "replace": ""},
        {"path": "./a", "search": "two two", "replace": "done"},
    ]
    assert call(tmp_path, "fs.patch", edits=edits).outcome == "ok"
    assert tree(tmp_path) == {"a": b"done\n", "b": b""}


def test_a_text_that_occurs_more_than_once_must_be_meant(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\n")
    edit = {"path": "a", "search": "x", "replace": "z"}
    assert "occurs 2 times, at lines 1, 3" in refused(tmp_path, edits=[edit])
    assert call(tmp_path, "fs.patch", edits=[{**edit, "all": True}]).outcome == "ok"
    assert tree(tmp_path) == {"a": b"z\ny\nz\n"}


def test_an_edit_tolerates_white_space_and_keeps_the_files_manner(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"if x:\r\n\tfoo()\r\n\tbar()\r\n")
    result = call(
        tmp_path,
        "fs.patch",
        edits=[{"path": "a", "search": "    foo()\n    bar()\n", "replace": "    baz()\n"}],
    )
    assert "white space" in result.text
    assert tree(tmp_path) == {"a": b"if x:\r\n\tbaz()\r\n"}


def test_a_text_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("def compute_total(items):\n    return sum(items)\n")
    said = refused(
        tmp_path, edits=[{"path": "a", "search": "def compute_totals(item):", "replace": "x"}]
    )
    assert "1: def compute_total(items):" in said


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {
            "diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "edits": [{"path": "x", "search": "a", "replace": "b"}],
        },
        {"edits": [{"path": "a.txt", "search": "x", "replace": "x"}]},
        {"edits": [{"path": "missing", "search": "x", "replace": "y"}]},
    ],
)
def test_a_patch_that_says_nothing_or_too_much_is_refused(
    tmp_path: Path, arguments: dict[str, object]
) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    refused(tmp_path, **arguments)


def test_the_subjects_of_a_patch_cover_all_its_files(tmp_path: Path) -> None:
    tool, typed = parsed(
        "fs.patch", {"diff": diff(None, "x\n", "src/a/1") + diff(None, "x\n", "src/b/2")}
    )
    scope = tool.scope(typed, str(tmp_path))
    assert tool.subjects(scope) == (
        Subject("fs.patch", "path_prefix", f"{tmp_path}/src"),
        Subject("fs.patch", "path_prefix", f"{tmp_path}"),
        Subject("fs.patch", "tool"),
    )
    assert all(subject.covers("fs.patch", scope) for subject in tool.subjects(scope))


def test_the_preview_of_a_patch_is_what_it_will_do_not_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0\n" + POEM)
    tool, typed = parsed("fs.patch", {"diff": diff(POEM, POEM.replace("line 9\n", "nine\n"))})
    preview = tool.preview(typed, str(tmp_path))
    assert preview.title == "change a.txt (+1 -1)"
    assert "@@ -7,7 +7,7 @@" in preview.body
