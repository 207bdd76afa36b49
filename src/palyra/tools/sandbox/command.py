"""Requests to the sandbox and its answers. Plain values, so that declaring a tool costs nothing at
start-up.
"""

import signal
from typing import Literal

from msgspec import Struct

from palyra.core.tools import Tier

# Why a tree was ended by us and not by itself. "" where it ended by itself.
Killed = Literal["", "time", "memory", "processes", "output", "disk", "stopped"]
Input = Literal["null", "pipe"]

STRENGTH: tuple[Tier, ...] = ("none", "A", "B", "C")


class Caps(Struct, frozen=True, kw_only=True):
    """Limits of one command on the machine. `memory_bytes` and `processes` are for the whole tree.

    `free_bytes` is what the command must leave of the workspace's disk; a single file ends at
    `file_bytes`.
    """

    time_s: float | None = 120.0
    cpu_s: int = 600
    memory_bytes: int = 2 << 30
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 2 << 30
    temporary_bytes: int = 256 << 20
    output_bytes: int = 64 << 20
    free_bytes: int = 1 << 30


class NetworkAccess(Struct, frozen=True):
    """The one way out: a Unix socket on which a proxy of ours speaks HTTP. Nothing else is
    reachable.
    """

    socket_path: str


class Command(Struct, frozen=True, kw_only=True):
    """One program to run. `env` is the whole environment it gets, besides PATH, HOME and what
    `system.environment` adds.

    `hidden` are folders that stay closed even where they lie inside the workspace. `writable` is
    false for a program that may look at the workspace and not change it. `holds`: files that
    programs on the host obey stay as they are, and new ones of their names are put aside for a
    person. `readable` are more folders with programs that this one needs, shown read-only. `own`
    is a folder beside the workspace that it may write.
    """

    argv: tuple[str, ...]
    cwd: str
    workspace: str
    env: dict[str, str] = {}
    caps: Caps = Caps()
    network: NetworkAccess | None = None
    tier: Tier = "C"
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    own: str = ""
    writable: bool = True
    holds: bool = False
    stdin: Input = "null"
    separate_stderr: bool = False


class Exit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exit of a tree. `code` is what a shell would put into `$?`; a signal is 128 plus its number
    and also named.
    """

    code: int
    signal: str = ""
    killed: Killed = ""
    cpu_s: float = 0.0
    max_rss: int = 0

    @property
    def timed_out(self) -> bool:
        return self.killed == "time"


class Probe(Struct, frozen=True):
    """Which tier this machine gives, how, and for each stronger one why not."""

    tier: Tier
    how: str
    reason: str = ""


def signal_name(code: int) -> str:
    """The signal that a shell's exit code stands for, or nothing."""
    try:
        return signal.Signals(code - 128).name if code > 128 else ""
    except ValueError:
        return ""
