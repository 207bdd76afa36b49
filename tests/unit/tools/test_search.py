"""fs.search finds matching lines, honours .gitignore, and cannot be made to hang."""

import asyncio
import time
from pathlib import Path

import pytest

from palyra.tools.files.search import FileSearch
from palyra.tools.paths import PathGuard
from tests.escapes.world import patience
from tests.tools_at_work import call, catalogue, context, without_privileges


def fill(folder: Path, contents: dict[str, str]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def found(folder: Path, pattern: str, **arguments: object) -> list[str]:
    result = call(folder, "fs.search", pattern=pattern, **arguments)
    assert result.outcome == "ok", result.text
    return result.text.split("\n")[1:]


def files(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("  ")]


def test_matching_lines_are_shown_with_their_numbers(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "a.py": "import os\n\ndef main():\n    return os\n",
            "b/c.py": "def other(): ...\n",
            "d.txt": "nothing",
        },
    )
    assert found(tmp_path, r"^def \w+") == [
        "a.py",
        "  line 3: def main():",
        "b/c.py",
        "  line 1: def other(): ...",
    ]


def test_files_whose_names_match_are_named_where_no_line_does(tmp_path: Path) -> None:
    fill(tmp_path, {"config.ini": "port = 1\n", "b/config.ini.bak": "x\n", "d.txt": "nothing"})
    told = call(tmp_path, "fs.search", pattern="config.ini").text
    assert told == (
        "no line matches, but names of files do: b/config.ini.bak, config.ini; read one with fs.read"
    )
    fill(tmp_path, {"e.txt": "see config.ini\n"})
    assert "names of files" not in call(tmp_path, "fs.search", pattern="config.ini").text


def test_context_is_shown_once_where_it_overlaps(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "".join(f"{n}{'!' if n in (3, 5, 9) else ''}\n" for n in range(1, 11))})
    assert found(tmp_path, "!", context=1) == [
        "a",
        "  line 2- 2",
        "  line 3: 3!",
        "  line 4- 4",
        "  line 5: 5!",
        "  line 6- 6",
        "  --",
        "  line 8- 8",
        "  line 9: 9!",
        "  line 10- 10",
    ]


def test_a_pattern_matches_within_a_line_only(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "one\ntwo\n"})
    assert found(tmp_path, r"one[^x]*two") == []
    assert found(tmp_path, r"o$") == ["a", "  line 2: two"]
    assert found(tmp_path, r"x*") == ["a", "  line 1: one", "  line 2: two"]


def test_case_and_unicode(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "Größe\nGRÖSSE\n"})
    assert found(tmp_path, "größe") == []
    assert found(tmp_path, "größe", ignore_case=True) == ["a", "  line 1: Größe"]
    assert found(tmp_path, r"Gr.ße") == ["a", "  line 1: Größe"]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("src/**", ["src/b.py", "src/c.ts"]),
        ("**/*.ts", ["src/c.ts"]),
        ("*.{ts}", []),
        ("a.py", ["a.py"]),
    ],
)
def test_a_glob_chooses_the_files(tmp_path: Path, glob: str, names: list[str]) -> None:
    fill(tmp_path, {"a.py": "x", "src/b.py": "x", "src/c.ts": "x"})
    assert files(found(tmp_path, "x", glob=glob)) == names


def test_a_search_may_begin_at_a_folder_or_a_file(tmp_path: Path) -> None:
    fill(tmp_path, {"a.py": "x", "src/b.py": "x"})
    assert files(found(tmp_path, "x", path="src")) == ["src/b.py"]
    assert files(found(tmp_path, "x", path="src/b.py")) == ["src/b.py"]
    assert files(found(tmp_path, "x", path="src", glob="/b.py")) == ["src/b.py"]


def test_gitignore_is_honoured_also_when_it_is_nested(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/only_here.txt\n\\\n",
            "a.log": "x",
            "build/deep/a.txt": "x",
            "only_here.txt": "x",
            "sub/only_here.txt": "x",
            "sub/.gitignore": "!keep.log\nlocal.txt\n",
            "sub/keep.log": "x",
            "sub/other.log": "x",
            "sub/local.txt": "x",
            "local.txt": "x",
        },
    )
    assert files(found(tmp_path, "x", glob="*.[lt]*")) == [
        "local.txt",
        "sub/keep.log",
        "sub/only_here.txt",
    ]
    # The rules above a folder count when the search begins inside it.
    assert files(found(tmp_path, "x", path="sub", glob="*.[lt]*")) == [
        "sub/keep.log",
        "sub/only_here.txt",
    ]
    assert len(files(found(tmp_path, "x", glob="*.[lt]*", ignored=True))) == 8


def test_secrets_links_and_binaries_are_not_searched(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    fill(ws, {".env": "needle", ".git/config": "needle", "id_rsa": "needle", "ok.txt": "needle"})
    fill(tmp_path, {"outside/x.txt": "needle"})
    (ws / "link").symlink_to("../outside")
    (ws / "link.txt").symlink_to("../outside/x.txt")
    (ws / "binary").write_bytes(b"\0needle")
    result = call(ws, "fs.search", pattern="needle", ignored=True)
    assert result.text.split("\n") == [
        "1 match in 1 file; skipped files: 1 binary",
        "ok.txt",
        "  line 1: needle",
    ]


def test_results_are_bounded_and_say_so(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "x\n" * 500, "b": "x\n" * 500})
    result = call(tmp_path, "fs.search", pattern="x", limit=10)
    assert result.data == {"matches": 10, "files": 1, "complete": False}
    fill(tmp_path, {"a": ("y" * 290 + "\n") * 1000})
    assert len(call(tmp_path, "fs.search", pattern="y", limit=1000).text.encode()) <= 128 << 10


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "needle" + "x" * 1_000_000})
    (_, line) = found(tmp_path, "needle")
    assert len(line) < 400


@pytest.mark.parametrize("pattern", ["(", "a)(b", r"(?=x)", r"(a)\1", "[z-a]", "a{2000}", "*"])
def test_a_pattern_that_cannot_be_used_is_an_error_that_says_why(
    tmp_path: Path, pattern: str
) -> None:
    result = call(tmp_path, "fs.search", pattern=pattern)
    assert result.outcome == "error"
    assert "RE2" in result.text


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$x",
        "(a|aa)+b",
        "(.*)*(.*)*b$",
        "((a{0,30}){0,30})b",
        "(?:a?){900}b",
        "(((a{1,10}){1,10}){1,9})c",
    ],
)
def test_hostile_patterns_end_and_leave_the_loop_free(tmp_path: Path, pattern: str) -> None:
    """A pattern that would take `re` for ever ends by the time limit, and meanwhile the event loop
    keeps its pace.
    """
    fill(tmp_path, {f"{n}.txt": ("a" * 5000 + "\n") * 100 for n in range(8)})
    search = FileSearch(PathGuard(), time_ms=300)
    arguments = search.argument_type(pattern=pattern)
    gaps = []

    async def main() -> None:
        work = asyncio.ensure_future(search.execute(arguments, context(tmp_path)))
        while not work.done():
            began = time.monotonic()
            await asyncio.wait([work], timeout=0.01)
            gaps.append(time.monotonic() - began)
        assert work.result().outcome == "ok"

    began = time.monotonic()
    asyncio.run(main())
    took, slow = time.monotonic() - began, patience()
    assert took < 10 * slow
    assert max(gaps) < 1 * slow


def test_hostile_ignore_files_and_globs_cannot_hang(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            ".gitignore": "*a" * 100 + "b\n" + "**/" * 150 + "z\n",
            "a" * 200: "x",
            "d/" * 20 + "a" * 200: "x",
        },
    )
    began = time.monotonic()
    assert len(files(found(tmp_path, "x"))) == 2
    assert found(tmp_path, "x", glob="*a" * 100 + "b") == []
    assert time.monotonic() - began < 5 * patience()


def test_a_search_can_be_cancelled(tmp_path: Path) -> None:
    fill(tmp_path, {f"{n}.txt": "a" * 500_000 for n in range(40)})
    tool, typed, _ = catalogue().parse("fs.search", {"pattern": "((a{0,30}){0,30})b"})

    async def main() -> float:
        work = asyncio.ensure_future(tool.execute(typed, context(tmp_path)))
        await asyncio.wait([work], timeout=0.05)
        began = time.monotonic()
        work.cancel()
        await asyncio.wait([work], timeout=30)
        assert work.cancelled()
        return time.monotonic() - began

    assert asyncio.run(main()) < 5 * patience()


def test_a_folder_without_permission_is_counted(own_folder: Path) -> None:
    fill(own_folder, {"open/a": "x", "closed/b": "x"})
    (own_folder / "closed").chmod(0)
    with without_privileges(own_folder):
        result = call(own_folder, "fs.search", pattern="x")
    (own_folder / "closed").chmod(0o755)
    assert result.text.split("\n")[0] == "1 match in 1 file; skipped files: 1 unreadable"
