"""What a tree uses, counted from /proc, for machines where no control group can hold it; and the
room left on its disk.
"""

import os

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
