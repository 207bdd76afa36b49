"""Parts that both tiers need to start a process: pipes, a group, the limits of one process.

Cleanup of what a dying daemon leaves half made.

A sandbox that runs dies with the daemon by itself. One that is being made in that moment may not:
bubblewrap's inner process waits for a word from the outer one, and if that was killed the word
never comes. So a small shell waits for the daemon's end, which it notices by a pipe, and kills
whatever still carries the daemon's mark. It lives for a second after the daemon. What it removes
last is the folder that the sandboxes had as /etc.
"""

import os
import resource
import secrets
import subprocess
from collections.abc import Sequence

from palyra.system import cpu_affinity
from palyra.system.descriptors import PipeReader, Writer
from palyra.tools.sandbox import cgroups, system
from palyra.tools.sandbox.command import Caps, Command
from palyra.tools.sandbox.process import Pipes

# The mark is the name under which bubblewrap is started; the command inside does not carry it, and
# this shell does, as an argument. A later search finds what was forked during an earlier one.
_SCRIPT = """
while read -r line; do :; done
n=0
while [ $n -lt 20 ]; do
    for found in $(grep -ls -e "^$1" /proc/[0-9]*/cmdline); do
        pid=${found#/proc/}
        pid=${pid%/cmdline}
        [ "$pid" = $$ ] || kill -9 "$pid"
    done
    sleep 0.05
    n=$((n + 1))
done
[ -z "$2" ] || rm -rf -- "$2"
"""


class Mourner:
    """Started with the first sandbox, and again if somebody killed it."""

    def __init__(self) -> None:
        self.mark = f"palyra-sandbox-{os.getpid()}-{secrets.token_hex(6)}"
        self._process: subprocess.Popen[bytes] | None = None

    def attend(self, leftover: str) -> None:
        """`leftover` is a folder that is of no use without the daemon."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "palyra-mourner", self.mark, leftover],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": system.PATH},
            cwd="/",
            start_new_session=True,
        )


def spawn(
    argv: Sequence[str], command: Command, passed: Sequence[int], *, program: str | None = None
) -> "tuple[subprocess.Popen[bytes], Pipes]":
    """`program` is what is started if it is not what it is called."""
    # On the loop's own thread: when a thread ends, the kernel tells its children that their parent
    # has died.
    with cpu_affinity.roaming():
        root = subprocess.Popen(
            argv,
            executable=program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if command.separate_stderr else subprocess.STDOUT,
            env={},
            cwd="/",
            pass_fds=passed,
            bufsize=0,
        )
    assert root.stdin is not None
    assert root.stdout is not None
    pipes = Pipes(
        Writer(os.dup(root.stdin.fileno())),
        PipeReader(os.dup(root.stdout.fileno())),
        PipeReader(os.dup(root.stderr.fileno())) if root.stderr is not None else None,
    )
    for stream in (root.stdin, root.stdout, root.stderr):
        if stream is not None:
            stream.close()
    return root, pipes


def group(caps: Caps) -> cgroups.ControlGroup | None:
    """A group with these limits; None where there can be none, and then the tree is counted
    instead.
    """
    places = cgroups.places()
    if places is None:
        return None
    made = cgroups.make(places)
    try:
        made.limit(caps)
    except OSError:
        made.remove_now()
        return None
    return made


def rlimits(caps: Caps, *, grouped: bool) -> dict[int, int]:
    """Return the limits of one process. Address space is not limited: runtimes reserve far more of
    it than they use.
    """
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: caps.cpu_s,
        resource.RLIMIT_FSIZE: caps.file_bytes,
        resource.RLIMIT_NOFILE: caps.open_files,
        resource.RLIMIT_DATA: caps.memory_bytes,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 1024,
    }
    if not grouped:
        limits[resource.RLIMIT_NPROC] = caps.processes
    return {kind: _lower(kind, most) for kind, most in limits.items()}


def _lower(kind: int, most: int) -> int:
    """A limit that the daemon itself is under can only become smaller."""
    _, hard = resource.getrlimit(kind)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)
