"""fs.write replaces a file whole or not at all, keeps its mode, and leaves nothing behind."""

import asyncio
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.tools import Subject
from palyra.tools import previews
from palyra.tools.files import content as files_content
from palyra.tools.files.content import Content, ContentChange
from palyra.tools.paths import PathGuard
from tests.tools_at_work import call, catalogue, context, parsed, tree, without_privileges


def test_a_file_is_created_with_its_folders(tmp_path: Path) -> None:
    result = call(tmp_path, "fs.write", path="a/b/c.txt", content="héllo\n")
    assert result.outcome == "ok"
    assert result.data == {"changes": [{"path": "a/b/c.txt", "change": "created"}]}
    assert tree(tmp_path) == {"a": "folder", "a/b": "folder", "a/b/c.txt": "héllo\n".encode()}


def test_a_file_is_overwritten_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o751)
    result = call(tmp_path, "fs.write", path="run.sh", content="new")
    assert result.data == {"changes": [{"path": "run.sh", "change": "modified"}]}
    assert ((tmp_path / "run.sh").read_text(), (tmp_path / "run.sh").stat().st_mode & 0o777) == (
        "new",
        0o751,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.chown(tmp_path / "a", 1234, 1234)
    call(tmp_path, "fs.write", path="a", content="new")
    assert (tmp_path / "a").stat().st_uid == 1234


def test_an_expected_digest_guards_against_other_peoples_changes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    digest = sha256(b"old").hexdigest()
    assert (
        call(tmp_path, "fs.write", path="a", content="1", expected_sha256="0" * 64).data["code"]
        == "conflict"
    )
    assert (
        call(tmp_path, "fs.write", path="b", content="1", expected_sha256=digest).data["code"]
        == "conflict"
    )
    assert (tmp_path / "a").read_text() == "old"
    assert (
        call(tmp_path, "fs.write", path="a", content="2", expected_sha256=digest[:16]).outcome
        == "ok"
    )


def test_a_placeholder_is_never_written_over_the_secret_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("key=hunter2")
    result = call(tmp_path, "fs.write", path="a", content="key=[redacted:password:0a1b2c3d]\n")
    assert result.outcome == "error"
    assert "fs.patch" in result.text
    assert (tmp_path / "a").read_text() == "key=hunter2"


def test_a_read_only_file_is_left_alone_even_for_root(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o444)
    assert call(tmp_path, "fs.write", path="a", content="new").outcome == "error"
    assert tree(tmp_path) == {"a": b"old"}


def test_a_folder_without_permission_is_an_error_in_words(own_folder: Path) -> None:
    (own_folder / "d").mkdir(mode=0o555)
    with without_privileges(own_folder):
        result = call(own_folder, "fs.write", path="d/sub/a", content="x")
    assert result.text == "fs.write: permission denied"
    assert tree(own_folder) == {"d": "folder"}


@pytest.mark.parametrize("path", ["d", "f/below", "."])
def test_what_is_no_place_for_a_file_is_an_error_in_words(tmp_path: Path, path: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    before = tree(tmp_path)
    result = call(tmp_path, "fs.write", path=path, content="x")
    assert result.outcome in ("error", "denied")
    assert tree(tmp_path) == before


def test_content_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    assert (
        call(tmp_path, "fs.write", path="a", content="x" * ((1 << 20) + 1)).data["code"]
        == "limit_exceeded"
    )
    assert call(tmp_path, "fs.write", path="a", content="\ud800").data["code"] == "invalid_input"
    assert tree(tmp_path) == {}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Path:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    return disk


def test_a_full_disk_changes_nothing_and_leaves_nothing(tiny_disk: Path) -> None:
    try:
        (tiny_disk / "a").write_text("old")
        result = call(tiny_disk, "fs.write", path="new/folder/a", content="x" * 200_000)
        assert "no space left" in result.text
        assert call(tiny_disk, "fs.write", path="a", content="x" * 200_000).outcome == "error"
        assert tree(tiny_disk) == {"a": b"old"}
    finally:
        subprocess.run(["umount", str(tiny_disk)], check=True)


def test_a_file_size_limit_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        result = call(tmp_path, "fs.write", path="a", content="x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.outcome == "error"
    assert tree(tmp_path) == {"a": b"old"}


def changes(folder: Path, contents: dict[str, str | None]) -> list[ContentChange]:
    made = []
    for name, content in contents.items():
        place = PathGuard().place(name, str(folder), writing=True)
        made.append(
            ContentChange(
                place,
                files_content.read(place, 1000),
                content.encode() if content is not None else None,
            )
        )
    return made


def test_several_files_change_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    files_content.apply(changes(tmp_path, {"a": "A", "b": None, "c/d": "C"}))
    assert tree(tmp_path) == {"a": b"A", "c": "folder", "c/d": b"C"}


def test_a_failure_while_staging_leaves_every_file_and_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "z").mkdir()
    with pytest.raises(IsADirectoryError):
        files_content.apply(
            [
                *changes(tmp_path, {"a": "A", "n/e/w": "N"}),
                ContentChange(PathGuard().place("z", str(tmp_path)), None, b"Z"),
            ]
        )
    assert tree(tmp_path) == {"a": b"a", "z": "folder"}


def test_a_failure_while_renaming_puts_the_first_files_back(tmp_path: Path) -> None:
    """The second file's folder is taken away between staging and renaming: the stop flag is asked
    exactly there.
    """
    (tmp_path / "a").write_text("a")
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "b").write_text("b")

    class Meddler(threading.Event):
        def is_set(self) -> bool:
            (tmp_path / "b").unlink()
            (tmp_path / "b").mkdir()
            return False

    with pytest.raises(IsADirectoryError):
        files_content.apply(changes(tmp_path, {"a": "A", "b": "B", "new": "N"}), Meddler())
    assert tree(tmp_path) == {"a": b"a", "b": "folder"}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_what_a_crash_left_is_swept_by_the_next_write_but_not_what_is_being_written(
    tmp_path: Path,
) -> None:
    (tmp_path / ".palyra-tmp-crashed").write_text("half")
    (tmp_path / ".palyra-tmp-linked").symlink_to("/etc/passwd")
    with (tmp_path / ".palyra-tmp-busy").open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        call(tmp_path, "fs.write", path="a", content="x")
        assert tree(tmp_path) == {".palyra-tmp-busy": b"", "a": b"x"}
    call(tmp_path, "fs.write", path="a", content="y")
    assert tree(tmp_path) == {"a": b"y"}


def test_many_writers_of_one_file_never_mix_their_contents(tmp_path: Path) -> None:
    tools = catalogue()
    contents = [str(number) * 20_000 for number in range(8)]

    async def main() -> None:
        calls = [
            tools.parse("fs.write", {"path": "a", "content": content}) for content in contents * 4
        ]
        results = await asyncio.gather(
            *(tool.execute(typed, context(tmp_path)) for tool, typed, _ in calls)
        )
        assert {result.outcome for result in results} == {"ok"}

    asyncio.run(main())
    assert (tmp_path / "a").read_text() in contents
    assert list(tree(tmp_path)) == ["a"]


def test_a_cancelled_write_has_happened_or_not_when_the_cancel_is_heard(tmp_path: Path) -> None:
    tool, typed = parsed("fs.write", {"path": "d/a", "content": "new" * 100_000})
    seen = set()
    for turns in range(40):
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d" / "a").write_text("old")

        async def main(turns: int = turns) -> None:
            work = asyncio.ensure_future(tool.execute(typed, context(tmp_path)))
            for _ in range(turns):
                await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait([work], timeout=10)
            # From here on nothing may change any more.
            before = tree(tmp_path)
            assert set(before) == {"d", "d/a"}
            seen.add(bytes(before["d/a"])[:3])  # type: ignore[arg-type]
            await asyncio.to_thread(lambda: None)
            assert tree(tmp_path) == before

        asyncio.run(main())
    assert seen <= {b"old", b"new"}


WRITER = """
import itertools, sys
from pathlib import Path
from tests.tools_at_work import call
for content in itertools.cycle(["a" * 300_000, "b" * 300_000]):
    call(Path(sys.argv[1]), "fs.write", path="file", content=content)
    print("wrote", flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_file_and_at_most_one_leftover(
    tmp_path: Path,
) -> None:
    root = Path(__file__).parents[3]
    for round_number in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], cwd=root, stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(2 + round_number):
                assert writer.stdout.readline() == b"wrote\n"
            writer.kill()
        assert (tmp_path / "file").read_text() in ("a" * 300_000, "b" * 300_000)
        leftovers = [path.name for path in tmp_path.iterdir() if path.name != "file"]
        assert len(leftovers) <= 1
        assert all(name.startswith(".palyra-tmp-") for name in leftovers)
    assert call(tmp_path, "fs.write", path="file", content="end").outcome == "ok"
    assert tree(tmp_path) == {"file": b"end"}


def test_a_write_that_is_stopped_before_it_began_changes_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(files_content.WriteStopped):
        files_content.apply(changes(tmp_path, {"a/b": "x"}), stop)
    assert tree(tmp_path) == {}


def test_the_preview_is_the_diff_of_the_real_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 21)))
    tool, typed = parsed(
        "fs.write",
        {"path": "a.txt", "content": "".join(f"{n}\n" for n in range(1, 21) if n != 10) + "end"},
    )
    preview = tool.preview(typed, str(tmp_path))
    assert (preview.kind, preview.title) == ("diff", "change a.txt (+1 -1)")
    assert preview.body.split("\n") == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -7,7 +7,6 @@",
        " 7",
        " 8",
        " 9",
        "-10",
        " 11",
        " 12",
        " 13",
        "@@ -18,3 +17,4 @@",
        " 18",
        " 19",
        " 20",
        "+end",
        "\\ No newline at end of file",
    ]
    assert tree(tmp_path)["a.txt"] == "".join(f"{n}\n" for n in range(1, 21)).encode()


def test_a_preview_of_a_new_file_shows_all_of_it(tmp_path: Path) -> None:
    tool, typed = parsed("fs.write", {"path": "n", "content": "x\n"})
    preview = tool.preview(typed, str(tmp_path))
    assert (preview.title, preview.body) == (
        "create n (+1 -0)",
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\n", "a"),
        (b"a\n", "a \n"),
        (b"a\xff\n", "a\ufffd\n"),
        (b"a\n", "a\u200b\n"),
        (b"a\n", "a\u202eb\n"),
    ],
)
def test_no_change_is_invisible_in_a_preview(tmp_path: Path, old: bytes, new: str) -> None:
    (tmp_path / "a").write_bytes(old)
    tool, typed = parsed("fs.write", {"path": "a", "content": new})
    body = tool.preview(typed, str(tmp_path)).body
    shown = [line for line in body.split("\n")[2:] if line[:1] in "+-"]
    assert len(set(shown)) == len(shown) >= 2
    assert "\u202e" not in body


def test_a_preview_of_a_huge_change_is_whole_and_cut_where_it_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"old {n}\n" for n in range(20_000)))
    tool, typed = parsed(
        "fs.write", {"path": "a", "content": "".join(f"new {n}\n" for n in range(20_000))}
    )
    preview = tool.preview(typed, str(tmp_path))
    assert preview.title == "change a (+20000 -20000)"
    assert preview.body.count("\n+new ") == 20_000
    shown = previews.finished(preview, str, "")
    assert len(shown.body) < 70_000
    assert shown.length == len(preview.body)
    assert (
        "-old 0\n" in shown.body,
        "characters are not shown here" in shown.body,
        shown.body.endswith("+new 19999"),
    ) == (True,) * 3


def test_the_scope_is_the_resolved_path_and_subjects_go_from_narrow_to_wide(tmp_path: Path) -> None:
    tool, typed = parsed("fs.write", {"path": "./src/../src/a.py", "content": ""})
    scope = tool.scope(typed, str(tmp_path))
    assert scope.paths == (f"{tmp_path}/src/a.py",)
    assert tool.subjects(scope) == (
        Subject("fs.write", "path_prefix", f"{tmp_path}/src/a.py"),
        Subject("fs.write", "path_prefix", f"{tmp_path}/src"),
        Subject("fs.write", "path_prefix", f"{tmp_path}"),
        Subject("fs.write", "tool"),
    )
    assert all(subject.covers("fs.write", scope) for subject in tool.subjects(scope))


def test_a_preview_that_cannot_be_made_is_an_error_of_our_family(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    tool, typed = parsed("fs.write", {"path": "d", "content": ""})
    with pytest.raises(InvalidInput):
        tool.preview(typed, str(tmp_path))


def test_reading_a_whole_file_gives_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0o600)
    assert files_content.read(PathGuard().place("a", str(tmp_path)), 10) == Content(b"x", 0o600)
