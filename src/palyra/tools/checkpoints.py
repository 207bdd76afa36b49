"""What makes a reversible call reversible: the files it will touch, as they were before, in one sealed piece.

The rule: a checkpoint is made before the call starts, and restoring puts back the exact bytes or, if somebody else has changed
a file since, nothing at all.
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

from palyra.domain.errors import Conflict, InvalidInput, LimitExceeded
from palyra.domain.events import FileChange
from palyra.tools import files, paths, protected, work
from palyra.tools.catalogue import TypedTool
from palyra.tools.changing import MOST_BYTES, MOST_FILES
from palyra.tools.files import Change
from palyra.tools.paths import Fence, Place

_FENCE = Fence()


class Reversible(TypedTool, Protocol):
    """A tool whose effect is a change of files that can be named, and foretold, before it happens."""

    def checkpoint_paths(self, arguments: object, workspace: str) -> tuple[str, ...]: ...

    def foresee(self, arguments: object, workspace: str) -> dict[str, str]:
        """The SHA-256 that each changed path will have afterwards; empty for a file that will be gone."""
        ...


class _Saved(Struct, frozen=True, omit_defaults=True, array_like=True):
    """One path as it was. `after` is the digest the call gives it; the same as before if the call leaves it alone."""

    path: str
    kind: Literal["absent", "file", "link"]
    mode: int = 0
    content: bytes = b""
    target: str = ""
    after: str = ""


class _Checkpoint(Struct, frozen=True, array_like=True):
    version: Literal[1]
    saved: tuple[_Saved, ...]
    # Folders that did not exist, which the call may make; outermost first.
    folders: tuple[str, ...]


def prepare(tool: Reversible, arguments: object, workspace: str) -> bytes:
    """The checkpoint of a call that is about to run. Raises a PalyraError if the call must not start."""
    return capture(tool.checkpoint_paths(arguments, workspace), workspace, tool.foresee(arguments, workspace))


def capture(given: Sequence[str], workspace: str, after: Mapping[str, str]) -> bytes:
    """The named files as they are, with the digests that the call will give them, as one self-contained piece."""
    if len(given) > MOST_FILES:
        raise LimitExceeded(f"a reversible call may change {MOST_FILES} files, this one names {len(given)}")
    saved, folders, total = [], dict[str, None](), 0
    with work.family("the checkpoint"):
        for path in given:
            place = _place(path, workspace)
            item = _save(place, MOST_BYTES - total, after.get(place.absolute))
            total += len(item.content)
            saved.append(item)
            folders.update(dict.fromkeys(files.missing_folders(place)))
    blob = msgspec.msgpack.encode(_Checkpoint(1, tuple(saved), tuple(folders)))
    return zlib.compress(blob, 1)


def plan(blob: bytes, workspace: str) -> list[FileChange]:
    """What `restore` would change now."""
    with work.family("the files could not be looked at"):
        return [_told(saved) for _, saved, _ in _due(_decode(blob), workspace)]


def restore(blob: bytes, workspace: str, *, force: bool = False) -> list[FileChange]:
    """Put back what a checkpoint holds; says what it changed, which is nothing the second time.

    Raises Conflict, and changes nothing, if a file is neither as it was before the call nor as the call left it.
    """
    checkpoint = _decode(blob)
    with work.family("the files could not be put back"):
        for saved in checkpoint.saved:
            files.sweep(_place(saved.path, workspace))
        due = _due(checkpoint, workspace)
        strangers = tuple(saved.path for _, saved, now in due if now.digest not in (saved.after, _state_of(saved).digest))
        if strangers and not force:
            named = ", ".join(paths.printable(path) for path in strangers)
            raise Conflict(f"changed by somebody else since the call: {named}", files=strangers)
        _put_back(due)
        files.remove_folders(os.path.realpath(workspace), checkpoint.folders)
    return [_told(saved) for _, saved, _ in due]


def _due(checkpoint: _Checkpoint, workspace: str) -> "list[tuple[Place, _Saved, _State]]":
    """The files that are not as the checkpoint has them, with how they are now."""
    places = [(_place(saved.path, workspace), saved) for saved in checkpoint.saved]
    states = [(place, saved, _state(place)) for place, saved in places]
    return [(place, saved, now) for place, saved, now in states if now != _state_of(saved)]


def _told(saved: _Saved) -> FileChange:
    return FileChange(saved.path, "deleted" if saved.kind == "absent" else "restored")


def _put_back(due: Sequence[tuple[Place, _Saved, "_State"]]) -> None:
    for place, _, now in due:
        if now.kind == "link":
            files.remove_link(place)
    changes = []
    for place, saved, now in due:
        before = files.read(place, MOST_BYTES) if now.kind == "file" else None
        if saved.kind == "link":
            changes.append(Change(place, before, None))
        else:
            changes.append(Change(place, before, saved.content if saved.kind == "file" else None, saved.mode))
    files.apply(changes)
    for place, saved, _ in due:
        if saved.kind == "link":
            files.make_link(place, saved.target)


class Sealer:
    """Encrypts checkpoints, because files may hold secrets. The call's id is bound in: one call's seal opens no other's."""

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
            raise InvalidInput("the checkpoint is damaged, or was sealed with another key or for another call") from None


# --- one file ---------------------------------------------------------------------------------------------------------


class _State(Struct, frozen=True):
    """How a path is now; `other` is what no tool of ours leaves behind."""

    kind: Literal["absent", "file", "link", "other"]
    digest: str
    mode: int = 0


def _place(path: str, workspace: str) -> Place:
    """Like `Fence.place` for writing, except that the last name may be a symlink: then the link itself is meant."""
    root = os.path.realpath(workspace)
    absolute = os.path.normpath(os.path.join(root, path))
    above = _FENCE.place(os.path.dirname(absolute), root, writing=True)
    place = Place(root, f"{above.relative}/{os.path.basename(absolute)}".lstrip("/"))
    reason = protected.why(place.relative)
    if reason:
        raise paths.Refused(path, "protected", reason)
    return place


def _save(place: Place, room: int, after: str | None) -> _Saved:
    target = _link_target(place)
    if target is not None:
        return _Saved(place.relative, "link", target=target, after=after if after is not None else _digest(target.encode()))
    content = files.read(place, room)
    if content is None:
        return _Saved(place.relative, "absent", after=after or "")
    digest = _digest(content.data)
    return _Saved(place.relative, "file", content.mode, content.data, after=after if after is not None else digest)


def _state(place: Place) -> _State:
    target = _link_target(place)
    if target is not None:
        return _State("link", _digest(target.encode()))
    try:
        with paths.opened_file(place) as descriptor:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            digest = sha256()
            while chunk := os.read(descriptor, 1 << 20):
                digest.update(chunk)
            return _State("file", digest.hexdigest(), mode)
    except FileNotFoundError:
        return _State("absent", "")
    except (IsADirectoryError, NotADirectoryError, paths.Refused):
        return _State("other", "other")


def _state_of(saved: _Saved) -> _State:
    match saved.kind:
        case "absent":
            return _State("absent", "")
        case "link":
            return _State("link", _digest(saved.target.encode()))
        case "file":
            return _State("file", _digest(saved.content), saved.mode)


def _link_target(place: Place) -> str | None:
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


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _decode(blob: bytes) -> _Checkpoint:
    try:
        return msgspec.msgpack.decode(zlib.decompress(blob), type=_Checkpoint)
    except (zlib.error, msgspec.DecodeError) as error:
        raise InvalidInput(f"the checkpoint cannot be read: {error}") from None
