"""A checkpoint puts back the exact bytes, twice without harm, and never over somebody else's
work.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, PalyraError
from palyra.core.events import FileChange
from palyra.tools.files import checkpoints
from palyra.tools.files.changes import ChangingTool
from palyra.tools.files.checkpoints import Reversible, Sealer
from tests.tools_at_work import call, catalogue, context, parsed, tree


def prepared(folder: Path, name: str, **arguments: Any) -> bytes:
    tool, typed = parsed(name, arguments)
    assert isinstance(tool, ChangingTool)
    return checkpoints.prepare(tool, typed, str(folder))


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(b"old\r\n\xff\0")
    (tmp_path / "a.txt").chmod(0o640)
    (tmp_path / "b.txt").write_text("b\n")
    return tmp_path


PATCH: dict[str, Any] = {
    "diff": "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n--- /dev/null\n+++ b/n/e/w.txt\n@@ -0,0 +1 @@\n+new\n",
}


def test_an_overwritten_file_comes_back_with_its_bytes_and_its_mode(ws: Path) -> None:
    before = tree(ws)
    blob = prepared(ws, "fs.write", path="a.txt", content="new")
    call(ws, "fs.write", path="a.txt", content="new")
    (ws / "a.txt").chmod(0o600)
    assert checkpoints.restore(blob, str(ws)) == [FileChange("a.txt", "restored")]
    assert tree(ws) == before
    assert (ws / "a.txt").stat().st_mode & 0o777 == 0o640


def test_what_was_created_goes_and_what_was_deleted_returns(ws: Path) -> None:
    before = tree(ws)
    blob = prepared(ws, "fs.patch", **PATCH)
    assert call(ws, "fs.patch", **PATCH).outcome == "ok"
    assert checkpoints.restore(blob, str(ws)) == [
        FileChange("b.txt", "restored"),
        FileChange("n/e/w.txt", "deleted"),
    ]
    assert tree(ws) == before


def test_restoring_twice_changes_nothing_more(ws: Path) -> None:
    blob = prepared(ws, "fs.patch", **PATCH)
    call(ws, "fs.patch", **PATCH)
    checkpoints.restore(blob, str(ws))
    before = tree(ws)
    assert checkpoints.restore(blob, str(ws)) == []
    assert tree(ws) == before


def test_a_call_that_never_ran_has_nothing_to_restore(ws: Path) -> None:
    before = tree(ws)
    assert checkpoints.restore(prepared(ws, "fs.patch", **PATCH), str(ws)) == []
    assert tree(ws) == before


def test_a_call_that_crashed_half_way_is_rolled_back_with_its_debris(ws: Path) -> None:
    before = tree(ws)
    blob = prepared(ws, "fs.patch", **PATCH)
    (ws / "b.txt").unlink()
    (ws / "n" / "e").mkdir(parents=True)
    (ws / "n" / "e" / ".palyra-tmp-0011").write_text("half")
    assert checkpoints.restore(blob, str(ws)) == [FileChange("b.txt", "restored")]
    assert tree(ws) == before


def test_somebody_elses_change_is_a_conflict_and_nothing_is_touched(ws: Path) -> None:
    blob = prepared(ws, "fs.patch", **PATCH)
    call(ws, "fs.patch", **PATCH)
    (ws / "n" / "e" / "w.txt").write_text("edited by hand\n")
    before = tree(ws)
    with pytest.raises(Conflict) as conflict:
        checkpoints.restore(blob, str(ws))
    assert conflict.value.details["files"] == ("n/e/w.txt",)
    assert tree(ws) == before
    assert len(checkpoints.restore(blob, str(ws), force=True)) == 2
    assert set(tree(ws)) == {"a.txt", "b.txt"}


@pytest.mark.parametrize("instead", ["folder", "link"])
def test_something_else_in_the_files_place_is_a_conflict(ws: Path, instead: str) -> None:
    blob = prepared(ws, "fs.write", path="a.txt", content="new")
    (ws / "a.txt").unlink()
    if instead == "folder":
        (ws / "a.txt").mkdir()
    else:
        (ws / "a.txt").symlink_to("/etc/passwd")
    with pytest.raises(Conflict):
        checkpoints.restore(blob, str(ws))
    if instead == "link":
        assert checkpoints.restore(blob, str(ws), force=True) == [FileChange("a.txt", "restored")]
        assert (ws / "a.txt").read_bytes() == b"old\r\n\xff\0"


def test_a_folder_that_became_a_link_is_not_followed(
    ws: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    blob = prepared(ws, "fs.write", path="d/a.txt", content="new")
    call(ws, "fs.write", path="d/a.txt", content="new")
    (ws / "d" / "a.txt").rename(outside / "a.txt")
    (ws / "d").rmdir()
    (ws / "d").symlink_to(outside)
    with pytest.raises(PalyraError):
        checkpoints.restore(blob, str(ws), force=True)
    assert tree(outside) == {"a.txt": b"new"}


def test_a_link_that_was_replaced_is_a_link_again(ws: Path) -> None:
    (ws / "link").symlink_to("b.txt")
    blob = checkpoints.capture(["link"], str(ws), {})
    (ws / "link").unlink()
    (ws / "link").write_text("now a file")
    with pytest.raises(Conflict):
        checkpoints.restore(blob, str(ws))
    checkpoints.restore(blob, str(ws), force=True)
    assert os.readlink(ws / "link") == "b.txt"


def test_a_checkpoint_serves_a_workspace_that_has_moved(
    ws: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    moved = tmp_path_factory.mktemp("moved") / "ws"
    blob = prepared(ws, "fs.write", path="b.txt", content="new")
    call(ws, "fs.write", path="b.txt", content="new")
    ws.rename(moved)
    checkpoints.restore(blob, str(moved))
    assert (moved / "b.txt").read_text() == "b\n"
    ws.mkdir()


def test_too_many_files_or_bytes_stop_a_call_before_it_starts(ws: Path) -> None:
    with pytest.raises(LimitExceeded):
        checkpoints.capture([f"f{number}" for number in range(65)], str(ws), {})
    for name in ("big1", "big2"):
        with (ws / name).open("wb") as file:
            file.truncate(17 << 20)
    with pytest.raises(LimitExceeded):
        checkpoints.capture(["big1", "big2"], str(ws), {})
    assert checkpoints.restore(checkpoints.capture(["big1"], str(ws), {}), str(ws)) == []


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/config", ".env", "."])
def test_no_checkpoint_reaches_outside(ws: Path, path: str) -> None:
    with pytest.raises(PalyraError):
        checkpoints.capture([path], str(ws), {})


def test_a_full_round_with_every_reversible_tool_of_the_catalogue(ws: Path) -> None:
    calls: dict[str, dict[str, Any]] = {
        "fs.write": {"path": "a.txt", "content": "x"},
        "fs.patch": PATCH,
        "test.reversible": {"path": "b.txt", "line": "more"},
    }
    tools = catalogue()
    assert {spec.name for spec in tools.specs() if spec.effect == "reversible"} == set(calls)
    for name, arguments in calls.items():
        before = tree(ws)
        tool, typed, _ = tools.parse(name, arguments)
        reversible: Reversible = tool  # type: ignore[assignment]
        blob = checkpoints.prepare(reversible, typed, str(ws))
        assert asyncio.run(tool.execute(typed, context(ws))).outcome == "ok"
        assert tree(ws) != before
        checkpoints.restore(blob, str(ws))
        assert tree(ws) == before


CONTENTS = st.none() | st.binary(max_size=40)


@settings(max_examples=150, deadline=None)
@given(
    before=st.lists(CONTENTS, min_size=3, max_size=3),
    after=st.lists(CONTENTS, min_size=3, max_size=3),
    done=st.integers(0, 3),
)
def test_restoring_gives_back_any_state_from_any_point_of_the_call(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[bytes | None],
    after: list[bytes | None],
    done: int,
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    names = ["a", "d/b", "d/e/c"]

    def put(name: str, content: bytes | None) -> None:
        path = folder / name
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif path.exists():
            path.unlink()

    for name, content in zip(names, before, strict=True):
        put(name, content)
    state = tree(folder)
    digests = {
        str(folder / name): checkpoints.digest_of(content) if content is not None else ""
        for name, content in zip(names, after, strict=True)
    }
    blob = checkpoints.capture(names, str(folder), digests)
    for name, content in list(zip(names, after, strict=True))[:done]:
        put(name, content)
    checkpoints.restore(blob, str(folder))
    assert tree(folder) == state


def test_a_sealed_checkpoint_shows_nothing_and_opens_again() -> None:
    sealer = Sealer(bytes(range(32)))
    sealed = sealer.seal(b"password=hunter2", "call-1")
    assert b"hunter2" not in sealed
    assert sealer.seal(b"password=hunter2", "call-1") != sealed
    assert sealer.open(sealed, "call-1") == b"password=hunter2"


@pytest.mark.parametrize("how", ["other key", "other call", "changed", "cut", "empty"])
def test_a_seal_opens_for_nobody_else_and_shows_damage(how: str) -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"content", "call-1")
    opener = Sealer(bytes([1] * 32)) if how == "other key" else sealer
    damaged = {
        "changed": sealed[:-1] + bytes([sealed[-1] ^ 1]),
        "cut": sealed[:10],
        "empty": b"",
    }.get(how, sealed)
    with pytest.raises(InvalidInput):
        opener.open(damaged, "call-2" if how == "other call" else "call-1")


def test_a_key_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError):
        Sealer(b"short")


@pytest.mark.parametrize("blob", [b"", b"nonsense", b"x\x9cnonsense"])
def test_a_damaged_checkpoint_is_refused_in_words(ws: Path, blob: bytes) -> None:
    with pytest.raises(InvalidInput):
        checkpoints.restore(blob, str(ws))
