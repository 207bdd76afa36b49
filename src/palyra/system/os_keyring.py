"""A secret in the keyring of the operating system, by the package `keyring` where it is installed.

The file in which the secret would lie holds a line that names the entry instead.
"""

import importlib
import secrets
from pathlib import Path
from typing import Any

from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.system.private_files import write_private

_SERVICE = "palyra"
_PREFIX = "keyring:"


def in_keyring(path: Path) -> bool:
    """Say if a file names an entry of the keyring."""
    try:
        return path.read_text().startswith(_PREFIX)
    except (OSError, UnicodeDecodeError):
        return False


def read_secret(path: Path) -> str:
    """Return what a file holds, or the entry of the keyring that it names."""
    text = path.read_text()
    if not text.startswith(_PREFIX):
        return text
    found = _ask("read", "get_password", text.removeprefix(_PREFIX).strip())
    if not found:
        raise Unavailable(
            f"{path} says that its key is in the keyring of the operating system, and it is not"
            " there: log in as the user who put it there, or restore the key from a backup"
        )
    return str(found)


def find_secret(name: str) -> str:
    """Return an entry that a person has put into the keyring, for `keyring:NAME` in settings."""
    found = _ask("read", "get_password", name)
    if not found:
        raise ConfigInvalid(
            f"the keyring of the operating system has no entry {name} of {_SERVICE}; a setting"
            f" refers to it: `keyring set {_SERVICE} {name}` makes one"
        )
    return str(found)


def write_secret(path: Path, secret: str, *, keyring: bool) -> None:
    """Keep a secret in the keyring, or in the file itself. The file changes last: a crash leaves
    the old secret or the new one. What it named before is removed from the keyring.
    """
    before = path.read_text().removeprefix(_PREFIX).strip() if in_keyring(path) else ""
    if keyring:
        name = f"{path.stem}-{secrets.token_hex(8)}"
        _ask("written to", "set_password", name, secret)
        if _ask("read", "get_password", name) != secret:
            raise Unavailable("the keyring of the operating system does not keep what it is given")
        write_private(path, f"{_PREFIX}{name}\n".encode())
    else:
        write_private(path, secret.encode())
    if before:
        _ask("written to", "delete_password", before)


def _ask(what: str, verb: str, *arguments: str) -> Any:
    try:
        module = importlib.import_module("keyring")
    except ImportError:
        raise ConfigInvalid(
            "the keyring of the operating system needs the Python package keyring: install it, or"
            " set journal.key_store to file"
        ) from None
    try:
        return getattr(module, verb)(_SERVICE, *arguments)
    except Exception as error:
        raise Unavailable(
            f"the keyring of the operating system cannot be {what} ({type(error).__name__}:"
            f" {error}): unlock it, or set journal.key_store to file"
        ) from error
