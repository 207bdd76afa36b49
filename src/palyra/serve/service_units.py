"""Service files by which a system runs the daemon: a unit for systemd, a property list for launchd.
Pure texts.

The rule: nothing here may keep the daemon from making sandboxes for commands. Those need user
namespaces, a /proc and a host name of their own, so the options of systemd that cover parts of
/proc or fix the host name are left out, and namespaces stay allowed.
"""

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

UNIT = "palyra.service"
LABEL = "org.palyra.daemon"
_RESTART_S = 2
_STOP_S = 30


class ServicePlan(Struct, frozen=True, kw_only=True):
    """`user`: who the daemon runs as; empty for whoever installs it. `programs`: where its own code
    lies.
    """

    command: tuple[str, ...]
    home: Path
    workspace: Path
    user: str = ""
    programs: tuple[Path, ...] = ()
    environment: Mapping[str, str] = {}


def systemd(plan: ServicePlan) -> str:
    """Return the unit: of a user's own manager, or of the system's for another user."""
    lines = [
        "[Unit]",
        "Description=Palyra agent daemon",
        "After=network-online.target",
        "Wants=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        *([f"User={plan.user}"] if plan.user else ()),
        f"ExecStart={_words(plan.command)}",
        f"WorkingDirectory={_path(plan.workspace)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in plan.environment.items()),
        "Restart=on-failure",
        f"RestartSec={_RESTART_S}",
        f"TimeoutStopSec={_STOP_S}",
        # The daemon ends its commands itself, and first records how they stand.
        "KillMode=mixed",
        "UMask=0077",
        *_HARDENING,
        *(_of_system(plan) if plan.user else ()),
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if plan.user else 'default.target'}",
    ]
    return "\n".join(lines) + "\n"


_HARDENING = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces=user mnt pid net ipc uts cgroup",
    "SystemCallArchitectures=native",
    # bubblewrap mounts the sandbox's own view, and names it.
    "SystemCallFilter=@system-service @mount sethostname",
    "SystemCallErrorNumber=EPERM",
    # Limits for the whole tree of a command are a group below the service's own.
    "Delegate=yes",
)


def _of_system(plan: ServicePlan) -> list[str]:
    """Options that only the system's manager can fulfil everywhere."""
    writable = dict.fromkeys((plan.home, plan.workspace))
    # Nobody's home is there but what the daemon needs of it.
    bound = [each for each in writable if _in_a_home(each)]
    shown = [each for each in dict.fromkeys(plan.programs) if _in_a_home(each)]
    return [
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "ProtectSystem=strict",
        "ProtectHome=tmpfs",
        *([f"BindPaths={' '.join(map(_path, bound))}"] if bound else ()),
        *([f"BindReadOnlyPaths={' '.join(map(_path, shown))}"] if shown else ()),
        f"ReadWritePaths={' '.join(map(_path, writable))}",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "PrivateMounts=yes",
        "PrivateUsers=yes",
        "ProtectClock=yes",
        "ProtectKernelModules=yes",
        "RemoveIPC=yes",
    ]


def _in_a_home(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in ("/home", "/root", "/run/user"))


def launchd(plan: ServicePlan, log: Path) -> bytes:
    """Return the property list of an agent of the user who is logged in."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(plan.command),
            "WorkingDirectory": str(plan.workspace),
            "EnvironmentVariables": dict(plan.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": _RESTART_S,
            "ExitTimeOut": _STOP_S,
            "Umask": 0o077,
            "StandardErrorPath": str(log),
        }
    )


def _words(command: Sequence[str]) -> str:
    return " ".join(map(_quoted, command))


def _quoted(word: str) -> str:
    """One word as systemd reads it: percent signs and dollars stand for themselves."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if set(escaped) & set(" \t'\"\\;") or not escaped else escaped


def _path(path: Path) -> str:
    """A path as systemd reads it where no quotes are allowed."""
    return str(path).replace("\\", "\\x5c").replace("%", "%%").replace(" ", "\\x20")
