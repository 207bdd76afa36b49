"""fs.read, fs.list and artifact.read show what is there, in pages, and say what they left out."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.tools import ToolResult
from tests.tools_at_work import ARTIFACTS, call, without_privileges


def body(result: ToolResult) -> str:
    return result.text.partition("\n")[2]


def header(result: ToolResult) -> str:
    return result.text.partition("\n")[0]


def test_a_small_file_is_shown_whole_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    result = call(tmp_path, "fs.read", path="a.txt")
    digest = sha256(b"one\ntwo\n").hexdigest()
    assert (result.outcome, body(result)) == ("ok", "one\ntwo\n")
    assert header(result) == f"a.txt: lines 1-2 of 2, 8 bytes, sha256 {digest[:16]}"
    assert result.data == {"path": "a.txt", "size": 8, "lines": 2, "sha256": digest}


def test_a_page_is_asked_for_by_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    result = call(tmp_path, "fs.read", path="a.txt", offset=4, limit=2)
    assert body(result) == "line 4\nline 5\n"
    assert "lines 4-5 of 10" in header(result)
    assert "continue with offset 6" in header(result)


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    assert body(call(tmp_path, "fs.read", path="a.txt", offset=2)) == "two"


def test_a_line_that_is_not_there_is_an_error_that_says_how_many_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    result = call(tmp_path, "fs.read", path="a.txt", offset=9)
    assert (result.outcome, "has 1 lines" in result.text) == ("error", True)


def test_an_empty_file_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    result = call(tmp_path, "fs.read", path="a.txt")
    assert (result.outcome, body(result)) == ("ok", "")


def test_a_long_file_is_cut_at_128_kib_on_a_line_and_can_be_continued(tmp_path: Path) -> None:
    lines = [f"{number:06} {'x' * 90}\n" for number in range(1, 4001)]
    (tmp_path / "a.txt").write_text("".join(lines))
    seen, offset = "", 1
    while offset <= len(lines):
        result = call(tmp_path, "fs.read", path="a.txt", offset=offset, limit=4000)
        assert len(result.text.encode()) <= 128 << 10
        page = body(result)
        assert page.endswith("\n")
        seen += page
        offset += page.count("\n")
    assert seen == "".join(lines)


def test_a_huge_file_is_read_by_the_page_without_being_loaded(tmp_path: Path) -> None:
    with (tmp_path / "huge.log").open("wb") as file:
        file.write(b"first\n")
        file.truncate(8 << 30)
        file.seek(0)
        file.write(b"first line\n" + b"x" * 20_000)
    result = call(tmp_path, "fs.read", path="huge.log", limit=1)
    assert (result.outcome, body(result)) == ("ok", "first line\n")
    assert "more than" in header(result)


def test_one_endless_line_is_cut_between_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 200_000)
    result = call(tmp_path, "fs.read", path="a.txt")
    assert set(body(result)) == {"é"}
    assert "cut" in header(result) or len(result.text.encode()) <= 128 << 10


@pytest.mark.parametrize("content", [b"\x7fELF\0\0", b"abc\0def", b"\xff\xfeh\0i\0"])
def test_a_binary_file_is_named_as_such(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    result = call(tmp_path, "fs.read", path="a.bin")
    assert result.outcome == "error"
    assert f"{len(content)} bytes" in result.text


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 \xef\xbf\xbd\n")
    result = call(tmp_path, "fs.read", path="a.txt")
    assert body(result) == "caf� �\n"
    assert "1 bytes are not UTF-8" in header(result)


def test_a_page_of_invalid_bytes_stays_within_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff" * 300_000)
    assert len(call(tmp_path, "fs.read", path="a.txt").text.encode()) <= 128 << 10


@pytest.mark.parametrize("path", ["missing.txt", "missing/deep.txt", "a.txt/below", "."])
def test_what_cannot_be_read_is_an_error_in_words(tmp_path: Path, path: str) -> None:
    (tmp_path / "a.txt").write_text("x")
    result = call(tmp_path, "fs.read", path=path)
    assert result.outcome == "error"
    assert "Errno" not in result.text


def test_a_file_without_permission_is_an_error_in_words(own_folder: Path) -> None:
    (own_folder / "a.txt").write_text("x")
    (own_folder / "a.txt").chmod(0)
    with without_privileges(own_folder):
        assert call(own_folder, "fs.read", path="a.txt").text == "a.txt: permission denied"


@given(
    st.lists(st.text(alphabet="ab é\r", max_size=4), max_size=12),
    st.integers(1, 14),
    st.integers(1, 14),
)
def test_any_page_is_exactly_those_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], offset: int, limit: int
) -> None:
    folder = tmp_path_factory.mktemp("page")
    content = "\n".join(lines)
    (folder / "a.txt").write_bytes(content.encode())
    kept = (
        content.split("\n")[:-1]
        if content.endswith("\n")
        else content.split("\n")
        if content
        else []
    )
    result = call(folder, "fs.read", path="a.txt", offset=offset, limit=limit)
    if offset > max(len(kept), 1):
        assert result.outcome == "error"
        return
    wanted = kept[offset - 1 : offset - 1 + limit]
    ended = content.endswith("\n") or offset - 1 + limit < len(kept)
    assert body(result) == "\n".join(wanted) + ("\n" if ended and wanted else "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, content in {
        "README.md": "hello",
        "src/main.py": "print(1)\n",
        "src/deep/er/x.py": "x",
        ".env": "KEY=1",
        ".git/config": "x",
        "build/out.o": "x",
        ".gitignore": "build/\n*.log\n",
        "a.log": "x",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_a_folder_is_listed_with_sizes_and_without_what_is_ignored(project: Path) -> None:
    result = call(project, "fs.list")
    assert result.text.split("\n") == [
        ".: 7 entries; 2 ignored by .gitignore left out",
        ".env  5  (protected)",
        ".git/  (protected)",
        ".gitignore  13",
        "README.md  5",
        "link -> /etc",
        "pipe  (not a file)",
        "src/",
    ]


def test_a_listing_goes_as_deep_as_asked_and_never_into_protected_folders(project: Path) -> None:
    lines = call(project, "fs.list", depth=3, ignored=True).text.split("\n")
    assert "build/out.o  1" in lines
    assert "src/deep/er/" in lines
    assert "src/deep/er/x.py  1" not in lines
    assert not [line for line in lines if line.startswith(".git/c")]
    assert not [line for line in lines if line.startswith("link/")]


def test_a_listing_is_bounded_and_says_that_there_is_more(project: Path) -> None:
    result = call(project, "fs.list", limit=2)
    assert len(result.text.split("\n")) == 3
    assert result.data == {"entries": 2, "more": True}


def test_names_of_any_bytes_are_listed_in_printable_form(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff\n\x1b[31m"))).touch()
    text = call(tmp_path, "fs.list").text
    assert all(char.isprintable() for char in text.replace("\n", "", 1))


def test_listing_a_file_is_an_error(project: Path) -> None:
    assert call(project, "fs.list", path="README.md").outcome == "error"


def test_an_artifact_is_read_in_pages_that_join_to_the_whole(tmp_path: Path) -> None:
    whole = "zeile äöü €\n" * 2000
    ARTIFACTS["session", "A1"] = whole.encode()
    seen = ""
    offset: int | None = 0
    while offset is not None:
        result = call(tmp_path, "artifact.read", id="A1", offset=offset)
        assert len(result.text.encode()) <= 8 << 10
        seen += body(result)
        offset = result.data["next"]
    assert seen == whole


def test_an_artifact_of_another_session_does_not_exist(tmp_path: Path) -> None:
    ARTIFACTS["other", "A2"] = b"secret"
    result = call(tmp_path, "artifact.read", id="A2")
    assert (result.outcome, "secret" in result.text) == ("error", False)


@given(st.binary(min_size=1, max_size=60).filter(lambda data: b"\0" not in data), st.integers(1, 9))
def test_reading_on_always_gets_further(data: bytes, limit: int) -> None:
    ARTIFACTS["session", "A3"] = data
    offset: int | None = 0
    steps = 0
    while offset is not None:
        following = call(Path("/"), "artifact.read", id="A3", offset=offset, limit=limit).data[
            "next"
        ]
        assert following is None or following > offset
        offset = following
        steps += 1
    assert steps <= len(data)
