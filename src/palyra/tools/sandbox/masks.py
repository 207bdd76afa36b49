"""What of a workspace a sandboxed program does not get to see or to change, found by name before each start.

Keys and credentials are hidden. Of `.git` only what git runs or obeys is held read-only, so that a commit works and a hook planted
for the person's own git does not. Names are read again only where a folder has changed, so a large workspace is walked once.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from threading import Event as Flag
from typing import Literal

from msgspec import Struct

from palyra.domain.errors import LimitExceeded
from palyra.tools import protected

How = Literal["hide_file", "hide_folder", "read_only", "pin"]

MOST = 512
_GIT_OBEYS = ("hooks", "config", "config.worktree")
_CERTIFICATES = (".pem",)
_READ = 1 << 20
# Looking at so few folders again takes less time than handing the work to a thread.
_FEW = 64


class Mask(Struct, frozen=True, order=True):
    path: str
    how: How


class _Folder(Struct):
    """What one folder held when it had this stamp."""

    stamp: tuple[int, int, int]
    below: list[str]
    masks: list[Mask]


class Masks:
    """Remembers each folder it has read by the folder's own time of change."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}

    def of(self, workspace: str, hidden: Sequence[str], stop: Flag) -> list[Mask]:
        """Every mask for a workspace, outer folders first."""
        closed = [path for path in map(os.path.realpath, hidden) if _below(path, workspace) and os.path.lexists(path)]
        # What lies below another one is closed with it.
        closed = [path for path in closed if not any(_below(path, other) for other in closed)]
        found = [Mask(path, "hide_folder" if os.path.isdir(path) else "hide_file") for path in closed]
        seen: dict[str, _Folder] = {}
        waiting = [workspace]
        while waiting and not stop.is_set():
            path = waiting.pop()
            folder = self._folder(path)
            if folder is None or path in closed:
                continue
            seen[path] = folder
            found += folder.masks
            waiting += folder.below
        if len(found) > MOST:
            raise LimitExceeded(
                f"the workspace holds {len(found)} files and folders that may be keys; a sandbox hides at most {MOST}: "
                "work in a smaller folder"
            )
        self._forget(workspace, seen)
        return sorted(set(found))

    def few(self, workspace: str) -> bool:
        """Whether it was read before and is small enough to be looked at again without leaving the event loop."""
        return workspace in self._folders and len(self._folders) <= _FEW

    def _forget(self, workspace: str, seen: dict[str, _Folder]) -> None:
        for path in [path for path in self._folders if (path == workspace or _below(path, workspace)) and path not in seen]:
            del self._folders[path]
        self._folders |= seen

    def _folder(self, path: str) -> _Folder | None:
        try:
            now = os.stat(path, follow_symlinks=False)
            stamp = (now.st_dev, now.st_ino, now.st_mtime_ns)
            known = self._folders.get(path)
            if known is not None and known.stamp == stamp:
                return known
            with os.scandir(path) as entries:
                return _read(path, stamp, entries)
        except OSError:
            # Gone, or closed to us and so to the program as well.
            return None


def _read(path: str, stamp: tuple[int, int, int], entries: Iterator[os.DirEntry[str]]) -> _Folder:
    folder = _Folder(stamp, [], [])
    above = os.path.basename(path)
    for entry in entries:
        # A link is not followed: what it leads to inside has a name of its own, and outside nothing is there.
        is_folder = entry.is_dir(follow_symlinks=False)
        if protected.fold(entry.name) == ".git":
            folder.masks += _git(entry.path, is_folder=is_folder)
        elif protected.why_name(entry.name, above) is None or entry.name.startswith(protected.TEMPORARY):
            if is_folder:
                folder.below.append(entry.path)
        elif is_folder:
            folder.masks.append(Mask(entry.path, "hide_folder"))
        elif entry.is_file(follow_symlinks=False) and not _only_certificates(entry):
            folder.masks.append(Mask(entry.path, "hide_file"))
    return folder


def _git(path: str, *, is_folder: bool) -> list[Mask]:
    """`.git` stays where it is (it is a mount point) and is writable, but for what git obeys."""
    if not is_folder:
        return []
    obeyed = [os.path.join(path, name) for name in _GIT_OBEYS]
    return [Mask(path, "pin"), *(Mask(each, "read_only") for each in obeyed if _plain(each))]


def _plain(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)


def _only_certificates(entry: os.DirEntry[str]) -> bool:
    """Bundles of public certificates have the same ending as keys, and programs need them to check whom they talk to."""
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
