"""Tier B: a program of its own that shuts a command in with Landlock and stays above its tree until
the last process is gone.

It imports nothing of ours, because it runs without site packages. When its line to the daemon
breaks, the daemon is dead, and it kills everything below it. The command gets no say in that: it
can neither signal nor read this process.
"""

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
from typing import Any

(
    _PR_SET_NO_NEW_PRIVS,
    _PR_SET_CHILD_SUBREAPER,
    _PR_CAPBSET_DROP,
    _PR_SET_SECCOMP,
    _PR_SET_PDEATHSIG,
) = (38, 36, 24, 22, 1)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _CAPSET = 444, 445, 446, {"x86_64": 126, "aarch64": 91}
_SECCOMP_FILTER, _CAPABILITY_V3, _LAST_CAPABILITY = 2, 0x20080522, 63

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_ABI_1, _REFER, _TRUNCATE, _IOCTL_DEVICE = 0x1FFF, 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_MAKE_DEVICES = 1 << 6 | 1 << 11

libc = ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """Return which generation of Landlock the kernel has; 0 for none."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, 0, 1)))


def main() -> int:
    config: dict[str, Any] = json.loads(os.fdopen(int(sys.argv[1]), "rb").read())
    line = int(sys.argv[2])
    _checked(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become the reaper")
    # The daemon has put us under its limits when it gives the word; if it has died there is no
    # word.
    if not os.read(line, 1):
        return _after_the_daemon(config, 125)
    child = os.fork()
    if child == 0:
        _become(config, line)
    os.close(0)
    try:
        status = _until_end(child, line)
    finally:
        # Whatever went wrong above: if this process ended first, what is left would belong to
        # nobody.
        _kill_below()
    if status is None:
        return _after_the_daemon(config, 128 + signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _after_the_daemon(config: dict[str, Any], code: int) -> int:
    """Remove what the daemon can no longer remove."""
    import shutil

    shutil.rmtree(config["temporary"], ignore_errors=True)
    return code


def _become(config: dict[str, Any], line: int) -> None:
    """Give everything up, then turn into the command. Nothing that fails here may let the command
    run.
    """
    try:
        os.close(line)
        os.setsid()
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.chdir(config["cwd"])
        for kind, most in config["rlimits"]:
            resource.setrlimit(kind, (most, most))
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
        _landlock(config["read"], config["write"], config["devices"])
        _drop_capabilities()
        _seccomp(bytes.fromhex(config["seccomp"]))
        os.execve(config["argv"][0], config["argv"], config["env"])
    except OSError as error:
        os.write(2, f"cannot start {config['argv'][0]}: {error}\n".encode())
    finally:
        os._exit(126)


def _landlock(read: list[str], write: list[str], devices: list[str]) -> None:
    abi = landlock_abi()
    handled = _ABI_1 | _REFER | _TRUNCATE | (_IOCTL_DEVICE if abi >= 5 else 0)
    # Network ports from generation 4 on; from 6 on signals and abstract sockets stay inside as
    # well.
    fields = [handled] + ([3] if abi >= 4 else []) + ([3] if abi >= 6 else [])
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _checked(
        libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "make a Landlock ruleset"
    )
    look = _EXECUTE | _READ_FILE | _READ_DIR
    for paths, rights in (
        (read, look),
        (write, handled & ~_MAKE_DEVICES),
        (devices, _READ_FILE | _WRITE_FILE),
    ):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0), "enter the Landlock ruleset")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, handle)
    _checked(libc.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"allow {path}")
    os.close(handle)


def _drop_capabilities() -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header, nothing = struct.pack("=Ii", _CAPABILITY_V3, 0), bytes(24)
    _checked(libc.syscall(_CAPSET[os.uname().machine], header, nothing), "give up capabilities")


def _seccomp(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    # The program holds zero bytes: it is passed by address, which keeps them.
    given = Program(len(program) // 8, program)
    _checked(
        libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(given), 0, 0),
        "load the system call filter",
    )


def _until_end(child: int, line: int) -> int | None:
    """The status of the command, or None if the daemon let go of the line."""
    handle = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([handle, line], [], [], 0.5)
        if handle in ready:
            return os.waitpid(child, 0)[1]
        if line in ready and not os.read(line, 1):
            return None
        _reap(child)


def _reap(child: int) -> None:
    """Orphans that ended while the command runs; the command itself is waited for by its handle,
    and only there.
    """
    for pid in _below():
        try:
            if pid != child and _state(pid) == "Z":
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            continue


def _kill_below() -> None:
    """Until nothing is left: what forks while we look is found the next time."""
    while True:
        for pid in _below():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        select.select([], [], [], 0.002)


def _below() -> list[int]:
    """Every process whose line of parents leads here."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                # It ended while we looked.
                continue
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{os.strerror(error)}: could not {what}")
    return result


if __name__ == "__main__":
    sys.exit(main())
