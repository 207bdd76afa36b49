"""Becoming a new process: the kernel closes every file, ends every thread and drops every lock.
Nothing of what was under way goes on.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def start_again(port: int) -> NoReturn:
    """Run the same command anew, on the same port: a browser that waits for us looks nowhere else.
    Where an option is given twice, the last one counts.
    """
    given = sys.orig_argv[1:]
    listening = ["--port", str(port)]
    command = [sys.executable, *given, *(listening if given[-2:] != listening else ())]
    os.execv(sys.executable, command)


def end_children() -> None:
    """Kill every process that this one has started, and those that they have."""
    for pid in _below(os.getpid()):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap_children() -> None:
    """Take leave of processes that ended when this one began anew."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _below(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            # The name of a program may have blanks and parentheses.
            fields = (each / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(each.name))
    found, todo = [], [root]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found
