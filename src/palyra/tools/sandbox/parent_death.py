"""Ends what a dying daemon leaves half made.

A sandbox that runs dies with the daemon by itself. One that is being made in that moment may not:
bubblewrap's inner process waits for a word from the outer one, and if that was killed the word
never comes. So a small shell waits for the daemon's end, which it notices by a pipe, and kills
whatever still carries the daemon's mark. It lives for a second after the daemon. What it removes
last is the folder that the sandboxes had as /etc.
"""

import os
import secrets
import subprocess

from palyra.tools.sandbox import system

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
