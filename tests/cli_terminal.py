"""A real terminal with the command line in it, for tests: type, and wait for what appears. Every
wait is bounded.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

from tests import cli_forks

WAIT_S = 40.0
_LONGEST_S = 60.0
_ROWS = 40
_STARTS = {"up", "serve"}
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r")
# Spaces that are not written but stepped over; and steps back and forth, which lead nowhere.
_STEPS = re.compile(r"\x1b\[(\d*)C")
_NOWHERE = re.compile(r"\x1b\[(\d*)D\x1b\[\1C")


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without keys or settings of whoever runs the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and not name.startswith("PALYRA_")
    }
    return {**kept, "PALYRA_HOME": str(home), "TERM": "xterm-256color", **(more or {})}


def palyra(
    home: Path,
    *arguments: str,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    within_s: float = _LONGEST_S,
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, without a terminal.

    In a fork of what is loaded already, unless it may start a daemon, is told how Python shall
    begin or reads from a pipe.
    """
    if env is None and stdin is None and not _STARTS & set(arguments):
        forked = cli_forks.run(arguments, cwd, environment(home), within_s)
        if forked is not None:
            return forked
    return subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", *arguments],
        cwd=cwd,
        env=environment(home, env),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


class Terminal:
    def __init__(self, descriptor: int, pid: int, columns: int) -> None:
        self._descriptor = descriptor
        self._pid = pid
        self._at = 0
        self._display = pyte.HistoryScreen(columns, _ROWS, history=100_000, ratio=1.0)
        self._drawing = pyte.Stream(self._display)
        self._drawn = 0
        self.raw = ""
        self.status: int | None = None

    @property
    def text(self) -> str:
        """Everything shown so far, without colours and cursor movements."""
        return _ANSI.sub(
            "", _STEPS.sub(lambda found: " " * int(found[1] or 1), _NOWHERE.sub("", self.raw))
        )

    @property
    def screen(self) -> list[str]:
        """The lines a person sees, those that scrolled away before them, without blanks at their
        ends.
        """
        self._drawing.feed(self.raw[self._drawn :])
        self._drawn = len(self.raw)
        gone = [
            "".join(line[at].data for at in range(self._display.columns))
            for line in self._display.history.top
        ]
        lines = [line.rstrip() for line in (*gone, *self._display.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def cursor(self) -> tuple[int, int]:
        """Where the cursor stands: its place among the lines of `screen`, and its column."""
        return len(self.screen) and len(
            self._display.history.top
        ) + self._display.cursor.y, self._display.cursor.x

    def shows(self, pattern: str, seconds: float = WAIT_S) -> list[str]:
        """Wait until the end of what a person sees is this; the lines of the screen then."""
        deadline = time.monotonic() + seconds
        while not re.search(rf"(?:{pattern})\Z", "\n".join(self.screen)):
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(
                    f"the screen does not end with {pattern!r}:\n" + "\n".join(self.screen[-_ROWS:])
                )
        return self.screen

    def resize(self, columns: int) -> None:
        """What is on the screen stays where it is, as on a terminal that does not wrap lines
        again.
        """
        assert self.screen is not None
        self._display.resize(_ROWS, columns)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))

    @property
    def modes(self) -> list[Any]:
        """How the terminal treats keys."""
        return termios.tcgetattr(self._descriptor)

    def type(self, keys: str) -> None:
        """Also what is more than a terminal holds: what is shown meanwhile is read, or both sides
        would wait for each other.
        """
        self.type_bytes(keys.encode())

    def type_bytes(self, left: bytes) -> None:
        deadline = time.monotonic() + WAIT_S
        while left:
            readable, writable, _ = select.select(
                [self._descriptor], [self._descriptor], [], max(0.0, deadline - time.monotonic())
            )
            assert time.monotonic() < deadline, "nobody reads what is typed"
            if readable:
                self._read(WAIT_S)
            if writable:
                left = left[self._write(left) :]

    def _write(self, piece: bytes) -> int:
        os.set_blocking(self._descriptor, False)
        try:
            return os.write(self._descriptor, piece)
        except BlockingIOError:
            return 0
        finally:
            os.set_blocking(self._descriptor, True)

    def line(self, text: str) -> None:
        self.type(text + "\r")

    def expect(self, pattern: str, seconds: float = WAIT_S) -> "re.Match[str]":
        """Wait until this appears behind what was waited for last."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.compile(pattern).search(self.text, self._at)
            if found:
                self._at = found.end()
                return found
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(
                    f"{pattern!r} did not appear; after what was seen before there is:\n{self.text[self._at :]}"
                )

    def ends(self, seconds: float = WAIT_S) -> int:
        """Wait for the program to end; its exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.reaped(max(0.1, deadline - time.monotonic()))

    def reaped(self, seconds: float = WAIT_S) -> int:
        """Wait for the program to end without looking at the terminal; its exit code."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not end:\n{self.text[-2000:]}")
            self._reap(os.WNOHANG)
            time.sleep(0.005)  # There is nothing to wait on but the clock.
        return self.status

    def hang_up(self) -> None:
        """The terminal goes away, as when its window is closed."""
        os.close(self._descriptor)
        self._descriptor = os.open(os.devnull, os.O_RDWR)

    def signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def close(self) -> None:
        if self.status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._reap(0)
        os.close(self._descriptor)

    def _reap(self, options: int) -> None:
        pid, status = os.waitpid(self._pid, options)
        if pid:
            self.status = os.waitstatus_to_exitcode(status)

    def _read(self, seconds: float) -> bool:
        """Whether something was read; False when the time is up or the program has gone."""
        if seconds <= 0 or not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self._descriptor, 65536)
        except OSError:
            return False
        self.raw += piece.decode("utf-8", "replace")
        return bool(piece)


@contextmanager
def terminal(
    home: Path,
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = (),
    columns: int = 120,
) -> Iterator[Terminal]:
    """The command line, or another program, on a terminal."""
    command = list(program) or [sys.executable, "-m", "palyra.cli.main", *arguments]
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        os.execve(command[0], command, environment(home, env))
    opened = Terminal(descriptor, pid, columns)
    try:
        yield opened
    finally:
        opened.close()
