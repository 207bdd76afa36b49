"""Reading and replacing whole files inside a workspace.

The rule: a file is either as it was or as it should be, also after a crash, a full disk or a
cancel. A new content is written beside the file, synced, and renamed over it; what a crash leaves
behind has a recognisable name and is swept by the next write.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Event as Flag
from typing import Literal

from msgspec import Struct

from palyra.core.errors import InvalidInput, LimitExceeded
from palyra.tools import paths, protected_names
from palyra.tools.paths import WorkspacePath

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class WriteStopped(Exception):
    """The caller lost interest before the first file was replaced; nothing has changed."""


class Content(Struct, frozen=True):
    data: bytes
    mode: int


class ContentChange(Struct, frozen=True):
    """One file before and after; None means that it does not exist. `mode` is what the new file
    gets.
    """

    place: WorkspacePath
    before: Content | None
    after: bytes | None
    mode: int | None = None


def read(place: WorkspacePath, most: int) -> Content | None:
    """The whole file, or None if there is none. A file that is larger than `most` is refused."""
    try:
        with paths.opened_file(place) as descriptor:
            found = os.fstat(descriptor)
            if found.st_size > most:
                raise LimitExceeded(
                    f"{place.shown} has {found.st_size:,} bytes, the limit is {most:,}",
                    path=place.shown,
                )
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(most + 1)
    except FileNotFoundError:
        return None
    if len(data) > most:
        raise LimitExceeded(
            f"{place.shown} grew past the limit of {most:,} bytes", path=place.shown
        )
    return Content(data, stat.S_IMODE(found.st_mode))


def apply(changes: Sequence[ContentChange], stop: Flag | None = None) -> None:
    """Make all of the changes or none of them."""
    made = [folder for change in changes for folder in missing_folders(change.place)]
    commits: list[_Commit] = []
    try:
        with ExitStack() as stack:
            for change in changes:
                commits.append(stack.enter_context(_staged(change)))
            if stop is not None and stop.is_set():
                raise WriteStopped
            for commit in commits:
                commit.run()
    except BaseException:
        done = [change for change, commit in zip(changes, commits, strict=False) if commit.done]
        for change in reversed(done):
            _put_back(change)
        remove_folders(changes[0].place.root if changes else "", made)
        raise


def _put_back(change: ContentChange) -> None:
    before = change.before
    back = (
        ContentChange(change.place, None, before.data, before.mode)
        if before
        else ContentChange(change.place, None, None)
    )
    with _staged(back) as commit:
        commit.run()


def missing_folders(place: WorkspacePath) -> tuple[str, ...]:
    """The folders above a file that do not exist yet, outermost first, relative to the
    workspace.
    """
    folders = place.folders
    for depth in range(1, len(folders) + 1):
        try:
            with paths.opened_folder(place.root, folders[:depth]):
                pass
        except FileNotFoundError:
            return tuple("/".join(folders[:length]) for length in range(depth, len(folders) + 1))
    return ()


def remove_folders(root: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Remove those of the folders that are empty, innermost first; returns what was removed."""
    removed = []
    for folder in sorted(set(folders), key=lambda each: each.count("/"), reverse=True):
        above, _, name = folder.rpartition("/")
        with (
            suppress(OSError, paths.PathRefused),
            paths.opened_folder(root, above.split("/") if above else ()) as descriptor,
        ):
            os.rmdir(name, dir_fd=descriptor)
            removed.append(folder)
    return tuple(removed)


def sweep(place: WorkspacePath) -> None:
    """Remove what a crashed write left beside a file."""
    with suppress(FileNotFoundError), paths.opened_folder(place.root, place.folders) as folder:
        _sweep(folder)


def remove_link(place: WorkspacePath) -> None:
    with paths.opened_folder(place.root, place.folders) as folder:
        os.unlink(place.name, dir_fd=folder)


def make_link(place: WorkspacePath, target: str) -> None:
    """Put a symlink where it once was, in one step."""
    with paths.opened_folder(place.root, place.folders, create=True) as folder:
        temporary = _temporary_name()
        os.symlink(target, temporary, dir_fd=folder)
        try:
            os.rename(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


class _Commit(Struct):
    """The last step of one change: a rename or an unlink in an open folder."""

    folder: int
    name: str
    temporary: str | None
    done: bool = False

    def run(self) -> None:
        if self.temporary is not None:
            os.rename(self.temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        else:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self.folder)
        self.done = True
        os.fsync(self.folder)


@contextmanager
def _staged(change: ContentChange) -> Iterator[_Commit]:
    place = change.place
    with paths.opened_folder(place.root, place.folders, create=change.after is not None) as folder:
        _sweep(folder)
        found = _present(place, folder)
        if change.after is None:
            yield _Commit(folder, place.name, None)
            return
        name, descriptor = _new_temporary(folder)
        commit = _Commit(folder, place.name, name)
        try:
            _write_all(descriptor, change.after)
            _take_over(descriptor, found, change.mode)
            os.fsync(descriptor)
            yield commit
        finally:
            # The lock on the descriptor tells a sweeping writer that this file is not left over.
            os.close(descriptor)
            if not commit.done:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)


def _present(place: WorkspacePath, folder: int) -> os.stat_result | None:
    try:
        found = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    paths.check_regular(place, found)
    # Renaming over a file needs no right on the file itself, but who took the write bits away meant
    # it.
    if not found.st_mode & 0o222:
        raise InvalidInput(f"{place.shown} is read-only: make it writable first", path=place.shown)
    return found


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_over(descriptor: int, found: os.stat_result | None, mode: int | None) -> None:
    """The new file keeps the owner and the mode of the old one."""
    if found is not None:
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
            with suppress(PermissionError):
                os.fchown(descriptor, found.st_uid, found.st_gid)
    if mode is not None:
        os.fchmod(descriptor, mode)
    elif found is not None:
        os.fchmod(descriptor, found.st_mode & 0o777)


def _temporary_name() -> str:
    return protected_names.TEMPORARY + secrets.token_hex(8)


def _new_temporary(folder: int) -> tuple[str, int]:
    while True:
        name = _temporary_name()
        descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
        try:
            state = _lock(descriptor)
            # Another writer may have swept the file in the instant before it was locked: then take
            # a new one.
            if state != "busy" and os.fstat(descriptor).st_nlink:
                return name, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _sweep(folder: int) -> None:
    """Remove what a crashed write left in this folder. A file that somebody still writes is locked
    and stays.
    """
    for name in os.listdir(folder):
        if not name.startswith(protected_names.TEMPORARY):
            continue
        try:
            descriptor = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )
        except OSError as error:
            if error.errno == errno.ELOOP:
                os.unlink(name, dir_fd=folder)
            continue
        try:
            if _lock(descriptor) == "locked":
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> Literal["locked", "busy", "unsupported"]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "busy"
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return "unsupported"
    return "locked"
