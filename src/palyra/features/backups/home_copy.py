"""A copy of a home: the journal, verified and with its segments inside, and every file that the
daemon cannot be started again without.

The rule: a copy is made beside its name and gets it once it is whole, so half a copy never looks
like one.
"""

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

import palyra
from palyra.core.errors import ChainBroken, Unavailable
from palyra.store import sqlite_files
from palyra.store.segments import folder_of
from palyra.store.sqlite import sync_folder
from palyra.store.upkeep import FileUpkeep, Upkeep
from palyra.system.private_files import make_private, write_private
from palyra.tools.sandbox.cgroups import free

log = logging.getLogger("palyra.backups")

JOURNAL = "journal.db"
VERSION = "version"
FILES = ("config.toml", "owner.token", VERSION)
FOLDERS = ("keys", "policies", "skills", "mcp", "tls", "learned", "runs")
# Where policies go that the settings keep outside the home.
OUTSIDE = "policies-outside"
PARTIAL = ".partial"
MARGIN = 64 << 20
# What of the keys anybody may know: a copy without secrets is verified by it.
_PUBLIC = ("journal.pub", "journal.rotations", "journal.witnesses", "journal.checkpoint")
_SECRET_FOLDERS = ("keys", "tls")
# Written anew at each start. In a copy it would name places that know more than the copy has.
_OF_THIS_PLACE = "keys/journal.anchors"


class CopyReport(Struct, frozen=True):
    """`verified` is false where the journal was wrong already and was copied as it is."""

    entries: int
    schema: int
    verified: bool


def is_secret(name: str) -> bool:
    """Say if a file of a home, by its path there, must not leave the machine unencrypted."""
    top, _, rest = name.partition("/")
    return name == "owner.token" or (top in _SECRET_FOLDERS and rest not in _PUBLIC)


def size_of(home: Path) -> int:
    """Return how many bytes a copy takes at most."""
    journal = home / JOURNAL
    total = sum(_bytes(each) for each in (journal, journal.with_name(journal.name + "-wal")))
    folders = [folder_of(journal), *(home / name for name in FOLDERS)]
    return total + sum(
        _bytes(Path(at) / name)
        for each in folders
        for at, _, names in os.walk(each)
        for name in names
    )


def require_space(place: Path, needed: int, what: str) -> None:
    """Raise Unavailable if a folder has no room for so many bytes, and say how many are missing."""
    nearest = next(each for each in (place, *place.parents) if each.exists())
    there = free(str(nearest))
    if there < needed + MARGIN:
        raise Unavailable(
            f"there is no room for {what}: it needs {_mb(needed + MARGIN)} MB in {place}, and"
            f" {_mb(there)} MB are free; free {_mb(needed + MARGIN - there)} MB and try again",
            needed_bytes=needed + MARGIN,
            free_bytes=there,
            path=str(place),
        )


def copy_home(
    home: Path, target: Path, *, policies: Path | None = None, journal: Upkeep | None = None
) -> CopyReport:
    """Copy everything that a home needs into a new folder. The journal may be in use. `policies`
    and `journal` are where they lie if not in the home.
    """
    make_private(target)
    for name, source in files_of(home, policies):
        place = target / name
        make_private(place.parent)
        try:
            shutil.copyfile(source, place)
        except FileNotFoundError:
            continue  # It was removed meanwhile, as a lock or a part of something is.
        os.chmod(place, stat.S_IMODE(source.stat().st_mode) & 0o700)
    journal, copied = journal or FileUpkeep(home / JOURNAL), target / JOURNAL
    if journal.is_file and not journal.path.exists():
        return CopyReport(0, 0, True)
    try:
        report = journal.backup(copied)
        return CopyReport(report.entries, sqlite_files.schema(copied), True)
    except ChainBroken as error:
        # It was wrong before, and a person has to decide: it is copied as it is.
        log.error("the journal is copied although it does not verify: %s", error.message)
        journal.keep_evidence(copied)
        return CopyReport(0, sqlite_files.schema(copied), False)


def keep_home(
    home: Path, target: Path, *, policies: Path | None = None, journal: Upkeep | None = None
) -> CopyReport:
    """Copy a home into a folder that has its name only once the copy is whole."""
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        report = copy_home(home, partial, policies=policies, journal=journal)
        sync_tree(partial)
        os.rename(partial, target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return report


def files_of(home: Path, policies: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield every file of a home but its journal, as (its path there, where it is). A link is taken
    for the file that it leads to; what is neither is left out.
    """
    for name in FILES:
        if (home / name).is_file():
            yield name, home / name
    for name in FOLDERS:
        yield from _below(home / name, name)
    if policies is not None and policies.resolve() != (home / "policies").resolve():
        yield from _below(policies, OUTSIDE)


def _below(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for at, folders, names in os.walk(folder):
        folders.sort()
        for each in sorted(names):
            path = Path(at) / each
            within = f"{name}/{path.relative_to(folder).as_posix()}"
            if path.is_file() and within != _OF_THIS_PLACE:
                yield within, path


def remember_version(home: Path, schema: int) -> None:
    """Write down which version has used a home: who goes back needs to know it."""
    wanted = f"{palyra.__version__} schema {schema}\n"
    path = home / VERSION
    if not path.exists() or path.read_text() != wanted:
        write_private(path, wanted.encode())


def version_of(copy: Path) -> str:
    """Return which version last used a home or a copy of one, empty if it did not say."""
    try:
        return (copy / VERSION).read_text().partition(" ")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def sync_tree(folder: Path) -> None:
    """Make every file below a folder durable, and the folders."""
    for at, _, names in os.walk(folder):
        for name in names:
            sync_folder(Path(at) / name)
        sync_folder(Path(at))


def remove_leftovers(folder: Path, pattern: str = f"*{PARTIAL}") -> None:
    """Remove folders of copies that never got their name, because somebody was killed."""
    for each in folder.glob(pattern) if folder.is_dir() else ():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _mb(count: int) -> int:
    return -(-max(0, count) // 1_000_000)
