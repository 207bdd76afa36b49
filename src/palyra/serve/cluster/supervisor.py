"""Supervisor of a node: a small process above the daemon that ends it when its lease has run out,
and starts it anew.

A daemon that is stopped (SIGSTOP, a debugger, a full memory) cannot end itself, and would go on
where it was when it is let go: in the middle of an effect, beside a node that has taken over. This
process kills it before any other node may lead, so that it never executes another instruction. It
imports nothing of ours, because it runs without site packages and is to stay small.
"""

import contextlib
import os
import select
import signal
import struct
import sys
import time

# The daemon tells by this pipe until when its lease lasts, and the port that it is to have again.
# Behind its number: whether it is not the first.
PIPE = "_PALYRA_SUPERVISED"
MESSAGE = struct.Struct("=cd")
UNTIL, PORT = b"L", b"P"
# The code with which the daemon asks to be started anew.
AGAIN = 75
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PAUSE_S = 1.0


def main() -> int:
    command, port, again = sys.argv[1:], 0, False
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    ended: list[int] = []
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, _: ended.append(given))
    while True:
        given = [*command, *(["--port", str(port)] if port else [])]
        heard, pid = _started(given, again)
        status, port, killed = _watched(pid, heard, wakes, ended, port)
        os.close(heard)
        _kill_below()
        if ended or not (killed or status == AGAIN):
            return status
        again = True
        # What ends at once would otherwise be started as often as the machine can.
        time.sleep(0 if killed or port else _PAUSE_S)


def _control_process(what: int, value: int) -> None:
    # Late: the daemon imports this module for what both sides know.
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0)


def _started(command: list[str], again: bool) -> tuple[int, int]:
    heard, told = os.pipe()
    os.set_inheritable(told, True)
    above = os.getpid()
    pid = os.fork()
    if pid:
        os.close(told)
        return heard, pid
    try:
        # Signals of the terminal reach the daemon once, from here.
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == above:
            told_it = f"{told} again" if again else str(told)
            os.execve(command[0], command, {**os.environ, PIPE: told_it})
    finally:
        os._exit(127)


def _watched(
    pid: int, heard: int, wakes: int, ended: list[int], port: int
) -> tuple[int, int, bool]:
    """Wait for the daemon's end. Return its code, the port that it had, and whether its lease ran
    out.
    """
    until, listening, passed_on = 0.0, True, 0
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return _code(status), port, False
        left = until - time.clock_gettime(time.CLOCK_BOOTTIME) if until else None
        if left is not None and left <= 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            sys.stderr.write("the lease of this node ran out: it restarts\n")
            return AGAIN, port, True
        ready, _, _ = select.select([wakes, *([heard] if listening else [])], [], [], left)
        if wakes in ready:
            os.read(wakes, 1_024)
        for number in ended[passed_on:]:
            os.kill(pid, number)
            passed_on += 1
        if heard in ready:
            message = os.read(heard, MESSAGE.size)
            listening = len(message) == MESSAGE.size
            if listening:
                kind, value = MESSAGE.unpack(message)
                if kind == UNTIL:
                    until = value
                else:
                    port = int(value)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _kill_below() -> None:
    """Kill whatever the daemon has left, however deep: orphans become this process's children."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            for each in file.read().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(each), signal.SIGKILL)
        time.sleep(0.001)


if __name__ == "__main__":
    sys.exit(main())
