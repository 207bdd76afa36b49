"""Beginning anew: as the same process with the same command, or under a supervisor that starts
another one. Nothing of what was under way goes on.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from palyra.core.errors import PalyraError
from palyra.serve import config
from palyra.serve.cluster import supervisor
from palyra.serve.config import Loaded

# Nothing that this process starts is supervised with it.
_SUPERVISED = os.environ.pop(supervisor.PIPE, "")
_PIPE = int(_SUPERVISED.partition(" ")[0] or "-1")


def start_again(port: int) -> NoReturn:
    """Run the same command anew, without a goodbye: the kernel closes every file and drops the
    lock.

    On the same port: a browser that waits for us looks nowhere else. Where an option is given
    twice, the last one counts.
    """
    command = [sys.executable, *sys.orig_argv[1:], "--port", str(port)]
    if supervised():
        # Starting may take longer than a lease lasts, and there is nothing left to be killed for.
        tell_lease(0.0)
        os.environ[supervisor.PIPE] = _SUPERVISED
    os.execv(sys.executable, command)


def supervised() -> bool:
    return _PIPE >= 0


def began_anew() -> bool:
    """Say if the supervisor has started this process in the place of another one."""
    return " " in _SUPERVISED


def supervise(loaded: Loaded) -> None:
    """Become the supervisor of the same command, if this is a node without one. Who started us
    keeps the same child.
    """
    if not loaded.config.cluster.secret or supervised():
        return
    script = str(Path(supervisor.__file__))
    command = [sys.executable, "-I", "-S", script, sys.executable, *sys.orig_argv[1:]]
    os.execv(sys.executable, command)


def supervise_early(home: Path, env: Mapping[str, str]) -> None:
    """The same before anything heavy is imported, which would be imported twice. Settings that are
    wrong are told later.
    """
    with suppress(PalyraError):
        supervise(config.load(home, env))


def tell_lease(until_s: float) -> None:
    """Have this process killed at that moment of the clock that goes on while a machine sleeps; 0:
    never.
    """
    _tell(supervisor.UNTIL, until_s)


def end_to_begin_anew() -> NoReturn:
    """End at once, and have the supervisor kill what this process has started, and start another
    one.
    """
    os._exit(supervisor.AGAIN)


def tell_port(port: int) -> None:
    """Have the port again that this process has now."""
    _tell(supervisor.PORT, float(port))


def service_pid() -> int:
    """Return the process that is to be told to end: the supervisor's, if there is one."""
    return os.getppid() if supervised() else os.getpid()


def _tell(kind: bytes, value: float) -> None:
    if supervised():
        # One that does not read is stopped itself.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(_PIPE, supervisor.MESSAGE.pack(kind, value))
