"""From a path that a model wrote to a file inside the workspace, and to nothing else.

Two guards, because either alone can be raced: `Fence.place` says where a path leads now and refuses
what is never allowed; opening walks from the workspace root one folder at a time and follows no
symlink, so a path that was swapped after the check leads to a refusal, not outside.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from palyra.core.errors import Forbidden, InvalidInput
from palyra.tools import protected_names

Reason = Literal["outside", "protected", "forbidden_root", "bad_name", "symlink", "not_a_file"]

_LONGEST_NAME = 255
_LONGEST_PATH = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class PathRefused(Forbidden):
    """A hard denial: no policy and no approval can lift it."""

    def __init__(self, path: str, reason: Reason, why: str) -> None:
        super().__init__(
            f"{printable(path)!r} is refused: {why}", path=printable(path), reason=reason
        )
        self.reason = reason


class WorkspacePath(Struct, frozen=True):
    """A path that was found to lie inside `root`; `relative` has no symlink, no `..`, and is empty
    for the root itself.
    """

    root: str
    relative: str

    @property
    def absolute(self) -> str:
        return f"{self.root.rstrip('/')}/{self.relative}" if self.relative else self.root

    @property
    def shown(self) -> str:
        return printable(self.relative) or "."

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self.relative.split("/")[:-1])

    @property
    def name(self) -> str:
        return self.relative.rsplit("/", 1)[-1]


class PathGuard:
    """Limits on where file tools may go. `forbidden` are folders that stay closed even inside a
    workspace, such as the daemon's own.
    """

    def __init__(self, forbidden: Sequence[str] = ()) -> None:
        self._forbidden = tuple(os.path.realpath(root) for root in forbidden)

    def place(self, given: str, workspace: str, *, writing: bool = False) -> WorkspacePath:
        """Return where `given` leads. To write, it must be named directly: a symlink on the way
        could change before the write.
        """
        _check_spelling(given)
        root = os.path.realpath(workspace)
        given = _rooted(given, root)
        lexical = os.path.normpath(os.path.join(root, given))
        real = _resolved(root, lexical if writing else os.path.join(root, given))
        for where in (lexical, real):
            # A name is refused as it was written and as it resolves, so that no link lends another
            # name to a secret.
            if _inside(where, root):
                self._check_names(given, _relative(where, root))
        if not _inside(real, root):
            raise PathRefused(given, "outside", _outside(given, root))
        if any(_inside(real, closed) for closed in self._forbidden):
            raise PathRefused(
                given, "forbidden_root", "it lies in a folder that belongs to the daemon"
            )
        relative = _relative(real, root)
        if writing and lexical != real:
            raise PathRefused(
                given, "symlink", f"a symlink leads to {relative or '.'!r}: name that path instead"
            )
        return WorkspacePath(root, relative)

    def opens(self, place: WorkspacePath) -> bool:
        """Return whether a place met on a walk lies outside the daemon's own folders."""
        return not any(_inside(place.absolute, closed) for closed in self._forbidden)

    @staticmethod
    def _check_names(given: str, relative: str) -> None:
        reason = protected_names.why(relative)
        if reason:
            raise PathRefused(given, "protected", reason)


def _outside(given: str, root: str) -> str:
    relative = os.path.normpath(given.lstrip("/"))
    told = f"it leads outside the workspace {root}"
    if given.startswith("/") and os.path.lexists(os.path.join(root, relative)):
        return f"{told}; did you mean {printable(relative)!r}?"
    return told


def _rooted(given: str, root: str) -> str:
    """A path that models write when they are told the workspace's: its own, without the first
    slash. Nothing of that name is in the workspace.
    """
    own = root.lstrip("/")
    if not own or not (given == own or given.startswith(f"{own}/")):
        return given
    return given if os.path.lexists(os.path.join(root, own.partition("/")[0])) else f"/{given}"


@contextmanager
def opened_folder(root: str, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `root`, reached without following a symlink; `create` makes
    what is missing.
    """
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts):
            if create:
                _make_folder(part, current)
            try:
                below = os.open(part, _FOLDER, dir_fd=current)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(part, current):
                    raise PathRefused(
                        "/".join(parts[: index + 1]), "symlink", "it became a symlink"
                    ) from None
                raise
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


@contextmanager
def opened_file(place: WorkspacePath) -> Iterator[int]:
    """A descriptor of a regular file, for reading. Devices, pipes and sockets are refused without
    being opened.
    """
    with opened_folder(place.root, place.folders) as folder:
        if not place.relative:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        check_regular(place, os.stat(place.name, dir_fd=folder, follow_symlinks=False))
        try:
            descriptor = os.open(place.name, _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise PathRefused(place.relative, "symlink", "it became a symlink") from None
            raise
    try:
        check_regular(place, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def check_regular(place: WorkspacePath, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise PathRefused(place.relative, "symlink", "it became a symlink")
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(
            place.relative, "not_a_file", "it is a device, a pipe or a socket, not a file"
        )


def printable(path: str) -> str:
    """A path fit for a message: names may hold any bytes, messages may not."""
    clean = path.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in clean)[:512]


def _make_folder(name: str, above: int) -> None:
    try:
        os.mkdir(name, dir_fd=above)
    except FileExistsError:
        return
    os.fsync(above)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _check_spelling(given: str) -> None:
    if any(ord(char) < 32 or ord(char) == 127 for char in given):
        raise PathRefused(given, "bad_name", "it has a control character")
    try:
        encoded = os.fsencode(given)
        given.encode()
    except UnicodeEncodeError:
        raise PathRefused(given, "bad_name", "it is not valid Unicode") from None
    if len(encoded) > _LONGEST_PATH or any(
        len(part) > _LONGEST_NAME for part in encoded.split(b"/")
    ):
        raise PathRefused(given, "bad_name", "it is too long for a file name")
    if given == "~" or given.startswith("~/"):
        raise InvalidInput(
            f"{printable(given)!r}: ~ is not expanded, name paths relative to the workspace",
            path=given,
        )


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _resolved(root: str, path: str) -> str:
    """`os.path.realpath`, with the links of `root`, which has none, not looked for again."""
    if not path.startswith(root + "/"):
        return os.path.realpath(path)
    at = root
    for name in path[len(root) + 1 :].split("/"):
        if name in ("", "."):
            continue
        at = f"{at}/{name}"
        try:
            plain = name != ".." and not stat.S_ISLNK(os.lstat(at).st_mode)
        except OSError:
            plain = False
        if not plain:
            return os.path.realpath(path)
    return at


def _relative(path: str, root: str) -> str:
    return path[len(root) :].lstrip("/")
