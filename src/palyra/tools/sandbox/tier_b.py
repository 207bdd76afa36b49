"""Starting a command under Landlock, where bubblewrap cannot work: same limits, weaker walls, no
network at all.

It shows the host's list of processes and does not hide files inside the workspace;
docs/reference/shell.md says so.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from palyra.core.errors import Forbidden, Unavailable
from palyra.system.descriptors import held
from palyra.tools.sandbox import cgroups, confine, seccomp, spawn, system
from palyra.tools.sandbox.changed_files import ChangedFiles
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.process import Process

LEAST_ABI = 3
# From this generation on Landlock itself keeps signals inside; before, no signals can be sent at
# all.
_SCOPED_SIGNALS = 6
_DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"]


class _Line:
    """Ends a tree by letting go of the line to the process above it, which happens by itself when
    the daemon dies.
    """

    def __init__(self, descriptor: int, temporary: str) -> None:
        self._descriptor = descriptor
        self._temporary = temporary

    def go(self) -> None:
        os.write(self._descriptor, b"g")

    def end(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        self.end()
        shutil.rmtree(self._temporary, ignore_errors=True)


async def start(
    python: str, command: Command, readable: Sequence[str], aftermath: ChangedFiles | None = None
) -> Process:
    if command.network is not None:
        raise Forbidden("tier B has no network; hosts can be granted only where tier C works")
    inside = [
        path
        for path in map(os.path.realpath, command.hidden)
        if path.startswith(command.workspace.rstrip("/") + "/")
    ]
    if inside:
        raise Forbidden(f"{inside[0]} lies inside the workspace, and only tier C can hide it")
    temporary = tempfile.mkdtemp(prefix="palyra-sandbox-")
    ours, theirs = os.pipe()
    config = held(msgspec.json.encode(_config(command, readable, temporary)), "config")
    line = _Line(theirs, temporary)
    grouped = spawn.group(command.caps)
    try:
        argv = [python, "-I", "-S", str(Path(confine.__file__)), str(config), str(ours)]
        root, pipes = spawn.spawn(argv, command, [config, ours])
    except OSError as error:
        line.close()
        raise Unavailable(f"the sandbox could not be started: {error}") from error
    finally:
        os.close(config)
        os.close(ours)
    process = Process(command, root, line, pipes, grouped, aftermath)
    try:
        if grouped is not None:
            grouped.enter(process.pid)
        line.go()
        if command.stdin == "null":
            process.stdin.close()
        # A moment for a cancel that came meanwhile.
        await asyncio.sleep(0)
    except BaseException:
        async with process:
            raise
    return process


def _config(command: Command, readable: Sequence[str], temporary: str) -> dict[str, object]:
    env = system.environment({**command.env})
    env |= {"HOME": temporary, "TMPDIR": temporary} | command.env
    grouped = cgroups.places() is not None
    limits = spawn.rlimits(command.caps, grouped=grouped)
    workspace = [command.workspace]
    return {
        "argv": list(command.argv),
        "cwd": command.cwd,
        "temporary": temporary,
        "env": env,
        "rlimits": list(limits.items()),
        "read": [
            *system.programs(readable),
            *system.folders(),
            *(f"/etc/{name}" for name in system.FILES),
            "/proc",
            *([] if command.writable else workspace),
        ],
        "write": [
            temporary,
            *(workspace if command.writable else []),
            *([command.own] if command.own else []),
        ],
        "devices": _DEVICES,
        "seccomp": (
            seccomp.program(sockets=False, signals=confine.landlock_abi() >= _SCOPED_SIGNALS).hex()
        ),
    }
