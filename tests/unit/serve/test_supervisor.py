"""The supervisor of a node, with real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from palyra.serve.cluster import supervisor

# It says who it is and what it was given, then does what the test wants.
_CHILD = """
import os, signal, struct, subprocess, sys, time
pipe, _, again = os.environ["{pipe}"].partition(" ")
def tell(kind, value):
    os.write(int(pipe), struct.pack("=cd", kind, value))
def say(*what):
    with open("said", "a") as file:
        print(*what, file=file)
say("began", os.getpid(), again or "first", *sys.argv[1:])
"""


def _lines(folder: Path) -> list[list[str]]:
    path = folder / "said"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def _until(folder: Path, count: int) -> list[list[str]]:
    deadline = time.monotonic() + 30
    while len(_lines(folder)) < count:
        assert time.monotonic() < deadline, _lines(folder)
        time.sleep(0.01)
    return _lines(folder)


@contextmanager
def _supervised(folder: Path, body: str) -> Iterator["subprocess.Popen[bytes]"]:
    program = folder / "child.py"
    program.write_text(_CHILD.replace("{pipe}", supervisor.PIPE) + body)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, sys.executable, str(program)],
        cwd=folder,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _gone(pid: int) -> None:
    deadline = time.monotonic() + 30
    while _alive(pid):
        assert time.monotonic() < deadline, f"{pid} still lives"
        time.sleep(0.01)


def test_the_code_with_which_it_ends_is_passed_on(tmp_path: Path) -> None:
    with _supervised(tmp_path, "sys.exit(3)") as process:
        assert process.wait(30) == 3
    assert len(_lines(tmp_path)) == 1


def test_one_that_is_stopped_is_killed_when_its_lease_ends_and_started_again_on_its_port(
    tmp_path: Path,
) -> None:
    body = """
if not again:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
        start_new_session=True)
    say("child", child.pid)
    tell(b"P", 4711.0)
    tell(b"L", time.clock_gettime(time.CLOCK_BOOTTIME) + 0.5)
    os.kill(os.getpid(), signal.SIGSTOP)
    say("went on")
time.sleep(600)
"""
    with _supervised(tmp_path, body) as process:
        first, child, second = _until(tmp_path, 3)
        assert first[2:] == ["first"]
        assert second[2:] == ["again", "--port", "4711"]
        _gone(int(first[1]))
        _gone(int(child[1]))
        assert process.poll() is None
    _gone(int(second[1]))


def test_a_lease_that_is_renewed_or_ended_kills_nobody(tmp_path: Path) -> None:
    body = """
now = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
for _ in range(5):
    tell(b"L", now() + 0.4)
    time.sleep(0.2)
tell(b"L", 0.0)
time.sleep(0.6)
sys.exit(7)
"""
    with _supervised(tmp_path, body) as process:
        assert process.wait(30) == 7
    assert len(_lines(tmp_path)) == 1


def test_one_that_asks_for_it_is_started_again(tmp_path: Path) -> None:
    body = f"""
tell(b"P", 4711.0)
os._exit({supervisor.AGAIN} if not again else 0)
"""
    with _supervised(tmp_path, body) as process:
        assert process.wait(30) == 0
    assert [each[2] for each in _lines(tmp_path)] == ["first", "again"]


def test_a_signal_is_passed_on_once_and_ends_both(tmp_path: Path) -> None:
    body = """
signal.signal(signal.SIGTERM, lambda *_: (say("term"), sys.exit(0)))
say("ready")
time.sleep(600)
"""
    with _supervised(tmp_path, body) as process:
        _until(tmp_path, 2)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
    assert [each[0] for each in _lines(tmp_path)] == ["began", "ready", "term"]


def test_it_takes_the_daemon_along_when_it_is_killed(tmp_path: Path) -> None:
    with _supervised(tmp_path, "time.sleep(600)") as process:
        (began,) = _until(tmp_path, 1)
        process.kill()
        process.wait(30)
        _gone(int(began[1]))
