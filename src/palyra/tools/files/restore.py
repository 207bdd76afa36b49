"""Many changes taken back at once: from their checkpoints, what each file was before the first of
them.

The rule: nobody's work is overwritten. A file that is not as the last of these changes left it, or
that was touched by somebody else between two of them, is a clash and is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from palyra.core.errors import LimitExceeded
from palyra.core.events import FileChange
from palyra.core.tools import Preview
from palyra.tools import blocking, previews
from palyra.tools.files import checkpoints, content
from palyra.tools.files.changes import MOST_BYTES
from palyra.tools.files.checkpoints import Checkpoint, PathState, SavedPath
from palyra.tools.files.content import Content, ContentChange

MOST_FILES = 2_000
MOST_KEPT = 256 << 20


class Clash(Struct, frozen=True):
    """A file that cannot be put back without losing what somebody else did to it."""

    path: str
    why: str


class Aim(Struct, frozen=True):
    """Plan of a restore. `target` is a checkpoint of how the files should be, over how they are
    now.
    """

    target: bytes
    changes: tuple[FileChange, ...]
    clashes: tuple[Clash, ...] = ()
    # Nothing is to be done, not even to a folder.
    idle: bool = False


@dataclass(slots=True)
class _Track:
    """Track of one path: how it was first, and what the last change says of it."""

    first: SavedPath
    last: SavedPath
    meddled: bool = False


@dataclass(slots=True)
class Tracks:
    """Checkpoints of one session's changes, added oldest first. What a path was before the first of
    them is where it goes.
    """

    _paths: dict[str, _Track] = field(default_factory=dict)
    # Whether a folder was there before the first change that mentions it.
    _folders: dict[str, bool] = field(default_factory=dict)
    _kept: int = 0

    def add(self, blob: bytes) -> tuple[str, ...]:
        """Takes in one change; the paths it touches."""
        checkpoint = checkpoints.decode(blob)
        for folder in checkpoint.folders:
            self._folders.setdefault(folder, False)
        for folder in checkpoint.present:
            self._folders.setdefault(folder, True)
        for saved in checkpoint.saved:
            known = self._paths.get(saved.path)
            if known is None:
                self._keep(saved)
            else:
                known.meddled |= checkpoints.state_of(saved).digest not in _left(known.last)
                known.last = saved
        return tuple(saved.path for saved in checkpoint.saved)

    def _keep(self, saved: SavedPath) -> None:
        self._paths[saved.path] = _Track(saved, saved)
        self._kept += len(saved.content)
        if len(self._paths) > MOST_FILES or self._kept > MOST_KEPT:
            raise LimitExceeded(
                f"more than {MOST_FILES:,} files or {MOST_KEPT >> 20} MB would change: go back in"
                " smaller steps"
            )

    def aim(self, workspace: str, *, force: bool = False) -> Aim:
        """Return what is to be done, as the files are now. Clashes are left out, or with `force`
        overwritten.
        """
        wanted, clashes = [], []
        with blocking.family("the files could not be looked at"):
            for path, track in self._paths.items():
                now = checkpoints.state(checkpoints.place_of(path, workspace))
                if now == checkpoints.state_of(track.first):
                    continue
                why = _clash(track, now)
                if why:
                    clashes.append(Clash(path, why))
                if force or not why:
                    wanted.append(
                        SavedPath(
                            path,
                            track.first.kind,
                            track.first.mode,
                            track.first.content,
                            track.first.target,
                            now.digest,
                        )
                    )
            idle = not wanted and all(
                checkpoints.is_folder(name, workspace) == there
                for name, there in self._folders.items()
            )
        absent = tuple(name for name, there in self._folders.items() if not there)
        present = tuple(name for name, there in self._folders.items() if there)
        target = checkpoints.encode(Checkpoint(1, tuple(wanted), absent, present))
        return Aim(target, tuple(map(checkpoints.told, wanted)), tuple(clashes), idle)


def _left(saved: SavedPath) -> tuple[str, str]:
    """Return how a change may have left a path: changed, or, if the call did not come to that, as
    it was.
    """
    return saved.after, checkpoints.state_of(saved).digest


def _clash(track: _Track, now: PathState) -> str:
    first = checkpoints.state_of(track.first)
    if now.digest == first.digest:
        return ""
    if now.digest not in _left(track.last):
        return "changed by somebody else since"
    return "changed by somebody else in between" if track.meddled else ""


def reverse(target: bytes, workspace: str) -> bytes:
    """A checkpoint that takes the restoring of `target` back: the same files as they are now."""
    checkpoint = checkpoints.decode(target)
    after = {
        checkpoints.place_of(saved.path, workspace).absolute: checkpoints.state_of(saved).digest
        for saved in checkpoint.saved
    }
    touched = (*checkpoint.folders, *checkpoint.present)
    return checkpoints.keep(
        [saved.path for saved in checkpoint.saved], workspace, after, MOST_KEPT, touched
    )


def preview(target: bytes, workspace: str) -> Preview:
    """A diff from the files as they are to the files as they would be."""
    with blocking.family("the files could not be looked at"):
        changes = [
            change
            for saved in checkpoints.decode(target).saved
            if (change := _change(saved, workspace)) is not None
        ]
    return previews.of_changes(changes) if changes else Preview("diff", "no text changes", "")


def _change(saved: SavedPath, workspace: str) -> ContentChange | None:
    place = checkpoints.place_of(saved.path, workspace)
    now = checkpoints.state(place)
    if "link" in (saved.kind, now.kind) or now.kind == "other":
        return None
    before: Content | None = content.read(place, MOST_BYTES) if now.kind == "file" else None
    return ContentChange(place, before, saved.content if saved.kind == "file" else None, saved.mode)


def named(clashes: Sequence[Clash]) -> str:
    return ", ".join(f"{clash.path} ({clash.why})" for clash in clashes[:20])
