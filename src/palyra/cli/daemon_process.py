"""The daemon as a process: start one, wait until it answers, end one, and be sure that none
runs.

Showing the way to the console: a link that logs in, and the browser of whoever sits here, if
there is one to open.

Nothing is opened where nobody could see it: without a screen, over ssh, or in a build.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from palyra.cli import exit_codes
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.client.discovery import DaemonAddress, Unreachable
from palyra.client.http import Api
from palyra.core.errors import ConfigInvalid, Conflict, PalyraError, Unavailable


def console(state: CliState, *, browser: bool) -> None:
    link = state.api.create_login_link().url
    state.out.note(f"Console (one-time link, valid for 10 minutes): {link}")
    if browser and has_screen(state.env, sys.platform):
        # A browser may run as long as it likes, and the program that finds it may wait for it.
        threading.Thread(target=_open, args=(link,), daemon=True).start()


def has_screen(env: Mapping[str, str], platform: str) -> bool:
    if env.get("CI") or env.get("SSH_CONNECTION"):
        return False
    return platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def _open(link: str) -> None:
    try:
        webbrowser.open(link)
    except webbrowser.Error:
        return  # The link is on the screen.


LOCK = "daemon.lock"
_START_S = 30.0
_STOP_S = 15.0
_POLL_S = 0.02


def is_up(home: Path, env: dict[str, str]) -> bool:
    """Return whether a daemon answers at the place the environment or the home folder names."""
    try:
        Api(lambda: discovery.discover(home, env)).request("GET", "/healthz", timeout_s=5)
    except Unavailable:
        return False
    return True


def reload_if_running(state: CliState) -> bool:
    """Make a running daemon read the settings again; return whether there is one."""
    if discovery.running(state.home) is None:
        return False
    state.api.reload_config()
    return True


def make_home(home: Path) -> None:
    """Make the home folder if it is not there yet; ConfigInvalid if it cannot be one."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(home, error) from error


def unusable(home: Path, error: OSError) -> ConfigInvalid:
    a_file = isinstance(error, FileExistsError | NotADirectoryError)
    why = "a file stands in its place" if a_file else (error.strerror or str(error)).lower()
    return ConfigInvalid(
        f"the home folder {home} cannot be used: {why}; name another one with --home or PALYRA_HOME"
    )


def start(
    home: Path,
    port: int | None,
    *,
    quic: bool = False,
    lifeline: bool,
    env: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a daemon. With `lifeline` it ends when this process does, however that ends. `env` is
    ours, if none is given.
    """
    make_home(home)
    logs = home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "palyra.cli.main", "serve", "--home", str(home)]
    command += ["--port", str(port)] if port is not None else []
    command += ["--quic"] if quic else []
    command += ["--lifeline"] if lifeline else []
    with open(
        logs / "start.log", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as output:
        return subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in this terminal is for the chat, not for the daemon.
            start_new_session=True,
        )


def wait_ready(process: "subprocess.Popen[bytes]", home: Path, env: dict[str, str]) -> None:
    """Wait until the daemon answers; if it ends instead, what it said last is the error."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = f"the daemon ended while starting: {_last_words(home)}"
            raise (
                ConfigInvalid(said)
                if process.returncode == exit_codes.CONFIG
                else Unreachable(said)
            )
        found = discovery.running(home)
        if found is not None and found.pid == process.pid and _ready(found):
            return
        time.sleep(_POLL_S)
    raise Unreachable(f"the daemon was not ready after {_START_S:.0f} s: see {home / 'logs'}")


def ensure(state: CliState) -> None:
    """Start a daemon that stays, if none runs for this home and no other place is named."""
    if state.env.get("PALYRA_URL"):
        return
    if held(state.home):
        if discovery.running(state.home) is None:
            _comes_up(state)
        return
    process = start(state.home, None, lifeline=False)
    try:
        wait_ready(process, state.home, state.env)
    except PalyraError:
        # Two commands at once start two, and one of them is the daemon.
        if not _comes_up(state):
            raise
    found = discovery.running(state.home)
    if found is not None:
        state.out.note(
            f"Started Palyra (pid {found.pid}); it keeps running. Stop it with: palyra stop"
            " --daemon"
        )


def _comes_up(state: CliState) -> bool:
    """Return whether somebody else's daemon answers for this home, once it had time to start."""
    deadline = time.monotonic() + _START_S
    while held(state.home) and time.monotonic() < deadline:
        if is_up(state.home, state.env):
            return True
        time.sleep(_POLL_S)
    return is_up(state.home, state.env)


def _ready(found: discovery.RunningDaemon) -> bool:
    try:
        Api(lambda: DaemonAddress(found.url, "", "", certificate=found.certificate)).request(
            "GET", "/readyz", timeout_s=5
        )
    except PalyraError:
        return False
    return True


def _last_words(home: Path) -> str:
    text = (home / "logs" / "start.log").read_text(encoding="utf-8", errors="replace").strip()
    lines = text.splitlines()
    first = next(
        (at for at, line in enumerate(lines) if line.startswith("error: ")), len(lines) - 1
    )
    return (
        clean("\n".join(lines[max(0, first) :]).removeprefix("error: "))
        or f"it said nothing; see {home / 'logs'}"
    )


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ask the daemon we started to end, and see it end."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_S)


def stop(home: Path) -> int:
    """End the daemon of this home, whoever started it; its process id."""
    found = discovery.running(home)
    if found is None or not held(home):
        raise Unreachable(f"no daemon is running for {home}")
    # What a daemon that died left behind may name a process that is somebody else's by now: the
    # lock must name it too.
    if (home / LOCK).read_text(encoding="ascii", errors="replace").strip() != str(found.pid):
        raise Unavailable(
            "the daemon is just starting, or its journal is being restored: try again in a moment"
        )
    os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while time.monotonic() < deadline:
        if not held(home):
            return found.pid
        time.sleep(_POLL_S)
    raise Unavailable(
        f"the daemon (pid {found.pid}) did not end within {_STOP_S:.0f} s: see"
        f" {home / 'logs' / 'daemon.log'}"
    )


@contextmanager
def exclusive(home: Path) -> Iterator[None]:
    """Hold the home's lock, so that no daemon can start meanwhile."""
    make_home(home)
    try:
        descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unusable(home, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                "the daemon is running: stop it first with `palyra stop --daemon`"
            ) from None
        os.ftruncate(descriptor, 0)
        yield
    finally:
        os.close(descriptor)


def held(home: Path) -> bool:
    """Return whether a daemon holds the lock of this home: the one sign that cannot be stale."""
    try:
        with exclusive(home):
            return False
    except Conflict:
        return True
