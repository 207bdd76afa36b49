"""A repository's own folder while a command runs: read-only, but for an allow-list that reaches the
host only through the daemon.

Git makes `index.lock` beside `index` and renames it, so single files cannot be mounted. The command
gets a folder of its own in the place of `.git`: copies of the few files it may change, `objects`,
`refs` and `logs` of the real one, the rest of it read-only. What the command puts there beyond the
list never reaches the real folder, not even for a moment.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator

from palyra.core.obeyed_files import GIT_FILES, GIT_FOLDERS, GIT_LOCKS
from palyra.tools.sandbox.masks import STAGED, Mask

MOST_STAGED = 32
_LARGEST = 512 << 20
_CHUNK = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_HEAD = re.compile(rb"(ref: refs/[^\x00-\x20~^:?*\[\\]+|[0-9a-f]{40}|[0-9a-f]{64})\s*")
# An index that was split lies in two files, of which the second has no fixed name.
_SHARED_INDEX = re.compile(r"sharedindex\.([0-9a-f]{40}|[0-9a-f]{64})")

# What git leaves behind and does not need again.
_SCRATCH = frozenset({"AUTO_MERGE", "gc.log", "gc.pid"})

Identity = tuple[int, int]
_Stamp = tuple[int, int, int, int] | None


def may_change(name: str) -> bool:
    """Return whether a command may change the file of this name in a repository's own folder."""
    return name in GIT_FILES or _SHARED_INDEX.fullmatch(name) is not None


def identity(path: str) -> Identity | None:
    """Return what stays the same of a file or folder when it is moved; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Stage:
    """One repository's folder for one command. `masks` are its mounts; use it until `close`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._real = os.open(path, _FOLDER)
        self._name = ""
        self._own = -1
        self._last: dict[str, tuple[_Stamp, _Stamp]] = {}
        self._placed: frozenset[str] = frozenset()
        self.masks: list[Mask] = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        _sweep(self._real)
        entries = {
            name: os.lstat(name, dir_fd=self._real)
            for name in os.listdir(self._real)
            if not name.startswith(STAGED)
        }
        if "HEAD" in entries and stat.S_ISDIR(
            entries["objects"].st_mode if "objects" in entries else 0
        ):
            # Where they are missing a command could make its own, with alternates in it, or would
            # lose its history.
            for name in ("logs", "objects/info"):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self._real)
            entries["logs"] = os.lstat("logs", dir_fd=self._real)
        self._name = STAGED + secrets.token_hex(8)
        os.mkdir(self._name, 0o700, dir_fd=self._real)
        self._own = os.open(self._name, _FOLDER, dir_fd=self._real)
        # Whoever sweeps sees by the lock that this one is in use.
        fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.masks = [Mask(self.path, "stage", os.path.join(self.path, self._name))]
        for name, found in entries.items():
            self._place(name, found)
        self._placed = frozenset(os.listdir(self._own)) | frozenset(entries)

    def _place(self, name: str, found: os.stat_result) -> None:
        path = os.path.join(self.path, name)
        if stat.S_ISDIR(found.st_mode) and name in GIT_FOLDERS:
            self.masks.append(Mask(path, "pin"))
            if name == "objects" and os.path.isdir(os.path.join(path, "info")):
                self.masks.append(Mask(os.path.join(path, "info"), "read_only"))
        elif stat.S_ISREG(found.st_mode) and may_change(name):
            _copy(self._real, name, self._own, name)
            self._last[name] = (_stamp(self._real, name), _stamp(self._own, name))
        elif stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and name not in GIT_LOCKS):
            self.masks.append(Mask(path, "read_only"))
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=self._real), name, dir_fd=self._own)

    @property
    def known(self) -> Identity:
        found = os.fstat(self._real)
        return found.st_dev, found.st_ino

    def moved(self) -> bool:
        """Return whether either side has changed since the two were last brought together. Looks at
        a few names.
        """
        return any(
            stamps != (_stamp(self._real, name), _stamp(self._own, name))
            for name, stamps in self._names()
        )

    def sync(self) -> list[str]:
        """Bring what is on the list to the host, and the host's own changes to the command. Return
        what could not be brought.
        """
        said = []
        for name, (real, own) in list(self._names()):
            now_real, now_own = _stamp(self._real, name), _stamp(self._own, name)
            if now_own != own:
                why = self._bring(name, real, now_real)
                if why:
                    said.append(f"{self._shown(name)} was not kept: {why}")
            elif now_real != real and now_real is not None:
                self._refresh(name)
            self._last[name] = (_stamp(self._real, name), _stamp(self._own, name))
        return said

    def left(self) -> list[str]:
        """Return what the command put beside the list: it stays behind in the sandbox."""
        names = [
            name
            for name in os.listdir(self._own)
            if name not in self._placed and name not in GIT_LOCKS | _SCRATCH
        ]
        return [self._shown(name) for name in sorted(names) if not may_change(name)]

    def unlink_links(self) -> list[str]:
        """Remove symlinks from the folders that a command may write: git would write, on the host,
        where they lead.
        """
        removed = []
        for folder in sorted(GIT_FOLDERS):
            removed += [self._shown(f"{folder}/{name}") for name in unlinked(self._real, folder)]
        return removed

    def close(self) -> None:
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
            shutil.rmtree(self._name, ignore_errors=True, dir_fd=self._real)
        if self._real >= 0:
            os.close(self._real)
            self._real = -1

    def _names(self) -> Iterator[tuple[str, tuple[_Stamp, _Stamp]]]:
        shared = [name for name in os.listdir(self._own) if _SHARED_INDEX.fullmatch(name)]
        for name in sorted({*GIT_FILES, *shared}):
            yield name, self._last.get(name, (None, None))

    def _bring(self, name: str, known: _Stamp, now: _Stamp) -> str:
        if now != known:
            return "it was changed on the host meanwhile"
        try:
            found = os.lstat(name, dir_fd=self._own)
        except FileNotFoundError:
            if name == "HEAD":
                return "a repository without it is none"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._real)
            return ""
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return "it is no ordinary file"
        if name == "HEAD" and not _HEAD.fullmatch(_beginning(self._own, name)):
            return "it names no branch and no commit"
        return self._put(name)

    def _put(self, name: str) -> str:
        """Put a file as git itself would: a lock that no other git has, then a rename."""
        lock = f"{name}.lock"
        try:
            _copy(self._own, name, self._real, lock)
        except FileExistsError:
            return f"another git holds {self._shown(lock)}"
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(lock, dir_fd=self._real)
            return error.strerror or str(error)
        os.rename(lock, name, src_dir_fd=self._real, dst_dir_fd=self._real)
        return ""

    def _refresh(self, name: str) -> None:
        fresh = f"{name}.{secrets.token_hex(4)}.lock"
        with contextlib.suppress(OSError):
            _copy(self._real, name, self._own, fresh)
            os.rename(fresh, name, src_dir_fd=self._own, dst_dir_fd=self._own)

    def _shown(self, name: str) -> str:
        return f"{os.path.basename(self.path)}/{name}"


def unlinked(above: int, folder: str) -> list[str]:
    """Remove every symlink below a folder; objects have two levels, and none of them is a link."""
    removed: list[str] = []
    try:
        top = os.open(folder, _FOLDER, dir_fd=above)
    except NotADirectoryError:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(folder, dir_fd=above).st_mode):
                os.unlink(folder, dir_fd=above)
                removed.append(".")
        return removed
    except OSError as error:
        if error.errno == errno.ELOOP:
            os.unlink(folder, dir_fd=above)
            return ["."]
        return removed
    try:
        for at, folders, files, here in os.fwalk(".", dir_fd=top):
            if folder == "objects" and at != ".":
                folders[:] = []
            for name in (*folders, *files):
                if stat.S_ISLNK(os.lstat(name, dir_fd=here).st_mode):
                    os.unlink(name, dir_fd=here)
                    removed.append(os.path.normpath(os.path.join(at, name)))
    finally:
        os.close(top)
    return removed


def _stamp(folder: int, name: str) -> _Stamp:
    try:
        found = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _beginning(folder: int, name: str) -> bytes:
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _copy(source: int, name: str, target: int, new: str) -> None:
    """Copy a file into one that was not there. Its time comes along: git tells by it which files it
    must look at again.
    """
    descriptor = os.open(name, _FILE, dir_fd=source)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        into = os.open(new, _NEW, found.st_mode & 0o666 | 0o600, dir_fd=target)
        try:
            left = min(found.st_size, _LARGEST)
            while left > 0 and (chunk := os.read(descriptor, min(_CHUNK, left))):
                left -= len(chunk)
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(into, rest) :]
            os.utime(into, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(into)
    finally:
        os.close(descriptor)


def _sweep(real: int) -> None:
    """Remove what a daemon that died has left. One that is in use is locked."""
    for name in os.listdir(real):
        if not name.startswith(STAGED):
            continue
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=real)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(name, ignore_errors=True, dir_fd=real)
        finally:
            os.close(descriptor)
