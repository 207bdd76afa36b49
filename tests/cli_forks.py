"""The command line without starting Python for each command: a process that has imported it forks,
and the fork is the command.

It is a process of its own all the same, with its own folder, environment and streams, and ends as
any other.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

_LARGEST = 1 << 17
# What takes long to load and is a process of its own wherever it is tested.
_RARE = {"features.acp.cli", "features.workers.node.cli"}
_busy = threading.Lock()


def run(
    arguments: Sequence[str], cwd: Path | None, env: Mapping[str, str], timeout_s: float
) -> "subprocess.CompletedProcess[str] | None":
    """What came of it; nothing if another command is at work or this one is too long to be handed
    over.
    """
    asked = json.dumps(
        {"arguments": list(arguments), "cwd": str(cwd or Path.cwd()), "env": dict(env)}
    ).encode()
    if len(asked) > _LARGEST or not _busy.acquire(blocking=False):
        return None
    try:
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            door = _door()
            door.settimeout(timeout_s)
            socket.send_fds(door, [asked], [nothing.fileno(), out.fileno(), err.fileno()])
            pid = int(door.recv(32))
            try:
                code = int(door.recv(32))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                door.recv(32)
                raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None
            for each in (out, err):
                each.seek(0)
            return subprocess.CompletedProcess(
                list(arguments), code, out.read().decode(), err.read().decode()
            )
    finally:
        _busy.release()


@cache
def _door() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.cli_forks", str(theirs.fileno())],
            cwd=Path(__file__).parent.parent,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def leave() -> None:
        ours.close()
        server.wait(10)

    atexit.register(leave)
    return ours


def _serve(door: socket.socket) -> None:
    from palyra.cli import lookup, main, root  # noqa: F401 - loaded for all commands

    for place, _ in root._TABLE.values():
        module = place.partition(":")[0]
        if module not in _RARE:
            import_module(f"palyra.{module}")
    while True:
        said, streams, _, _ = socket.recv_fds(door, _LARGEST, 3)
        if not said:
            return
        child = os.fork()
        if child == 0:
            door.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            asked = json.loads(said)
            os.chdir(asked["cwd"])
            os.environ.clear()
            os.environ.update(asked["env"])
            sys.argv = ["palyra", *asked["arguments"]]
            sys.exit(main.main(asked["arguments"]))
        for stream in streams:
            os.close(stream)
        door.send(str(child).encode())
        door.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
