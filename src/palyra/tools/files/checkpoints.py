"""What makes a reversible call reversible: the files it will touch, as they were before, in one
sealed piece.

The rule: a checkpoint is made before the call starts, and restoring puts back the exact bytes or,
if somebody else has changed a file since, nothing at all.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded
from palyra.core.events import FileChange
from palyra.tools import blocking, paths
from palyra.tools.catalogue import TypedTool
from palyra.tools.files import content, snapshots
from palyra.tools.files.changes import MOST_BYTES, MOST_FILES
from palyra.tools.files.content import ContentChange
from palyra.tools.files.snapshots import Checkpoint, PathState, SavedPath
from palyra.tools.paths import WorkspacePath

# Each file that is replaced holds two descriptors until its batch is done.
_AT_ONCE = 128


class Reversible(TypedTool, Protocol):
    """A tool whose effect is a change of files that can be named, and foretold, before it
    happens.
    """

    def checkpoint_paths(self, arguments: object, workspace: str) -> tuple[str, ...]: ...

    def foresee(self, arguments: object, workspace: str) -> dict[str, str]:
        """The SHA-256 that each changed path will have afterwards; empty for a file that will be
        gone.
        """
        ...


def prepare(tool: Reversible, arguments: object, workspace: str) -> bytes:
    """The checkpoint of a call that is about to run. Raises a PalyraError if the call must not
    start.
    """
    return capture(
        tool.checkpoint_paths(arguments, workspace), workspace, tool.foresee(arguments, workspace)
    )


def capture(given: Sequence[str], workspace: str, after: Mapping[str, str]) -> bytes:
    """The named files as they are, with the digests that the call will give them, as one
    self-contained piece.
    """
    if len(given) > MOST_FILES:
        raise LimitExceeded(
            f"a reversible call may change {MOST_FILES} files, this one names {len(given)}"
        )
    return keep(given, workspace, after, MOST_BYTES)


def keep(
    given: Sequence[str],
    workspace: str,
    after: Mapping[str, str],
    most_bytes: int,
    touched: Sequence[str] = (),
) -> bytes:
    """The same for as many files as are named, up to a size, and for folders that may be removed or
    made.
    """
    saved, folders, total = [], dict[str, None](), 0
    with blocking.family("the checkpoint"):
        for path in given:
            place = snapshots.place_of(path, workspace)
            item = snapshots.save(place, most_bytes - total, after.get(place.absolute))
            total += len(item.content)
            saved.append(item)
            folders.update(dict.fromkeys(content.missing_folders(place)))
        present = tuple(folder for folder in touched if snapshots.is_folder(folder, workspace))
    folders.update(dict.fromkeys(folder for folder in touched if folder not in present))
    return snapshots.encode(Checkpoint(1, tuple(saved), tuple(folders), present))


def plan(blob: bytes, workspace: str) -> list[FileChange]:
    """What `restore` would change now."""
    with blocking.family("the files could not be looked at"):
        return [told(saved) for _, saved, _ in _due(snapshots.decode(blob), workspace)]


def restore(
    blob: bytes, workspace: str, *, force: bool = False, leave: bool = False
) -> list[FileChange]:
    """Put back what a checkpoint holds; says what it changed, which is nothing the second time.

    Raises Conflict, and changes nothing, if a file is neither as it was before the call nor as the
    call left it. Such a file is overwritten with `force`, and passed over with `leave`.
    """
    checkpoint = snapshots.decode(blob)
    with blocking.family("the files could not be put back"):
        for saved in checkpoint.saved:
            content.sweep(snapshots.place_of(saved.path, workspace))
        due = _due(checkpoint, workspace)
        strangers = tuple(saved.path for _, saved, now in due if _strange(saved, now))
        if leave:
            due = [(place, saved, now) for place, saved, now in due if not _strange(saved, now)]
        elif strangers and not force:
            named = ", ".join(paths.printable(path) for path in strangers)
            raise Conflict(f"changed by somebody else since the call: {named}", files=strangers)
        for start in range(0, len(due), _AT_ONCE):
            _put_back(due[start : start + _AT_ONCE])
        root = os.path.realpath(workspace)
        content.remove_folders(root, checkpoint.folders)
        for folder in checkpoint.present:
            with paths.opened_folder(root, folder.split("/"), create=True):
                pass
    return [told(saved) for _, saved, _ in due]


def _strange(saved: SavedPath, now: PathState) -> bool:
    return now.digest not in (saved.after, snapshots.state_of(saved).digest)


def _due(
    checkpoint: Checkpoint, workspace: str
) -> list[tuple[WorkspacePath, SavedPath, PathState]]:
    """The files that are not as the checkpoint has them, with how they are now."""
    places = [(snapshots.place_of(saved.path, workspace), saved) for saved in checkpoint.saved]
    states = [(place, saved, snapshots.state(place)) for place, saved in places]
    return [(place, saved, now) for place, saved, now in states if now != snapshots.state_of(saved)]


def told(saved: SavedPath) -> FileChange:
    return FileChange(saved.path, "deleted" if saved.kind == "absent" else "restored")


def _put_back(due: Sequence[tuple[WorkspacePath, SavedPath, PathState]]) -> None:
    for place, _, now in due:
        if now.kind == "link":
            content.remove_link(place)
    changes = []
    for place, saved, now in due:
        before = content.read(place, MOST_BYTES) if now.kind == "file" else None
        if saved.kind == "link":
            changes.append(ContentChange(place, before, None))
        else:
            changes.append(
                ContentChange(
                    place, before, saved.content if saved.kind == "file" else None, saved.mode
                )
            )
    content.apply(changes)
    for place, saved, _ in due:
        if saved.kind == "link":
            content.make_link(place, saved.target)


class Sealer:
    """Encrypts checkpoints, because files may hold secrets. The call's id is bound in: one call's
    seal opens no other's.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) != 32:
            raise ValueError("a sealing key has 32 bytes")
        self._cipher = AESGCM(key)

    def seal(self, blob: bytes, call_id: str) -> bytes:
        nonce = os.urandom(12)
        return b"\x01" + nonce + self._cipher.encrypt(nonce, blob, call_id.encode())

    def open(self, sealed: bytes, call_id: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            if sealed[:1] != b"\x01" or len(sealed) < 13:
                raise InvalidTag
            return self._cipher.decrypt(sealed[1:13], sealed[13:], call_id.encode())
        except InvalidTag:
            raise InvalidInput(
                "the checkpoint is damaged, or was sealed with another key or for another call"
            ) from None
