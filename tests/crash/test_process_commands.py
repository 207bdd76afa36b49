"""A real daemon, killed while a command and a background job run: none of their processes is left
two seconds later.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.crash.test_process import CONFIG, call, permit_all, submitted
from tests.daemon import DaemonProcess, start
from tests.escapes.world import patience

# Forked twice, in a session of its own, deaf to polite signals: as a browser or a build server
# stays behind.
STAYS = (
    "python3 -c 'import os, signal, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.closerange(0, 64); time.sleep(300)'; "
)


def processes(daemon: DaemonProcess) -> list[str]:
    """Whoever else works in the workspace."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if int(pid) != daemon.pid and os.readlink(f"/proc/{pid}/cwd").startswith(
                str(daemon.workspace)
            ):
                found.append(
                    Path(f"/proc/{pid}/cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode(errors="replace")
                )
        except OSError:
            continue
    return found


def until(holds: Callable[[], bool], seconds: float) -> float:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.01)  # Other processes: there is nothing to wait on but the clock.
    return time.monotonic() - began


def test_commands_and_jobs_die_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    permit_all(tmp_path)
    job = call("shell.run", command=STAYS + "touch job; sleep 300", background=True)
    script = {"go": [job, call("shell.run", command=STAYS + "touch command; sleep 300")]}
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        submitted(daemon, "go")
        until(
            lambda: (daemon.workspace / "job").exists() and (daemon.workspace / "command").exists(),
            30,
        )
        # Whoever forks them may be there for a moment longer.
        until(lambda: sum(line.startswith("python3 -c") for line in processes(daemon)) == 2, 30)
        slow = patience()
        daemon.kill()
        until(lambda: processes(daemon) == [], 2 * slow)
