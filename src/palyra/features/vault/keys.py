"""The vault's keys: where the master key lies, and sealing with it. Which of two key files is
right, the journal decides.

The master key and the journal cannot change in one transaction. So a new key is first written
beside the old one, then the journal commits what is sealed with it, then it takes the old one's
place. Whenever that stops, exactly one key opens the vault.
"""

import logging
import os
from pathlib import Path
from typing import Protocol

from palyra.core.errors import PalyraError, Unavailable

KEY_BYTES = 32
_FORMAT = b"\x01"
_NONCE_BYTES = 12

log = logging.getLogger("palyra.vault")


class Unopened(Exception):
    """A seal that this key does not open: another key, another name, or damage."""


class KeySource(Protocol):
    """Store of the master key. Whatever fails is a PalyraError that says what to do."""

    def candidates(self) -> list[bytes]:
        """The keys that are there, the settled one first; a second one is there only after a
        rotation that was cut short.
        """
        ...

    def stage(self) -> bytes:
        """A new key, durable, beside the settled one."""
        ...

    def settle(self, key: bytes) -> None:
        """Make this candidate the only one."""
        ...

    def describe(self) -> str: ...


class KeyFile:
    """32 random bytes in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = path.with_name(path.name + ".next")

    def describe(self) -> str:
        return f"the key file {self._path}"

    def candidates(self) -> list[bytes]:
        return [key for key in (self._read(self._path), self._read(self._next)) if key is not None]

    def stage(self) -> bytes:
        key = os.urandom(KEY_BYTES)
        try:
            self._next.unlink(missing_ok=True)
            descriptor = os.open(
                self._next,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
            try:
                os.write(descriptor, key)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._sync_folder()
        except OSError as error:
            raise self._failed("written", error) from error
        return key

    def settle(self, key: bytes) -> None:
        try:
            if self._read(self._path) == key:
                self._next.unlink(missing_ok=True)
            elif self._read(self._next) == key:
                os.replace(self._next, self._path)
            else:
                raise Unavailable(
                    f"{self.describe()} was changed while the daemon ran: put the right one back"
                )
            self._sync_folder()
        except OSError as error:
            raise self._failed("replaced", error) from error

    def _read(self, path: Path) -> bytes | None:
        """The key in a file, or None if there is none or it is not whole."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", error) from error
        try:
            self._keep_private(path, descriptor)
            key = os.read(descriptor, KEY_BYTES + 1)
        except OSError as error:
            raise self._failed("read", error) from error
        finally:
            os.close(descriptor)
        return key if len(key) == KEY_BYTES else None

    def _keep_private(self, path: Path, descriptor: int) -> None:
        if os.fstat(descriptor).st_mode & 0o077:
            log.warning(
                "%s could be read by others and is private again; `palyra vault rotate-key` makes a"
                " new one",
                path,
            )
            os.fchmod(descriptor, 0o600)

    def _sync_folder(self) -> None:
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _failed(self, what: str, error: OSError) -> PalyraError:
        why = (error.strerror or str(error)).lower()
        return Unavailable(
            f"{self.describe()} cannot be {what} ({why}): check the folder and its permissions"
        )


class Sealing:
    """AES-256-GCM with one key. What is bound in must be the same when it is opened."""

    def __init__(self, key: bytes) -> None:
        # Loaded by daemons that have secrets, and by no other: it costs memory and start-up time.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, content: bytes, bound: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _FORMAT + nonce + self._cipher.encrypt(nonce, content, _FORMAT + bound)

    def open(self, sealed: bytes, bound: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        head = len(_FORMAT) + _NONCE_BYTES
        if not sealed.startswith(_FORMAT) or len(sealed) < head:
            raise Unopened
        try:
            return self._cipher.decrypt(sealed[len(_FORMAT) : head], sealed[head:], _FORMAT + bound)
        except InvalidTag:
            raise Unopened from None
