"""`palyra service`: have the system start the daemon, and start it again when it ends unexpectedly.

On Linux a unit of systemd, of the user's own manager or of the system's; on macOS an agent of
launchd.
"""

import getpass
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.serve import service_units
from palyra.serve.service_units import LABEL, UNIT, ServicePlan
from palyra.system.private_files import write_private

_LONGEST_S = 60
_SYSTEM_UNITS = Path("/etc/systemd/system")

service = group("service", "Start Palyra with the system: install, uninstall, status.", "status")


@verb(service, "install", help="Start Palyra with the system, and now.")
@click.option("--system", "of_system", is_flag=True, help="For all users of the machine, as root.")
@click.option("--user", default="", help="With --system: the user the daemon runs as.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder the agent works in unless a session says otherwise.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the file and change nothing.")
def install(
    state: CliState, of_system: bool, user: str, workspace: Path | None, only_print: bool
) -> None:
    if user and not of_system:
        raise InvalidInput("--user is for --system: without it the daemon runs as you")
    if of_system and not user:
        raise InvalidInput(
            "name who the daemon runs as: palyra service install --system --user NAME"
        )
    plan = _plan(state, user, workspace)
    file = _file(of_system)
    content = _content(plan)
    if only_print:
        state.out.line(content.decode())
        return
    if of_system and os.geteuid() != 0:
        raise InvalidInput(f"{file} belongs to root: run it with sudo")
    running = discovery.running(state.home)
    if running is not None and not file.exists():
        raise Conflict(
            f"Palyra is running already (pid {running.pid}): stop it with `palyra stop --daemon`,"
            " then install the service"
        )
    commands = _commands(of_system, "install", file)
    _check_there(commands[0][0])
    write_private(file, content)
    file.chmod(0o644)
    for command in commands:
        _run(command)
    state.out.result(
        {"file": str(file), "user": plan.user or getpass.getuser(), "home": str(plan.home)},
        f"Palyra runs as a service: {clean(str(file))}\nlogs: {_logs(of_system, plan)}",
    )
    if not of_system and sys.platform != "darwin" and not _lingers():
        state.out.note(
            "It ends when you log out. To keep it running: loginctl enable-linger"
            f" {clean(getpass.getuser())}"
        )


@verb(service, "uninstall", help="Stop the service and remove its file. The home folder stays.")
@click.option("--system", "of_system", is_flag=True, help="The one for all users, as root.")
def uninstall(state: CliState, of_system: bool) -> None:
    file = _file(of_system)
    if not file.exists():
        raise NotFound(f"there is no service: {file} does not exist")
    for command in _commands(of_system, "uninstall", file):
        _run(command)
    file.unlink()
    if sys.platform != "darwin":
        _run([*_systemctl(of_system), "daemon-reload"])
    state.out.result(
        {"removed": str(file), "home": str(state.home)},
        f"removed {clean(str(file))}\nYour data stays in {clean(str(state.home))}.",
    )


@verb(service, "status", help="Say if the service is installed and running.")
@click.option("--system", "of_system", is_flag=True, help="The one for all users.")
def status(state: CliState, of_system: bool) -> None:
    file = _file(of_system)
    running = discovery.running(state.home)
    said = "" if not file.exists() else _asked(_state_command(of_system))
    state.out.result(
        {
            "installed": file.exists(),
            "file": str(file),
            "state": said,
            "pid": running.pid if running else None,
        },
        "\n".join(
            [
                f"service  {said or 'installed'}: {clean(str(file))}"
                if file.exists()
                else "service  not installed; palyra service install",
                f"daemon   running at {running.url} (pid {running.pid})"
                if running
                else "daemon   not running",
            ]
        ),
    )


def _plan(state: CliState, user: str, workspace: Path | None) -> ServicePlan:
    home = state.home
    owner_home = Path.home()
    if user:
        try:
            owner_home = Path(pwd.getpwnam(user).pw_dir)
        except KeyError:
            raise InvalidInput(
                f"there is no user {user}: make one with `useradd --system --create-home {user}`"
            ) from None
        if not state.home_argument and not state.env.get("PALYRA_HOME"):
            home = owner_home / ".palyra"
    command = (sys.executable, "-m", "palyra.serve", "--home", str(home.absolute()))
    return ServicePlan(
        command=command,
        home=home.absolute(),
        workspace=(workspace or owner_home).absolute(),
        user=user,
        programs=tuple(Path(each).resolve() for each in (sys.prefix, sys.base_prefix)),
    )


def _content(plan: ServicePlan) -> bytes:
    if sys.platform == "darwin":
        return service_units.launchd(plan, plan.home / "service.log")
    return service_units.systemd(plan).encode()


def _file(of_system: bool) -> Path:
    if sys.platform == "darwin":
        if of_system:
            raise InvalidInput("on macOS the service is yours alone: leave --system out")
        return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    if of_system:
        return _SYSTEM_UNITS / UNIT
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "systemd" / "user" / UNIT


def _systemctl(of_system: bool) -> list[str]:
    return ["systemctl", *([] if of_system else ["--user"])]


def _commands(of_system: bool, what: str, file: Path) -> list[list[str]]:
    if sys.platform == "darwin":
        domain = f"gui/{os.getuid()}"
        if what == "install":
            return [["launchctl", "bootstrap", domain, str(file)]]
        return [["launchctl", "bootout", f"{domain}/{LABEL}"]]
    ctl = _systemctl(of_system)
    if what == "install":
        return [[*ctl, "daemon-reload"], [*ctl, "enable", UNIT], [*ctl, "restart", UNIT]]
    return [[*ctl, "disable", "--now", UNIT]]


def _state_command(of_system: bool) -> list[str]:
    if sys.platform == "darwin":
        return ["launchctl", "list", LABEL]
    return [*_systemctl(of_system), "is-active", UNIT]


def _logs(of_system: bool, plan: ServicePlan) -> str:
    if sys.platform == "darwin":
        return str(plan.home / "service.log")
    return f"journalctl {'' if of_system else '--user '}-u {UNIT}"


def _lingers() -> bool:
    return Path("/var/lib/systemd/linger", getpass.getuser()).exists()


def _asked(command: Sequence[str]) -> str:
    """The first line of what a program says, whatever its exit code."""
    done = _started(command)
    return (done.stdout.strip() or done.stderr.strip()).partition("\n")[0]


def _run(command: Sequence[str]) -> None:
    done = _started(command)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
        raise Unavailable(f"`{' '.join(command)}` failed: {clean(said[:500])}")


def _check_there(program: str) -> None:
    if shutil.which(program) is None:
        raise Unavailable(
            f"{program} is not on this machine: start the daemon with `palyra up --detach`, or by"
            " whatever starts services here (`palyra service install --print` shows a unit)"
        )


def _started(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    _check_there(command[0])
    try:
        return subprocess.run(
            list(command), capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{' '.join(command)}` took longer than {_LONGEST_S} s") from None
