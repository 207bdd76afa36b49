"""Walking a workspace folder in a stable order: no symlink is followed, protected files are named
but never opened.

`.gitignore` files are honoured as git does it: each counts from its own folder down, the nearest
decides, and nothing below an ignored folder comes back. Patterns are matched by RE2, because a
repository's ignore file is not ours to trust.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from palyra.tools import paths, protected_names
from palyra.tools.paths import PathGuard, WorkspacePath

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

EntryKind = Literal["file", "folder", "link", "other"]

_MOST_SEEN = 200_000
_MOST_IGNORE_BYTES = 64 << 10
_MOST_IGNORE_LINES = 2_000
_LONGEST_IGNORE_LINE = 512


class FolderEntry(Struct, frozen=True):
    """One thing that was met. A `closed` entry may be named, not opened."""

    place: WorkspacePath
    kind: EntryKind
    size: int = 0
    target: str = ""
    closed: bool = False


class Walk:
    """One walk and what it left out on the way."""

    def __init__(self, fence: PathGuard, *, ignored: bool = False) -> None:
        self._fence = fence
        self._ignored = ignored
        self._seen = 0
        self.left_out = 0
        self.unreadable = 0
        self.cut = False

    def below(self, start: WorkspacePath, depth: int) -> Iterator[FolderEntry]:
        """Everything below a folder, parents before children, `depth` levels deep."""
        rules: list[_Rules] = []
        parts = start.relative.split("/") if start.relative else []
        if not self._ignored:
            for length in range(len(parts)):
                rules += _rules_in(WorkspacePath(start.root, "/".join(parts[:length])))
        yield from self._folder(start, depth, rules, first=True)

    def _folder(
        self, folder: WorkspacePath, depth: int, above: Sequence["_Rules"], *, first: bool = False
    ) -> Iterator[FolderEntry]:
        try:
            found = self._scan(folder)
        except (OSError, paths.PathRefused):
            if first:
                raise
            self.unreadable += 1
            return
        rules = list(above)
        if not self._ignored and any(entry.place.name == ".gitignore" for entry in found):
            rules += _rules_in(folder)
        for entry in found:
            if _is_ignored(entry, rules):
                self.left_out += 1
                continue
            yield entry
            if entry.kind == "folder" and not entry.closed and depth > 1 and not self.cut:
                yield from self._folder(entry.place, depth - 1, rules)

    def _scan(self, folder: WorkspacePath) -> list[FolderEntry]:
        found = []
        parts = folder.relative.split("/") if folder.relative else []
        with (
            paths.opened_folder(folder.root, parts) as descriptor,
            os.scandir(descriptor) as listing,
        ):
            for item in listing:
                self._seen += 1
                if self._seen > _MOST_SEEN:
                    self.cut = True
                    break
                if not item.name.startswith(protected_names.TEMPORARY):
                    found.append(self._entry(folder, item, descriptor))
        return sorted(found, key=lambda entry: entry.place.relative)

    def _entry(self, folder: WorkspacePath, item: os.DirEntry[str], descriptor: int) -> FolderEntry:
        place = WorkspacePath(
            folder.root, f"{folder.relative}/{item.name}" if folder.relative else item.name
        )
        closed = protected_names.why_name(
            item.name, folder.name
        ) is not None or not self._fence.opens(place)
        try:
            if item.is_symlink():
                return FolderEntry(
                    place, "link", target=os.readlink(item.name, dir_fd=descriptor), closed=True
                )
            if item.is_dir(follow_symlinks=False):
                return FolderEntry(place, "folder", closed=closed)
            found = item.stat(follow_symlinks=False)
        except OSError:
            return FolderEntry(place, "other", closed=True)
        return FolderEntry(
            place, "file" if stat.S_ISREG(found.st_mode) else "other", found.st_size, closed=closed
        )


class _Rules(Struct, frozen=True):
    folder: str
    spec: "GitIgnoreSpec"


def globs(lines: Sequence[str]) -> "GitIgnoreSpec":
    """Patterns in git's dialect; a line that is no pattern is dropped, as git does."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except ValueError:
        return GitIgnoreSpec.from_lines(
            [line for line in lines if _is_pattern(line)], backend="re2"
        )


def _is_pattern(line: str) -> bool:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        GitIgnoreSpecPattern(line)
    except ValueError:
        return False
    return True


def _rules_in(folder: WorkspacePath) -> list[_Rules]:
    place = WorkspacePath(
        folder.root, f"{folder.relative}/.gitignore" if folder.relative else ".gitignore"
    )
    try:
        with paths.opened_file(place) as descriptor:
            text = os.read(descriptor, _MOST_IGNORE_BYTES).decode("utf-8", "replace")
    except (OSError, paths.PathRefused):
        return []
    lines = [
        line
        for line in text.split("\n")[:_MOST_IGNORE_LINES]
        if 0 < len(line) <= _LONGEST_IGNORE_LINE
    ]
    return [_Rules(folder.relative, globs([line.removesuffix("\r") for line in lines]))]


def _is_ignored(entry: FolderEntry, rules: Sequence[_Rules]) -> bool:
    for rule in reversed(rules):
        path = entry.place.relative[len(rule.folder) :].lstrip("/") + (
            "/" if entry.kind == "folder" else ""
        )
        verdict = rule.spec.check_file(path.encode("utf-8", "replace").decode()).include
        if verdict is not None:
            return verdict
    return False
