"""No spelling of a path, no link and no race leads out of the workspace, or to a key inside it."""

import ctypes
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.tools import paths
from palyra.tools.paths import PathGuard, PathRefused, WorkspacePath
from tests.tools_at_work import call, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a file, beside a folder that holds a secret."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("outside secret")
    workspace = tmp_path / "ws"
    (workspace / "docs").mkdir(parents=True)
    (workspace / "docs" / "a.txt").write_text("inside")
    return workspace


def reason(path: str, root: Path, *, writing: bool = False, forbidden: tuple[str, ...] = ()) -> str:
    with pytest.raises(PathRefused) as refusal:
        PathGuard(forbidden).place(path, str(root), writing=writing)
    return refusal.value.reason


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "..",
        "/etc/passwd",
        "docs/../../outside/secret.txt",
        "./././../outside",
        "docs/.././../outside/secret.txt",
        "/proc/self/root/etc/passwd",
        "/",
        "//etc/passwd",
        "missing/../../outside/new.txt",
    ],
)
@pytest.mark.parametrize("writing", [False, True])
def test_a_path_that_leads_outside_is_refused(root: Path, path: str, writing: bool) -> None:
    assert reason(path, root, writing=writing) == "outside"


def test_a_sibling_whose_name_begins_like_the_workspace_is_outside(root: Path) -> None:
    (root.parent / "ws-other").mkdir()
    assert reason(f"{root}-other/x", root) == "outside"


@pytest.mark.parametrize(
    "path", ["docs/a.txt", "./docs//a.txt", "docs/../docs/a.txt", "missing/../docs/a.txt"]
)
def test_every_spelling_of_an_inside_path_gives_the_same_place(root: Path, path: str) -> None:
    assert PathGuard().place(path, str(root)) == WorkspacePath(str(root), "docs/a.txt")
    assert PathGuard().place(f"{root}/{path}", str(root), writing=True) == WorkspacePath(
        str(root), "docs/a.txt"
    )


def test_a_workspace_without_its_first_slash_is_the_workspace(root: Path) -> None:
    """Models that are told where they work write paths like this."""
    own = str(root).lstrip("/")
    inside = WorkspacePath(str(root), "docs/a.txt")
    assert PathGuard().place(f"{own}/docs/a.txt", str(root), writing=True) == inside
    assert PathGuard().place(own, str(root)).relative == ""
    assert reason(f"{own}/../outside/secret.txt", root) == "outside"
    # Unless the workspace holds a folder that is meant.
    (root / own).mkdir(parents=True)
    assert PathGuard().place(f"{own}/b", str(root)).relative == f"{own}/b"


def test_a_refusal_names_the_path_that_was_probably_meant(root: Path) -> None:
    with pytest.raises(PathRefused, match=r"did you mean 'docs/a\.txt'"):
        PathGuard().place("/docs/a.txt", str(root))
    with pytest.raises(PathRefused) as refusal:
        PathGuard().place("/outside/secret.txt", str(root))
    assert "did you mean" not in str(refusal.value)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "sub/.git/hooks/pre-commit",
        ".GIT/config",
        ".git./config",
        ".git /config",
        ".g\u200cit/config",
        ".ｇｉｔ/config",
        ".git::$INDEX_ALLOCATION/config",
        ".git",
        ".ssh/known_hosts",
        ".env",
        ".ENV",
        ".env.local",
        ".env.production",
        ".envrc",
        "deploy/.Env",
        "server.pem",
        "SERVER.PEM",
        "tls/private.key",
        "id_rsa",
        "id_rsa.bak",
        "id_ed25519",
        "cert.p12",
        "cert.pfx",
        ".netrc",
        ".pgpass",
        ".npmrc",
        ".pypirc",
        ".aws/credentials",
        ".config/gcloud/credentials.db",
        "application_default_credentials.json",
        ".docker/config.json",
        ".cargo/credentials.toml",
        ".git-credentials",
        ".palyra-tmp-0123",
    ],
)
def test_keys_credentials_and_version_control_are_refused(root: Path, path: str) -> None:
    assert reason(path, root) == "protected"
    assert reason(path, root, writing=True) == "protected"


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        ".env.template",
        ".gitignore",
        ".github/workflows/ci.yml",
        "environment.py",
        "keys.py",
        ".docker/Dockerfile",
    ],
)
def test_names_that_only_look_alike_are_fine(root: Path, path: str) -> None:
    assert PathGuard().place(path, str(root)).relative == path


@pytest.mark.parametrize("path", ["a\0b", "a\nb", "a\x7f", "\udcff", "x" * 256, "d/" * 2100 + "x"])
def test_names_that_no_file_should_have_are_refused(root: Path, path: str) -> None:
    assert reason(path, root, writing=True) == "bad_name"


def test_a_home_is_not_guessed(root: Path) -> None:
    with pytest.raises(InvalidInput):
        PathGuard().place("~/x", str(root))


def test_unusual_but_honest_names_are_fine(root: Path) -> None:
    for name in [
        "ünï/côdé.txt",
        "日本語",
        "a b  c",
        "…",
        "-rf",
        "a'b\"c",
        "%2e%2e",
        "..a",
        "a..",
        "x" * 255,
    ]:
        assert PathGuard().place(name, str(root), writing=True).relative == name


def test_forbidden_folders_stay_closed_inside_a_workspace(root: Path) -> None:
    home = root / "home"
    home.mkdir()
    (root / "alias").symlink_to("home")
    for path in ["home", "home/config.toml", "alias/config.toml", f"{home}/journal.db"]:
        assert reason(path, root, forbidden=(str(home),)) == "forbidden_root"
    assert PathGuard([str(home)]).place("homework", str(root)).relative == "homework"


@pytest.mark.parametrize(
    "target", ["../outside/secret.txt", "/etc/passwd", "{outside}/secret.txt", "../outside/new.txt"]
)
def test_a_link_to_a_file_outside_is_refused(root: Path, target: str) -> None:
    (root / "link").symlink_to(target.format(outside=root.parent / "outside"))
    assert reason("link", root) == "outside"
    assert reason("link", root, writing=True) == "outside"


def test_a_link_to_a_folder_outside_is_refused(root: Path) -> None:
    (root / "dir").symlink_to(root.parent / "outside")
    assert reason("dir/secret.txt", root) == "outside"
    assert reason("dir/new/file.txt", root, writing=True) == "outside"
    assert reason("dir/..", root) == "outside"


def test_a_chain_of_links_that_ends_outside_is_refused(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("docs/three")
    (root / "docs" / "three").symlink_to("../../outside")
    assert reason("one/secret.txt", root) == "outside"


def test_links_in_a_circle_lead_nowhere(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    assert call(root, "fs.read", path="a").outcome in ("denied", "error")
    assert call(root, "fs.write", path="a", content="x").outcome in ("denied", "error")


def test_a_link_inside_is_fine_for_reading_and_named_when_writing(root: Path) -> None:
    (root / "short").symlink_to("docs")
    assert PathGuard().place("short/a.txt", str(root)).relative == "docs/a.txt"
    with pytest.raises(PathRefused, match=r"docs/a\.txt") as refusal:
        PathGuard().place("short/a.txt", str(root), writing=True)
    assert refusal.value.reason == "symlink"


def test_a_link_lends_no_other_name_to_a_secret(root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    (root / "notes.txt").symlink_to(".env")
    (root / ".env.local").symlink_to("docs/a.txt")
    assert reason("notes.txt", root) == "protected"
    assert reason(".env.local", root) == "protected"


def test_a_file_swapped_for_a_link_after_the_check_is_not_opened(root: Path) -> None:
    place = PathGuard().place("docs/a.txt", str(root))
    (root / "docs" / "a.txt").unlink()
    (root / "docs" / "a.txt").symlink_to(root.parent / "outside" / "secret.txt")
    with pytest.raises(PathRefused) as refusal, paths.opened_file(place):
        pass
    assert refusal.value.reason == "symlink"


def test_a_folder_swapped_for_a_link_after_the_check_is_not_entered(root: Path) -> None:
    place = PathGuard().place("docs/a.txt", str(root))
    (root / "docs").rename(root / "old")
    (root / "docs").symlink_to(root.parent / "outside")
    (root.parent / "outside" / "a.txt").write_text("outside secret")
    with pytest.raises(PathRefused) as refusal, paths.opened_file(place):
        pass
    assert refusal.value.reason == "symlink"
    with pytest.raises(PathRefused), paths.opened_folder(place.root, place.folders, create=True):
        pass


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step, so that there is no moment without either."""
    assert ctypes.CDLL(None).renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


def test_a_folder_that_is_swapped_all_the_time_never_lets_a_call_out(root: Path) -> None:
    """An attacker swaps a folder for a link to the outside as fast as possible while calls read and
    write through it.
    """
    outside = root.parent / "outside"
    (outside / "a.txt").write_text("outside secret")
    before = tree(outside)
    (root / "evil").symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(root / "docs", root / "evil")

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        outcomes = set()
        for index in range(150):
            wrote = call(root, "fs.write", path="docs/b.txt", content=f"mine {index}")
            read = call(root, "fs.read", path="docs/a.txt")
            assert "outside secret" not in read.text
            outcomes |= {wrote.outcome, read.outcome}
    finally:
        done.set()
        attacker.join(10)
    assert tree(outside) == before
    assert outcomes >= {"ok", "denied"}


def test_pipes_sockets_and_devices_are_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))
        for name in ("pipe", "sock"):
            assert call(root, "fs.read", path=name).data["reason"] == "not_a_file"
            assert call(root, "fs.write", path=name, content="x").data["reason"] == "not_a_file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
def test_device_files_are_refused(root: Path) -> None:
    os.mknod(root / "null", 0o666 | 0o020000, os.makedev(1, 3))
    assert call(root, "fs.read", path="null").data["reason"] == "not_a_file"


def test_a_refusal_names_the_path_without_raw_bytes(root: Path) -> None:
    with pytest.raises(Forbidden) as refusal:
        PathGuard().place("a\x1b[31m\udcff", str(root))
    assert refusal.value.message.isprintable()


PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "docs",
        "a.txt",
        "out",
        "deep",
        "chain",
        "loop",
        "\u2025",
        "..\u200b",
        "~",
        "%2e%2e",
        "outside",
        "secret.txt",
        "ws",
    ]
)
SPELLINGS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["", "/", "{root}/", "{root}/../", "./"]),
    st.lists(PIECES, max_size=8),
)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("trapped")
    (base / "outside").mkdir()
    (base / "outside" / "secret.txt").write_text("outside secret")
    root = base / "ws"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.txt").write_text("inside")
    (root / "docs" / "deep" / "a.txt").write_text("inside")
    (root / "out").symlink_to("../outside")
    (root / "docs" / "out").symlink_to(base / "outside")
    (root / "docs" / "chain").symlink_to("../out")
    (root / "docs" / "deep" / "loop").symlink_to("..")
    (root / "deep").symlink_to("docs/deep")
    return root


@settings(
    max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(spelling=SPELLINGS | st.text(max_size=30), writing=st.booleans())
def test_whatever_the_spelling_an_opened_file_is_inside(
    trapped: Path, spelling: str, writing: bool
) -> None:
    try:
        place = PathGuard().place(
            spelling.replace("{root}", str(trapped)), str(trapped), writing=writing
        )
        assert place.relative.split("/")[0] != ".."
        with paths.opened_file(place) as descriptor:
            real = os.readlink(f"/proc/self/fd/{descriptor}")
    except (PalyraError, OSError):
        return
    assert real.startswith(f"{trapped}/")
    assert Path(real).read_text() == "inside"
