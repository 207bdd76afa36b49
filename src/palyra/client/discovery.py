"""Address of the daemon and how to show who we are: PALYRA_URL and PALYRA_TOKEN, else what the
daemon left in the home folder.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import ConfigInvalid, Unauthenticated, Unavailable

DAEMON = "daemon.json"
TOKEN = "owner.token"


class Unreachable(Unavailable):
    """No daemon answers. Different from a daemon that answers that it is unavailable."""


class RunningDaemon(Struct, frozen=True):
    """Record that a daemon keeps of itself in the home folder while it runs."""

    pid: int
    url: str
    started_ms: int = 0
    version: str = ""
    # The file with the one certificate that it shows, if it has TLS.
    certificate: str = ""


class DaemonAddress(Struct, frozen=True):
    url: str
    token: str
    # For the sentence when nobody answers there.
    advice: str
    # Exactly this certificate is trusted, under any name; or those that this authority signed; else
    # what the system trusts.
    certificate: str = ""
    authority: str = ""


def running(home: Path) -> RunningDaemon | None:
    """The daemon of this home as it last described itself; it may have died since."""
    try:
        return msgspec.json.decode((home / DAEMON).read_bytes(), type=RunningDaemon)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigInvalid(f"{home / DAEMON} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigInvalid(
            f"{home / DAEMON} is damaged ({error}): remove it and start the daemon again"
        ) from error


def discover(home: Path, env: Mapping[str, str]) -> DaemonAddress:
    url = env.get("PALYRA_URL", "")
    if url:
        token, authority = env.get("PALYRA_TOKEN") or _token(home), env.get("PALYRA_CA", "")
        return DaemonAddress(
            url.rstrip("/"), token, "check PALYRA_URL, or unset it", authority=authority
        )
    found = running(home)
    if found is None:
        raise Unreachable(
            f"no daemon is running for {home}: start it with `palyra up`, or name another home with"
            " --home"
        )
    advice = f"the daemon (pid {found.pid}) may have ended badly; start it with `palyra up`"
    return DaemonAddress(
        found.url.rstrip("/"),
        env.get("PALYRA_TOKEN") or _token(home),
        advice,
        certificate=found.certificate,
    )


def _token(home: Path) -> str:
    path = home / TOKEN
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise Unauthenticated(
            f"the token in {path} cannot be read: {error}; set PALYRA_TOKEN, or use the daemon's"
            " own user"
        ) from error


def folder_of(workspace: str) -> str:
    """The folder that is meant: the one named, else the one we are in."""
    return os.path.realpath(os.path.expanduser(workspace) if workspace else os.getcwd())


def home_folder(argument: str | None, env: Mapping[str, str]) -> Path:
    """The folder of all state: as given, else PALYRA_HOME, else ~/.palyra."""
    chosen = argument or env.get("PALYRA_HOME", "")
    base = Path(env["HOME"]) if env.get("HOME") else Path.home()
    if not chosen:
        return base / ".palyra"
    return Path(os.path.abspath(base / chosen[2:] if chosen.startswith("~/") else chosen))
