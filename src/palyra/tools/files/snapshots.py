"""One path as it was or is: what is kept of a file before it is changed, and how it is compared
with what is there now.

The rule: a symlink is itself, never what it points to, and a path is only ever looked at through
the fence.
"""

import errno
import os
import stat
import zlib
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.tools import paths, protected_names
from palyra.tools.files import content as files_content
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
    """How a path is now; `other` is what no tool of ours leaves behind."""

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
