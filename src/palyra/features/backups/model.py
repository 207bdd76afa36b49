"""Types of backups: settings, names, and the outcome of the last ones."""

import re
import time
from collections.abc import Callable

from msgspec import Struct

from palyra.core.errors import ConfigInvalid, NotFound

SUFFIX = ".palyra"
HOUR_MS = 3_600_000
_WORDS = {"hourly": 1, "daily": 24, "weekly": 7 * 24, "monthly": 30 * 24}
_HOURS = re.compile(r"(\d{1,4})\s*(h|d)", re.ASCII)
_NAME = re.compile(r"home-([0-9a-f]{8})-(\d{8}T\d{6})Z(-\d+)?\.palyra", re.ASCII)


# The value of a reference, as `env:NAME`.
Secret = Callable[[str], str]


class BackupSettings(Struct, frozen=True, kw_only=True):
    """`every` and `drill` are empty where nothing is done by itself. `passphrase`, `access_key`
    and `secret_key` are references, as `env:NAME`.
    """

    every: str = ""
    keep: int = 7
    target: str = ""
    drill: str = ""
    passphrase: str = ""
    endpoint: str = ""
    region: str = "us-east-1"
    access_key: str = ""
    secret_key: str = ""
    identity: str = ""


class StoredBackup(Struct, frozen=True):
    """A backup at its target."""

    name: str
    bytes: int
    made_ms: int


class BackupContents(Struct, frozen=True, kw_only=True):
    """Manifest of an archive. `files` are digests by path; `keys` says if the home's secret keys
    are in it.
    """

    made_ms: int
    version: str
    schema: int
    entries: int
    keys: bool
    files: dict[str, str] = {}


class MadeBackup(Struct, frozen=True, kw_only=True):
    """A backup that was made. `removed` are older ones that made room for it."""

    name: str
    target: str
    bytes: int
    entries: int
    encrypted: bool
    keys: str
    made_ms: int
    removed: tuple[str, ...] = ()


class CheckedBackup(Struct, frozen=True, kw_only=True):
    """A backup that was restored into a scratch home and verified. `problem` is empty if it can be
    relied on.
    """

    name: str
    ok: bool
    entries: int = 0
    schema: int = 0
    version: str = ""
    files: int = 0
    encrypted: bool = False
    keys: bool = False
    checked_ms: int = 0
    problem: str = ""


class RestoredHome(Struct, frozen=True, kw_only=True):
    """A home that a backup took the place of. `kept` is where the one before is, empty if there
    was none.
    """

    name: str
    entries: int
    version: str
    kept: str
    keys: bool


class BackupStatus(Struct, frozen=True, kw_only=True):
    """Outcome of the last backup and the last drill. `problem` is why the last try failed, after
    `failures` failed tries in a row.
    """

    last: MadeBackup | None = None
    problem: str = ""
    failed_ms: int = 0
    failures: int = 0
    drill: CheckedBackup | None = None


def interval_ms(every: str) -> int:
    """Return how long to wait between two, 0 for never. Raise ConfigInvalid for what is no time."""
    word = every.strip().lower()
    if word in ("", "off", "never"):
        return 0
    if word in _WORDS:
        return _WORDS[word] * HOUR_MS
    found = _HOURS.fullmatch(word)
    if found is None or not int(found[1]):
        raise ConfigInvalid(
            f"{every!r} is no interval for backups: use hourly, daily, weekly, monthly, or a number"
            " of hours or days as 6h or 2d"
        )
    return int(found[1]) * (HOUR_MS if found[2] == "h" else 24 * HOUR_MS)


def name_of(home_id: str, made_ms: int, number: int = 0) -> str:
    """Name a backup, so that it sorts by time and says whose it is."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(made_ms / 1000))
    return f"home-{home_id}-{stamp}{f'-{number}' if number else ''}{SUFFIX}"


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def belongs_to(name: str, home_id: str) -> bool:
    """Say if a file is a backup of this home, or of any if none is named. Others may share the
    target, and are left alone.
    """
    found = _NAME.fullmatch(name)
    return found is not None and found[1] == (home_id or found[1])


def made_ms_of(name: str) -> int:
    import calendar

    found = _NAME.fullmatch(name)
    if found is None:
        return 0
    return calendar.timegm(time.strptime(found[2], "%Y%m%dT%H%M%S")) * 1000


def missing(name: str, where: str) -> NotFound:
    return NotFound(f"there is no backup {name} in {where}: `palyra backup list` lists them")
