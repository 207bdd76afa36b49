"""What a process that was cut off leaves in the home folder: files that name it, and files it had
not finished.

The rule: only what is known by its name and is provably nobody's is ever removed. A file is
nobody's when the process it names is gone, or when it has not been written to for long.
"""

import re
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
