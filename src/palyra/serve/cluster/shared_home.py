"""Files that every node of a journal needs beside it: keys, policies, skills, settings. The leader
keeps what it changes in the journal's database; the others have it before they lead.

Settings that say where this node is, and how it reaches the others, stay its own.
"""

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomlkit

from palyra.core.errors import ConfigInvalid
from palyra.features.backups import home_copy
from palyra.serve import config
from palyra.serve.cluster.keys import ClusterKeys
from palyra.store.nodes import NodeStore, SharedFile
from palyra.system.private_files import make_private, write_private

log = logging.getLogger("palyra.cluster")

# There once a home has what the nodes share: from then on nothing in it is its own.
_JOINED = "node.joined"
REPLACED = "replaced"
_LARGEST = 512 << 20
_POLICIES = home_copy.OUTSIDE + "/"
# What says where one node is.
_OWN_SETTINGS = (
    ("cluster",),
    ("journal", "store"),
    ("server", "host"),
    ("server", "http_port"),
    ("server", "grpc_port"),
    ("server", "quic_port"),
    ("server", "tls"),
    ("workers", "listen"),
    ("workspace",),
    ("log",),
)
_Stamp = tuple[int, int, int]


class SharedHome:
    """The files of one node's home that it has in common with the others."""

    def __init__(self, home: Path, policies: Path, store: NodeStore, keys: ClusterKeys) -> None:
        self._home = home
        self._policies = policies
        self._store = store
        self._keys = keys
        self._stamps: dict[str, _Stamp] = {}
        self._digests: dict[str, bytes] = {}
        # Who waits for a thread may be cancelled, and begin the next one beside it.
        self._one_at_a_time = threading.Lock()

    def push(self, epoch: int, *, first: bool = False) -> bool:
        """Keep what has changed since the last time. False: another node leads. `first`: this node
        has begun to lead, and has all there is.
        """
        with self._one_at_a_time:
            return self._push(epoch, first=first)

    def _push(self, epoch: int, *, first: bool) -> bool:
        if first:
            self._digests = self._store.digests()
        here = dict(self._files())
        changed, digests, stamps = [], {}, {}
        for name, path in here.items():
            try:
                stamp = _stamp(path)
                if not first and self._stamps.get(name) == stamp:
                    continue
                body = self._shared(name, path)
            except FileNotFoundError:
                continue
            if len(body) > _LARGEST:
                log.error("%s is too large to be shared with the other nodes", path)
                continue
            stamps[name] = stamp
            digest = self._keys.digest(name, body)
            if self._digests.get(name) != digest:
                digests[name] = digest
                sealed = self._keys.seal(name, body)
                changed.append(SharedFile(name, digest, stamp[2] & 0o700, sealed))
        removed = [name for name in self._digests if name not in here]
        if (changed or removed or first) and not self._store.put_files(
            epoch, changed, removed, whole=first
        ):
            return False
        if first:
            self._join()
        # Only what is kept needs no second look.
        self._stamps |= stamps
        self._digests |= digests
        for name in removed:
            del self._digests[name]
            self._stamps.pop(name, None)
        return True

    def pull(self) -> bool:
        """Have what the leader has; say if anything was different. What a home had before it
        joined is moved aside.
        """
        with self._one_at_a_time:
            return self._pull()

    def _pull(self) -> bool:
        wanted, here = self._store.digests(), dict(self._files())
        joined = (self._home / _JOINED).exists()
        different = False
        for name, digest in wanted.items():
            path = here.pop(name, None)
            if path is not None and self._keys.digest(name, self._shared(name, path)) == digest:
                continue
            found = self._store.file(name)
            if found is None:
                continue
            different = True
            if path is not None and not joined:
                self._move_aside(name, path)
            self._put(name, found, self._keys.open(name, found.body))
        for name, path in here.items():
            if name == config.FILE:
                continue
            different = True
            if joined:
                path.unlink(missing_ok=True)
            else:
                self._move_aside(name, path)
        if not joined:
            self._join()
        return different

    def _join(self) -> None:
        write_private(self._home / _JOINED, b"")

    def _files(self) -> Iterator[tuple[str, Path]]:
        for name, path in home_copy.files_of(self._home, self._policies):
            if name != home_copy.VERSION:
                yield name, path

    def _place(self, name: str) -> Path:
        if name.startswith(_POLICIES):
            return self._policies / name.removeprefix(_POLICIES)
        return self._home / name

    def _shared(self, name: str, path: Path) -> bytes:
        body = path.read_bytes()
        return without_own(body) if name == config.FILE else body

    def _put(self, name: str, found: SharedFile, body: bytes) -> None:
        path = self._place(name)
        if ".." in path.parts:
            raise ConfigInvalid(f"the shared file {name} has no place in a home")
        if name == config.FILE:
            body = with_own(body, path.read_bytes() if path.exists() else b"")
        write_private(path, body)
        os.chmod(path, found.mode)

    def _move_aside(self, name: str, path: Path) -> None:
        target = self._home / REPLACED / name
        make_private(target.parent)
        if name == config.FILE:
            shutil.copyfile(path, target)
        else:
            os.replace(path, target)
        log.warning("%s is another one than the nodes have: it is kept as %s", path, target)


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_mode


def without_own(body: bytes) -> bytes:
    """Return a settings file without what is one node's own."""
    document = tomlkit.parse(body.decode())
    for key in _OWN_SETTINGS:
        _take(document, key)
    return tomlkit.dumps(document).encode()


def with_own(shared: bytes, own: bytes) -> bytes:
    """Return the settings file of the nodes with what is this one's own."""
    document, mine = tomlkit.parse(shared.decode()), tomlkit.parse(own.decode())
    for key in _OWN_SETTINGS:
        value = _take(mine, key)
        if value is None:
            continue
        table: Any = document
        for part in key[:-1]:
            if part not in table:
                table[part] = tomlkit.table()
            table = table[part]
        table[key[-1]] = value
    return tomlkit.dumps(document).encode()


def _take(document: Any, key: tuple[str, ...]) -> Any:
    """Remove a setting and return it, or None."""
    for part in key[:-1]:
        document = document.get(part)
        if document is None:
            return None
    return document.pop(key[-1], None)
