"""Limits for a whole process tree by control groups, where the daemon may make some; where it may
not, `watching` counts.

What a tree uses, counted from /proc, for machines where no control group can hold it; and the
room left on its disk.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from functools import cache
from itertools import count

from msgspec import Struct

from palyra.tools.sandbox.command import Caps, Killed

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_COUNTED = 4096


class Use:
    """Looks at a tree now and then. `peak` is the most memory seen."""

    def __init__(self, root: int, workspace: str, caps: Caps, *, grouped: bool) -> None:
        self._root = root
        self._workspace = workspace
        self._caps = caps
        self._grouped = grouped
        # A disk that was nearly full before is not this command's doing.
        self._floor = min(caps.free_bytes, free(workspace) // 2)
        self.peak = 0

    def exceeded(self) -> Killed:
        """The first limit that the tree is over, or nothing."""
        if free(self._workspace) < self._floor:
            return "disk"
        if self._grouped:
            return ""
        pids = tree(self._root)
        memory = sum(map(_resident, pids))
        self.peak = max(self.peak, memory)
        if memory > self._caps.memory_bytes:
            return "memory"
        return "processes" if len(pids) > self._caps.processes + 2 else ""


def free(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 1 << 62
    return found.f_bavail * found.f_frsize


def tree(root: int) -> list[int]:
    """A process and all below it, as far as can be seen."""
    found: list[int] = []
    waiting = [root]
    while waiting and len(found) < _MOST_COUNTED:
        pid = waiting.pop()
        found.append(pid)
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            waiting += _children(pid, thread)
    return found


def _children(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _resident(pid: int) -> int:
    """Memory of its own: what it shares with others would be counted many times."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            fields = file.read().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE


_numbers = count(1)
_SECONDS_TO_EMPTY = 2.0


class Places(Struct, frozen=True):
    """Folders in which groups may be made: one with version 2, one for each controller with version
    1.
    """

    version: int
    memory: str
    pids: str


class ControlGroup:
    """One group around one tree. It is entered before the command begins and removed when the tree
    is dead.
    """

    def __init__(self, places: Places, name: str) -> None:
        self._v2 = places.version == 2
        self._memory = os.path.join(places.memory, name)
        self._pids = os.path.join(places.pids, name)
        self._folders = list(dict.fromkeys((self._memory, self._pids)))

    def limit(self, caps: Caps) -> None:
        for folder in self._folders:
            os.mkdir(folder)
        if self._v2:
            _write(self._memory, "memory.max", caps.memory_bytes)
            _write(self._memory, "memory.oom.group", 1, needed=False)
            _write(self._memory, "memory.swap.max", 0, needed=False)
        else:
            _write(self._memory, "memory.limit_in_bytes", caps.memory_bytes)
            _write(self._memory, "memory.memsw.limit_in_bytes", caps.memory_bytes, needed=False)
        _write(self._pids, "pids.max", caps.processes)

    def enter(self, pid: int) -> None:
        for folder in self._folders:
            _write(folder, "cgroup.procs", pid)

    def peak(self) -> int:
        return _number(self._memory, "memory.peak" if self._v2 else "memory.max_usage_in_bytes")

    def out_of_memory(self) -> bool:
        name, key = (
            ("memory.events", "oom_kill") if self._v2 else ("memory.oom_control", "oom_kill")
        )
        return _field(self._memory, name, key) > 0

    def full(self) -> bool:
        """Return whether it asked for more processes than it may have."""
        return _field(self._pids, "pids.events", "max") > 0

    def kill(self) -> None:
        """Every process in it. For a tree in a pid namespace its first process is enough and this
        is a second net.
        """
        for folder in self._folders:
            for pid in _read(folder, "cgroup.procs").split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def remove_now(self) -> bool:
        """Return whether it could be removed at once."""
        for folder in self._folders:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True

    def remove(self) -> None:
        """A group can be removed when its last process is gone, which the kernel may notice a
        moment late.
        """
        end = time.monotonic() + _SECONDS_TO_EMPTY
        while not self.remove_now() and time.monotonic() < end:
            self.kill()
            time.sleep(0.002)


@cache
def places() -> Places | None:
    """Return where groups can be made, tried by making one. None where the daemon may not. Removes
    groups of a daemon that died.
    """
    for candidate in _candidates(_read("/proc/self", "cgroup"), _read("/proc/self", "mounts")):
        group = ControlGroup(candidate, f"palyra-probe-{os.getpid()}")
        try:
            group.limit(Caps())
        except OSError:
            continue
        finally:
            group.remove()
        _sweep(candidate)
        return candidate
    return None


def _sweep(found: Places) -> None:
    for folder in {found.memory, found.pids}:
        for name in os.listdir(folder):
            owner = name.removeprefix("palyra-").split("-")[0]
            if (
                name.startswith("palyra-")
                and owner.isdecimal()
                and not os.path.exists(f"/proc/{owner}")
            ):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(folder, name))


def make(found: Places) -> ControlGroup:
    return ControlGroup(found, f"palyra-{os.getpid()}-{next(_numbers)}")


def _candidates(own: str, mounts: str) -> Sequence[Places]:
    paths = {
        fields[1]: fields[2]
        for fields in (line.split(":", 2) for line in own.splitlines())
        if len(fields) == 3
    }
    mounted = [line.split()[1:4] for line in mounts.splitlines()]
    v1 = {
        name: where
        for where, kind, flags in mounted
        if kind == "cgroup"
        for name in flags.split(",")
    }
    found: list[Places] = []
    if "memory" in v1 and "pids" in v1:
        memory, pids = (v1[name] + paths.get(name, "/").rstrip("/") for name in ("memory", "pids"))
        found.append(Places(1, memory, pids))
    for where, kind, _ in mounted:
        if kind == "cgroup2":
            # A group with processes cannot hold others with limits, so ours becomes a sibling of
            # the daemon's or of one above.
            path = where + paths.get("", "/").rstrip("/")
            while path.startswith(where):
                found.append(Places(2, path, path))
                path = os.path.dirname(path)
    return found


def _write(folder: str, name: str, value: int, *, needed: bool = True) -> None:
    try:
        with open(os.path.join(folder, name), "w") as file:
            file.write(str(value))
    except OSError:
        if needed:
            raise


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except OSError:
        return ""


def _number(folder: str, name: str) -> int:
    text = _read(folder, name).strip()
    return int(text) if text.isdecimal() else 0


def _field(folder: str, name: str, key: str) -> int:
    for line in _read(folder, name).splitlines():
        if line.startswith(key + " "):
            return int(line.split()[1])
    return 0
