"""`palyra journal verify` on files as they are found, and first starts that fail: a sentence, an
exit code, nothing left.
"""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import daemon as daemons
from tests.cli_terminal import environment, palyra

LONGEST_S = 60.0


def _foreign_database(path: Path, *statements: str) -> None:
    made = sqlite3.connect(path)
    for statement in statements:
        made.execute(statement)
    made.commit()
    made.close()


@pytest.mark.parametrize(
    "kind", ["empty", "text", "zeros", "database", "namesakes", "cut", "folder"]
)
def test_a_file_that_is_no_journal_is_named_as_that(tmp_path: Path, kind: str) -> None:
    given = tmp_path / "given.db"
    match kind:
        case "empty":
            given.touch()
        case "text":
            given.write_text("not a database\n" * 400)
        case "zeros":
            given.write_bytes(bytes(16_384))
        case "database":
            _foreign_database(given, "CREATE TABLE notes (text)")
        case "namesakes":
            _foreign_database(given, "CREATE TABLE entries (a)", "CREATE TABLE tapes (b)")
        case "cut":
            _foreign_database(given, "CREATE TABLE entries (a)")
            given.write_bytes(given.read_bytes()[:600])
        case _:
            given.mkdir()
    said = palyra(tmp_path / "home", "journal", "verify", str(given))
    assert said.returncode in (1, 2), said
    assert "given.db" in said.stderr
    assert "defect" not in said.stderr + said.stdout
    assert "Traceback" not in said.stderr


def test_a_journal_is_verified_after_its_daemon_was_killed(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon:
        daemon.run("hello")
        daemon.kill()
        assert (daemon.home / "daemon.json").exists(), "it could not say goodbye"
        said = palyra(daemon.home, "journal", "verify", "--json")
        assert (said.returncode, said.stderr) == (0, "")
        assert json.loads(said.stdout)["entries"] > 5


BROKEN_DISK = """
import errno, os, sys
from palyra.cli.main import main

real, left = os.fsync, int(sys.argv[1])

def fsync(descriptor):
    global left
    left -= 1
    if left < 0:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    real(descriptor)

os.fsync = fsync
sys.exit(main(["serve", "--port", "0"]))
"""
BROKEN_STORE = """
import sys
import apsw
from palyra.cli.main import main
from tests.journals import FailingDisk

disk = FailingDisk("broken", apsw.vfs_names()[0])
apsw.set_default_vfs("broken")
disk.arm(int(sys.argv[1]), apsw.IOError, sticky=True)
sys.exit(main(["serve", "--port", "0"]))
"""


@pytest.mark.parametrize(
    ("program", "good"), [(BROKEN_DISK, 0), (BROKEN_DISK, 1), (BROKEN_STORE, 1), (BROKEN_STORE, 9)]
)
def test_a_first_start_on_a_broken_disk_names_the_disk_and_leaves_nothing(
    tmp_path: Path, program: str, good: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("")
    started = subprocess.Popen(
        [sys.executable, "-c", program, str(good)],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = started.communicate(timeout=LONGEST_S)
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGKILL)
            started.wait(LONGEST_S)
    assert started.returncode == 1, said
    assert "the disk under" in said
    assert "defect" not in said
    left = {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.parent.name != "logs"
    }
    assert left == {"config.toml", "daemon.lock"}


def test_a_start_that_fails_later_keeps_what_was_there(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon:
        daemon.run("hello")
        daemon.stop()
        before = {path for path in daemon.home.rglob("*") if path.is_file()}
        program = [sys.executable, "-c", BROKEN_STORE, "1"]
        failed = subprocess.run(
            program,
            env=environment(daemon.home),
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
        assert failed.returncode == 1
        assert before <= set(daemon.home.rglob("*"))
        assert palyra(daemon.home, "journal", "verify").returncode == 0
