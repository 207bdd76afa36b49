"""Compiled modules, kept on disk by the digest of what they were made from.

The rule: compiled code is run as it is, so only a file that this daemon wrote, in a folder that
only it can write, and that still has the digest it was written with, is loaded; anything else is
compiled again.
"""

import os
import secrets
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from palyra.core.errors import LimitExceeded
from palyra.features.skills import compile

if TYPE_CHECKING:
    import wasmtime

MOST_MODULE = 4 << 20


class Modules:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, engine: "wasmtime.Engine", source: bytes) -> "wasmtime.Module":
        """The module of a .wasm or a .wat file."""
        import wasmtime

        if len(source) > MOST_MODULE:
            raise LimitExceeded(f"a module is larger than {MOST_MODULE >> 20} MiB")
        file = self._folder / f"{sha256(source).hexdigest()}.cwasm"
        compiled = self._kept(file)
        if compiled:
            try:
                return wasmtime.Module.deserialize(engine, compiled)
            except wasmtime.WasmtimeError:
                # Another version of wasmtime or another processor wrote it.
                pass
        fresh = compile.compiled(source)
        self._keep(file, fresh)
        return wasmtime.Module.deserialize(engine, fresh)

    def _kept(self, file: Path) -> bytes:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as opened:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return b""
            data = opened.read()
        return data[32:] if sha256(data[32:]).digest() == data[:32] else b""

    def _keep(self, file: Path, compiled: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._folder / f".{secrets.token_hex(8)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(sha256(compiled).digest() + compiled)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
