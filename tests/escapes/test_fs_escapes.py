"""Attempts to get out of the workspace with the file tools: by spelling, by links, by races, by
what is not a file.

Each is made twice: through the tool, where it must come to nothing even if the refusal at the door
is overlooked, and with plain file calls, where it must succeed, because an attempt that never works
proves nothing.
"""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]  # noqa: F401 - an ordinary user may not read where this interpreter's library lies

from palyra.core.errors import PalyraError
from palyra.core.ports import CallContext
from palyra.core.tools import ToolResult
from palyra.tools import standard
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard, WorkspacePath
from tests.escapes.world import SECRET, WHO, World, as_user, world

DIFF = "--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+taken\n"


READS = {
    "climbing up": "../outside/secret.txt",
    "climbing up through a folder": "conf/../../outside/secret.txt",
    "climbing up through a folder that is not there": "way-out/../outside/secret.txt",
    "an absolute path": "{outside}/secret.txt",
    "an absolute path with dots": "{work}/../outside/secret.txt",
    "two slashes": "/{outside}//secret.txt",
    "a folder that is a symlink": "way-out/secret.txt",
    "a file that is a symlink": "link.txt",
    "a chain of symlinks": "chain/secret.txt",
    "a symlink that climbs": "up/outside/secret.txt",
    "the root of this process": "/proc/self/root{outside}/secret.txt",
    "the root through a symlink": "root{outside}/secret.txt",
    "the journal": "../home/journal.db",
    "the journal through a symlink": "home-link/journal.db",
    "a hidden file": ".env",
    "a hidden file in a folder": "conf/.env.production",
    "a hidden file by a symlink of another name": "harmless.txt",
    "a key": ".ssh/id_ed25519",
    "a hidden file by a roundabout path": "conf/.././.env",
}

WRITES = {
    "climbing up": "../outside/new.txt",
    "an absolute path": "{outside}/new.txt",
    "a folder that is a symlink": "way-out/new.txt",
    "a file that is a symlink": "link.txt",
    "a chain of symlinks": "chain/new.txt",
    "a symlink to nothing yet": "dangling.txt",
    "the policies": "../home/policies/evil.cedar",
    "the policies through a symlink": "home-link/policies/evil.cedar",
    "the journal": "../home/journal.db",
    "a hook of git": ".git/hooks/post-commit",
    "settings of git": ".git/config",
    "keys that let somebody in": ".ssh/authorized_keys",
    "a hidden file": ".env",
    "another file's temporary name": "way-out/.palyra-tmp-x",
}


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        work = made.work
        (work / "link.txt").symlink_to(made.outside / "secret.txt")
        (work / "chain").symlink_to("chain2")
        (work / "chain2").symlink_to("way-out")
        (work / "up").symlink_to("..")
        (work / "root").symlink_to("/")
        (work / "home-link").symlink_to(made.home)
        (work / "harmless.txt").symlink_to(".env")
        (work / "dangling.txt").symlink_to(made.outside / "new.txt")
        os.link(made.outside / "secret.txt", work / "hard.txt")
        (work / "moving").mkdir()
        (work / "moving" / "secret.txt").write_text("plain\n")
        os.mkfifo(work / "pipe")
        yield made


def spelt(path: str, here: World) -> str:
    return path.replace("{outside}", str(here.outside)).replace("{work}", str(here.work))


def tried(
    here: World, who: str, tool: str, fence: PathGuard | None = None, **arguments: Any
) -> str:
    """What a call shows, whether or not its scope was refused first: the door and the walk must
    each hold alone.
    """
    here.owned_by(who)
    catalogue = Catalogue(
        standard.tools(fence or PathGuard([str(here.home)]), lambda artifact, session: None)
    )
    context = CallContext(
        principal="user:owner", session_id="s", run_id="r", call_id="c", workspace=str(here.work)
    )

    async def call() -> ToolResult:
        subject, typed, _ = catalogue.parse(tool, arguments)
        with contextlib.suppress(PalyraError):
            subject.scope(typed, str(here.work))
        async with asyncio.timeout(20):
            return await subject.execute(typed, context)

    result = as_user(who, lambda: asyncio.run(call()))
    return f"{result.outcome} {result.text} {result.data}"


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", READS)
def test_no_path_reads_what_lies_outside_or_is_hidden(here: World, name: str, who: str) -> None:
    path = spelt(READS[name], here)
    before = here.kept()
    said = tried(here, who, "fs.read", path=path)
    assert SECRET not in said
    assert not said.startswith("ok")
    assert here.kept() == before


@pytest.mark.parametrize("name", READS)
def test_the_same_path_opened_plainly_reads_the_secret(here: World, name: str) -> None:
    assert SECRET in Path(here.work, spelt(READS[name], here)).read_text()


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    "path", ["..", "{outside}", "way-out", "chain", "root", "home-link", ".ssh", "/proc/self"]
)
def test_no_folder_outside_is_listed_or_searched(here: World, path: str, who: str) -> None:
    folder = spelt(path, here)
    assert os.listdir(here.work / folder)
    for tool, more in (("fs.list", {"depth": 3}), ("fs.search", {"pattern": "canary"})):
        said = tried(here, who, tool, path=folder, **more)
        assert not said.startswith("ok"), said
        assert SECRET not in said
        assert "journal.db" not in said
        assert "secret.txt" not in said


@pytest.mark.parametrize("who", WHO)
def test_a_walk_goes_through_no_symlink_and_into_no_hidden_file(here: World, who: str) -> None:
    os.unlink(here.work / "hard.txt")
    said = tried(here, who, "fs.search", pattern="canary-secret", ignored=True)
    assert SECRET not in said
    assert "plain" in tried(here, who, "fs.search", pattern="plain", ignored=True), (
        "the search itself works"
    )
    listed = tried(here, who, "fs.list", depth=8, ignored=True)
    assert "journal.db" not in listed
    plain = subprocess.run(
        ["grep", "-R", "canary-secret", "--exclude=pipe", "conf", ".env", "way-out/"],
        cwd=here.work,
        capture_output=True,
        check=False,
    )
    assert SECRET.encode() in plain.stdout


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    "path", ["pipe", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/kmsg"]
)
def test_what_is_not_a_file_is_refused_without_waiting_for_it(
    here: World, path: str, who: str
) -> None:
    os.environ["DAEMON_TOKEN"] = SECRET
    try:
        said = tried(here, who, "fs.read", path=path)
    finally:
        del os.environ["DAEMON_TOKEN"]
    assert not said.startswith("ok")
    assert SECRET not in said


def test_the_environment_of_a_process_can_be_read_plainly(here: World) -> None:
    done = subprocess.run(
        ["cat", "/proc/self/environ"], env={"DAEMON_TOKEN": SECRET}, capture_output=True, check=True
    )
    assert SECRET.encode() in done.stdout


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("tool", ["fs.write", "fs.patch"])
@pytest.mark.parametrize("name", WRITES)
def test_no_path_writes_what_lies_outside_or_is_protected(
    here: World, name: str, tool: str, who: str
) -> None:
    path = spelt(WRITES[name], here)
    before = here.kept()
    arguments: dict[str, Any] = (
        {"path": path, "content": "taken\n"}
        if tool == "fs.write"
        else {"diff": DIFF.format(path=path.lstrip("/"))}
    )
    said = tried(here, who, tool, **arguments)
    # A diff knows no absolute paths: what looks like one is made below the workspace.
    assert not said.startswith("ok") or (tool == "fs.patch" and path.startswith("/")), said
    assert here.kept() == before


@pytest.mark.parametrize("name", WRITES)
def test_the_same_path_written_plainly_is_changed(here: World, name: str) -> None:
    before = here.kept()
    (here.work / ".ssh" / "authorized_keys").write_text("")
    with open(here.work / spelt(WRITES[name], here), "w") as file:
        file.write("taken\n")
    assert here.kept() != before or (here.work / ".ssh" / "authorized_keys").read_text()


@pytest.mark.parametrize("who", WHO)
def test_writing_a_file_that_has_another_name_outside_leaves_the_other_as_it_was(
    here: World, who: str
) -> None:
    before = here.kept()
    assert tried(here, who, "fs.write", path="hard.txt", content="taken\n").startswith("ok")
    assert (here.work / "hard.txt").read_text() == "taken\n"
    assert here.kept() == before


def test_plainly_such_a_write_changes_both_names(here: World) -> None:
    (here.work / "hard.txt").write_text("taken\n")
    assert (here.outside / "secret.txt").read_text() == "taken\n"


@pytest.mark.parametrize("who", WHO)
def test_deleting_by_a_patch_stays_inside(here: World, who: str) -> None:
    before = here.kept()
    for path in ("way-out/secret.txt", "link.txt", "../outside/secret.txt", ".env"):
        diff = (
            f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{SECRET}\n\\ No newline at end of file\n"
        )
        assert not tried(here, who, "fs.patch", diff=diff).startswith("ok")
    assert here.kept() == before


class Swapped(PathGuard):
    """Between the check and the use of a path, its folder becomes a symlink that leads outside: the
    worst moment, every time.
    """

    def __init__(self, here: World, swap: Callable[[World], None]) -> None:
        super().__init__([str(here.home)])
        self._here, self._swap = here, swap

    def place(self, given: str, workspace: str, *, writing: bool = False) -> WorkspacePath:
        found = super().place(given, workspace, writing=writing)
        self._swap(self._here)
        return found


def folder_for_link(here: World) -> None:
    moving = here.work / "moving"
    if not moving.is_symlink():
        moving.rename(here.work / "moved")
        moving.symlink_to(here.outside)


def file_for_link(here: World) -> None:
    inner = here.work / "moving" / "secret.txt"
    if not inner.is_symlink():
        inner.unlink()
        inner.symlink_to(here.outside / "secret.txt")


def file_for_pipe(here: World) -> None:
    inner = here.work / "moving" / "secret.txt"
    if inner.is_file():
        inner.unlink()
        os.mkfifo(inner)


CALLS: dict[str, dict[str, Any]] = {
    "fs.read": {"path": "moving/secret.txt"},
    "fs.list": {"path": "moving", "depth": 2},
    "fs.search": {"path": "moving", "pattern": "canary"},
    "fs.write": {"path": "moving/secret.txt", "content": "taken\n"},
    "fs.patch": {"edits": [{"path": "moving/secret.txt", "search": "plain", "replace": "taken"}]},
}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("swap", [folder_for_link, file_for_link, file_for_pipe])
@pytest.mark.parametrize("tool", CALLS)
def test_a_path_swapped_between_check_and_use_leads_nowhere(
    here: World, tool: str, swap: Callable[[World], None], who: str
) -> None:
    before = here.kept()
    said = tried(here, who, tool, Swapped(here, swap), **CALLS[tool])
    assert SECRET not in said
    assert here.kept() == before


def test_whoever_checks_a_path_and_then_opens_it_is_led_outside(here: World) -> None:
    path = Swapped(here, folder_for_link).place("moving/secret.txt", str(here.work)).absolute
    assert Path(path).read_text() == SECRET
    Path(path).write_text("taken\n")
    assert (here.outside / "secret.txt").read_text() == "taken\n"
