"""Checkpoints that make a call reversible: the files it will touch, as they were before, in one
sealed piece.

The rule: a checkpoint is made before the call starts, and restoring puts back the exact bytes or,
if somebody else has changed a file since, nothing at all.

One path as it was or is: what is kept of a file before it is changed, and how it is compared with
what is there now.

The rule: a symlink is itself, never what it points to, and a path is only ever looked at through
the fence.
"""

import errno
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded
from palyra.core.events import FileChange
from palyra.tools import blocking, paths, protected_names
from palyra.tools.catalogue import TypedTool
from palyra.tools.files import content
from palyra.tools.files import content as files_content
from palyra.tools.files.changes import MOST_BYTES, MOST_FILES
from palyra.tools.files.content import ContentChange
from palyra.tools.paths import PathGuard, WorkspacePath

_FENCE = PathGuard()


class SavedPath(Struct, frozen=True, omit_defaults=True, array_like=True):
    """One path as it was. `after` is the digest the call gives it; the same as before if the call
    leaves it alone.
    """

    path: str
    kind: Literal["absent", "file", "link"]
    mode: int = 0
    content: bytes = b""
    target: str = ""
    after: str = ""


class Checkpoint(Struct, frozen=True, array_like=True):
    version: Literal[1]
    saved: tuple[SavedPath, ...]
    # Folders that did not exist, which the call may make; outermost first.
    folders: tuple[str, ...]
    # Folders that did exist and may be empty, so that no file brings them back.
    present: tuple[str, ...] = ()


class PathState(Struct, frozen=True):
    """State of a path now; `other` is what no tool of ours leaves behind."""

    kind: Literal["absent", "file", "link", "other"]
    digest: str
    mode: int = 0


def encode(checkpoint: Checkpoint) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(checkpoint), 1)


def decode(blob: bytes) -> Checkpoint:
    try:
        return msgspec.msgpack.decode(zlib.decompress(blob), type=Checkpoint)
    except (zlib.error, msgspec.DecodeError) as error:
        raise InvalidInput(f"the checkpoint cannot be read: {error}") from None


def place_of(path: str, workspace: str) -> WorkspacePath:
    """Like `Fence.place` for writing, except that the last name may be a symlink: then the link
    itself is meant.
    """
    root = os.path.realpath(workspace)
    absolute = os.path.normpath(os.path.join(root, path))
    above = _FENCE.place(os.path.dirname(absolute), root, writing=True)
    place = WorkspacePath(root, f"{above.relative}/{os.path.basename(absolute)}".lstrip("/"))
    reason = protected_names.why(place.relative)
    if reason:
        raise paths.PathRefused(path, "protected", reason)
    return place


def save(place: WorkspacePath, room: int, after: str | None) -> SavedPath:
    target = _link_target(place)
    if target is not None:
        return SavedPath(
            place.relative,
            "link",
            target=target,
            after=after if after is not None else digest_of(target.encode()),
        )
    content = files_content.read(place, room)
    if content is None:
        return SavedPath(place.relative, "absent", after=after or "")
    digest = digest_of(content.data)
    return SavedPath(
        place.relative,
        "file",
        content.mode,
        content.data,
        after=after if after is not None else digest,
    )


def state(place: WorkspacePath) -> PathState:
    target = _link_target(place)
    if target is not None:
        return PathState("link", digest_of(target.encode()))
    try:
        with paths.opened_file(place) as descriptor:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            digest = sha256()
            while chunk := os.read(descriptor, 1 << 20):
                digest.update(chunk)
            return PathState("file", digest.hexdigest(), mode)
    except FileNotFoundError:
        return PathState("absent", "")
    except (IsADirectoryError, NotADirectoryError, paths.PathRefused):
        return PathState("other", "other")


def is_folder(folder: str, workspace: str) -> bool:
    try:
        with paths.opened_folder(os.path.realpath(workspace), folder.split("/")):
            return True
    except (FileNotFoundError, NotADirectoryError, paths.PathRefused):
        return False


def state_of(saved: SavedPath) -> PathState:
    match saved.kind:
        case "absent":
            return PathState("absent", "")
        case "link":
            return PathState("link", digest_of(saved.target.encode()))
        case "file":
            return PathState("file", digest_of(saved.content), saved.mode)


def _link_target(place: WorkspacePath) -> str | None:
    try:
        with paths.opened_folder(place.root, place.folders) as folder:
            return os.readlink(place.name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        # EINVAL: it is there and is no symlink.
        if error.errno in (errno.EINVAL, errno.ENOTDIR):
            return None
        raise


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


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
            place = place_of(path, workspace)
            item = save(place, most_bytes - total, after.get(place.absolute))
            total += len(item.content)
            saved.append(item)
            folders.update(dict.fromkeys(content.missing_folders(place)))
        present = tuple(folder for folder in touched if is_folder(folder, workspace))
    folders.update(dict.fromkeys(folder for folder in touched if folder not in present))
    return encode(Checkpoint(1, tuple(saved), tuple(folders), present))


def plan(blob: bytes, workspace: str) -> list[FileChange]:
    """Return what `restore` would change now."""
    with blocking.family("the files could not be looked at"):
        return [told(saved) for _, saved, _ in _due(decode(blob), workspace)]


def restore(
    blob: bytes, workspace: str, *, force: bool = False, leave: bool = False
) -> list[FileChange]:
    """Put back what a checkpoint holds; says what it changed, which is nothing the second time.

    Raises Conflict, and changes nothing, if a file is neither as it was before the call nor as the
    call left it. Such a file is overwritten with `force`, and passed over with `leave`.
    """
    checkpoint = decode(blob)
    with blocking.family("the files could not be put back"):
        for saved in checkpoint.saved:
            content.sweep(place_of(saved.path, workspace))
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
    return now.digest not in (saved.after, state_of(saved).digest)


def _due(
    checkpoint: Checkpoint, workspace: str
) -> list[tuple[WorkspacePath, SavedPath, PathState]]:
    """The files that are not as the checkpoint has them, with how they are now."""
    places = [(place_of(saved.path, workspace), saved) for saved in checkpoint.saved]
    states = [(place, saved, state(place)) for place, saved in places]
    return [(place, saved, now) for place, saved, now in states if now != state_of(saved)]


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
