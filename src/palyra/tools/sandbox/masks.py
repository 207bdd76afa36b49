"""Masks over what a sandboxed program may not see or change in a workspace, found by name before
each start.

Keys and credentials are hidden. Repositories are found wherever they lie, so that they can be held
(`repositories`), and so are the files that programs on the host obey, so that a change can be
reported (`aftermath`). Names are read again only where a folder has changed, so a large workspace
is walked once.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from threading import Event as Flag
from typing import Literal

from msgspec import Struct

from palyra.core.errors import LimitExceeded
from palyra.core.input_checks import fold
from palyra.core.obeyed_files import obeyed
from palyra.tools import protected_names

How = Literal["hide_file", "hide_folder", "read_only", "pin", "stage"]

MOST = 512
_CERTIFICATES = (".pem",)
_READ = 1 << 20
_REF = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?[ \n]|ref: refs/")
# How the folders begin that a command gets in the place of a repository's own; see `repositories`.
STAGED = "palyra-sandbox-"
# Looking at so few folders again takes less time than handing the work to a thread.
_FEW = 64
_MOST_TOLD = 20_000
_MOST_FOLDERS = 200_000
# The kernel's clock for files ticks this slowly: a folder that changed just before it was read may
# change again unseen.
_TICK_NS = 50_000_000


class Mask(Struct, frozen=True, order=True):
    """One mount in the workspace. `source` is what a stage puts in the place of the path."""

    path: str
    how: How
    source: str = ""


class Look(Struct):
    """A workspace at one moment. `repositories` are folders, `pointers` files and links called
    `.git`.

    `told` are the files that programs obey, each with what shows that it has changed. `covered` are
    repositories and pointers in folders that are hidden as a whole; `unreadable` are folders that
    could not be looked into.
    """

    masks: list[Mask]
    repositories: list[str]
    pointers: list[str]
    told: dict[str, tuple[int, ...]]
    covered: list[str]
    unreadable: list[str]


class _Folder(Struct):
    """Content of one folder when it had this stamp, as seen from this root."""

    root: str
    stamp: tuple[int, int, int, int]
    below: list[str]
    masks: list[Mask]
    repositories: list[str]
    pointers: list[str]
    told: list[str]
    covered: list[str]


class Masks:
    """Remembers each folder it has read by the folder's own time of change."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}

    def of(
        self, workspace: str, hidden: Sequence[str], stop: Flag, *, limited: bool = True
    ) -> Look:
        """Return every mask for a workspace, outer folders first, with its repositories and the
        files that programs obey.

        Raise LimitExceeded if there are more masks than a sandbox can have, unless nothing is to be
        masked.
        """
        closed = [
            path
            for path in map(os.path.realpath, hidden)
            if _below(path, workspace) and os.path.lexists(path)
        ]
        # What lies below another one is closed with it.
        closed = [path for path in closed if not any(_below(path, other) for other in closed)]
        found = Look(
            [Mask(path, "hide_folder" if os.path.isdir(path) else "hide_file") for path in closed],
            [],
            [],
            {},
            [],
            [],
        )
        seen: dict[str, _Folder] = {}
        waiting, covered = [workspace], list[str]()
        while (waiting or covered) and not stop.is_set():
            if not waiting:
                # Hidden from the program; but what it made there itself lies open to git.
                self._look_under(covered.pop(), workspace, seen, found, covered)
                continue
            path = waiting.pop()
            folder = self._folder(path, workspace)
            if path in closed:
                continue
            if folder is None:
                found.unreadable.append(path)
                continue
            seen[path] = folder
            covered += folder.covered
            found.masks += folder.masks
            found.repositories += folder.repositories
            found.pointers += folder.pointers
            if len(found.told) < _MOST_TOLD:
                found.told.update(
                    (name, stamp) for name in folder.told if (stamp := stamp_of(name)) is not None
                )
            waiting += folder.below
            if not limited and len(seen) > _MOST_FOLDERS:
                raise LimitExceeded(f"there are more than {_MOST_FOLDERS:,} folders")
        if limited and len(found.masks) > MOST:
            raise LimitExceeded(
                f"the workspace holds {len(found.masks)} files and folders that may be keys; a"
                f" sandbox hides at most {MOST}: work in a smaller folder"
            )
        self._forget(workspace, seen)
        found.repositories = sorted(set(found.repositories))
        found.masks = sorted(set(found.masks))
        return found

    def _look_under(
        self, path: str, root: str, seen: dict[str, _Folder], found: Look, covered: list[str]
    ) -> None:
        folder = self._folder(path, root)
        if folder is None:
            found.unreadable.append(path)
            return
        seen[path] = folder
        found.covered += [*folder.repositories, *folder.pointers]
        covered += [*folder.below, *folder.covered]

    def few(self, workspace: str) -> bool:
        """Return whether it was read before and is small enough to be looked at again without
        leaving the event loop.
        """
        return workspace in self._folders and len(self._folders) <= _FEW

    def _forget(self, workspace: str, seen: dict[str, _Folder]) -> None:
        # Other threads look at their own workspaces meanwhile.
        for path in list(self._folders):
            if (path == workspace or _below(path, workspace)) and path not in seen:
                self._folders.pop(path, None)
        self._folders |= seen

    def _folder(self, path: str, root: str) -> _Folder | None:
        try:
            now = os.stat(path, follow_symlinks=False)
            # The time of the last change cannot be set by a program, the time of the last writing
            # can.
            stamp = (now.st_dev, now.st_ino, now.st_mtime_ns, now.st_ctime_ns)
            known = self._folders.get(path)
            if known is not None and known.stamp == stamp and known.root == root:
                return known
            fresh = time.time_ns() - now.st_ctime_ns < _TICK_NS
            with os.scandir(path) as entries:
                return _read(
                    _Folder(root, (0, 0, 0, 0) if fresh else stamp, [], [], [], [], [], []),
                    path,
                    entries,
                )
        except OSError:
            # Gone, or closed to us and so to the program as well.
            return None


def stamp_of(path: str) -> tuple[int, ...] | None:
    """Return what changes whenever a file does; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _read(folder: _Folder, path: str, entries: Iterator[os.DirEntry[str]]) -> _Folder:
    above = os.path.basename(path)
    relative = path[len(folder.root) :].lstrip("/")
    row = obeyed(relative) if relative else None
    names = set[str]()
    for entry in entries:
        names.add(entry.name)
        # A link is not followed: what it leads to inside has a name of its own, and outside nothing
        # is there.
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(STAGED):
            continue
        if fold(entry.name) == ".git":
            (folder.repositories if is_folder else folder.pointers).append(entry.path)
            if is_folder:
                # A folder with a key in it could be moved there.
                folder.below.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                folder.masks.append(Mask(entry.path, "read_only"))
            continue
        if protected_names.why_name(entry.name, above) is None or entry.name.startswith(
            protected_names.TEMPORARY
        ):
            if is_folder:
                folder.below.append(entry.path)
        elif is_folder:
            folder.masks.append(Mask(entry.path, "hide_folder"))
            folder.covered.append(entry.path)
        elif (
            entry.is_file(follow_symlinks=False)
            and not _only_certificates(entry)
            and not _is_ref(relative, entry)
        ):
            folder.masks.append(Mask(entry.path, "hide_file"))
        if (
            not is_folder
            and (row is None or row.sandbox == "told")
            and _told(f"{relative}/{entry.name}")
        ):
            folder.told.append(entry.path)
    if _is_repository(names):
        # It is one whatever it is called: git finds it from any folder inside.
        folder.repositories.append(path)
    return folder


def _is_ref(folder: str, entry: os.DirEntry[str]) -> bool:
    """Return whether a file is a branch, a tag or its log: those may be called like keys, and git
    needs them.
    """
    if not {"refs", "logs"} & set(folder.split("/")):
        return False
    try:
        with open(entry.path, "rb") as file:
            return _REF.match(file.read(256)) is not None
    except OSError:
        return False


def _told(relative: str) -> bool:
    row = obeyed(relative)
    return row is not None and row.sandbox == "told"


def _is_repository(names: set[str]) -> bool:
    """Return whether git would take a folder with these names for a repository."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def _only_certificates(entry: os.DirEntry[str]) -> bool:
    """Bundles of public certificates have the same ending as keys, and programs need them to check
    whom they talk to.
    """
    if not entry.name.lower().endswith(_CERTIFICATES):
        return False
    try:
        with open(entry.path, "rb") as file:
            text = file.read(_READ + 1)
    except OSError:
        return False
    return len(text) <= _READ and b"BEGIN CERTIFICATE" in text and b"PRIVATE" not in text


def _below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
