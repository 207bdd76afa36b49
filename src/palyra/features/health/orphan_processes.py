"""Processes that outlived the daemon which started them. They are known by the mark that every
sandbox of a daemon carries.

The rule: only a process whose mark this home folder's own file lists is ever killed, and only when
the daemon of that mark is gone. The mark is random and the file is the owner's alone, so nobody
else's process can carry one by chance.

What a process that was cut off leaves in the home folder: files that name it, and files it had
not finished.

The rule: only what is known by its name and is provably nobody's is ever removed. A file is
nobody's when the process it names is gone, or when it has not been written to for long.
"""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

ADDRESS = "daemon.json"
# So long nobody who is at work leaves a file alone.
UNTOUCHED_MS = 3_600_000
# Written under another name first, which says by whom.
_OF_PROCESS = re.compile(r"(?:\..+\.(\d+)\.new|.+\.key\.(\d+))\Z")
_FOLDERS = ("", "keys", "policies", "backups", "jobs", "skills", "segments")
_UNFINISHED = ("*.partial", "*.part", "*.restoring")


class _Names(Struct):
    pid: int


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def stale_pid_files(home: Path) -> list[Path]:
    """Files that speak of a process which is gone."""
    found = []
    for path in _files(home, "*"):
        named = _OF_PROCESS.match(path.name)
        if named and not alive(int(named[1] or named[2])):
            found.append(path)
    address = home / ADDRESS
    try:
        if not alive(msgspec.json.decode(address.read_bytes(), type=_Names).pid):
            found.append(address)
    except FileNotFoundError:
        pass
    except msgspec.DecodeError:
        found.append(address)
    return found


def unfinished(home: Path, now_ms: int) -> list[Path]:
    """Copies and records that somebody began to write and nobody goes on with."""
    found = [path for pattern in _UNFINISHED for path in _files(home, pattern)]
    return [path for path in found if now_ms - path.stat().st_mtime_ns // 1_000_000 > UNTOUCHED_MS]


def remove(home: Path, paths: list[Path]) -> str:
    for path in paths:
        path.unlink(missing_ok=True)
    return f"removed {', '.join(str(path.relative_to(home)) for path in paths) or 'nothing'}"


def _files(home: Path, pattern: str) -> list[Path]:
    found: list[Path] = []
    for folder in _FOLDERS:
        place = home / folder if folder else home
        if place.is_dir():
            found += [
                path for path in place.glob(pattern) if path.is_file() and not path.is_symlink()
            ]
    return found


FILE = "sandboxes"
# Marks that are kept: of the daemon that runs, and of those before it that may have left something.
_KEPT = 16
_MARK = re.compile(r"palyra-sandbox-([0-9]+)-[0-9a-f]{12}\Z")


class Marks:
    """The marks of this home's daemons, oldest first, in a file. `own` is the one of this process,
    if it has any.
    """

    def __init__(self, home: Path, own: str = "") -> None:
        self._path = home / FILE
        self.own = own

    def keep(self) -> None:
        """Remember our own mark, before anything carries it."""
        known = self._read()
        if self.own and self.own not in known:
            self._write([*known, self.own])

    def dead(self) -> list[str]:
        """Marks of daemons that are gone."""
        return [mark for mark in self._read() if mark != self.own and not _daemon_lives(mark)]

    def forget(self, marks: list[str]) -> None:
        """Forget marks that no process carries any more."""
        if marks:
            self._write([mark for mark in self._read() if mark not in marks])

    def _read(self) -> list[str]:
        try:
            lines = self._path.read_text("ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if _MARK.match(line)]

    def _write(self, marks: list[str]) -> None:
        fresh = self._path.with_name(f".{FILE}.{os.getpid()}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write("".join(f"{mark}\n" for mark in marks[-_KEPT:]))
        os.replace(fresh, self._path)


def carrying(marks: list[str]) -> list[int]:
    """The processes of this user whose first word is one of these marks."""
    if not marks:
        return []
    wanted = {mark.encode() for mark in marks}
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdecimal() and _first_word(name) in wanted and _ours(name)
    ]


def kill(pids: list[int], marks: list[str]) -> list[int]:
    """End them; those that were there to be ended. By a handle, so that a number which went to
    somebody else is never meant.
    """
    wanted = {mark.encode() for mark in marks}
    ended = []
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                if _first_word(str(pid)) in wanted:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    ended.append(pid)
            finally:
                os.close(handle)
    return ended


def _first_word(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(256).partition(b"\0")[0]
    except OSError:
        return b""


def _ours(pid: str) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.getuid()
    except OSError:
        return False


def _daemon_lives(mark: str) -> bool:
    """Return whether the process that made this mark may still be there. A number that was given
    out again counts as there.
    """
    named = _MARK.match(mark)
    return named is None or os.path.exists(f"/proc/{named[1]}")
