"""Acceptances of the operator: for each tool of a server the exact declaration, so that a change
can be shown as one.

The rule: what cannot be read, or was written by somebody else, was not accepted.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from palyra.core.argument_roles import ToolUse
from palyra.store.row_seals import RowSeals

log = logging.getLogger("palyra.mcp")


class AcceptedTool(Struct, frozen=True, omit_defaults=True):
    """A declaration as it was when somebody said yes to it, and what its arguments are for. `use`
    is None for what was accepted before that was asked.
    """

    fingerprint: str
    shown: dict[str, Any]
    use: ToolUse | None = None


class _SealedTool(AcceptedTool, frozen=True):
    """An acceptance as its file has it."""

    mac: str = ""


_SEALED_AS = "accepted tools"


class AcceptanceStore(Protocol):
    """Store of acceptances. Both methods may block."""

    def get(self, server: str, tool: str) -> AcceptedTool | None: ...

    def put(self, server: str, tool: str, accepted: AcceptedTool) -> None: ...


class KnownFiles:
    """One JSON file for each server in a folder. A file is replaced whole or not at all.

    `seals` makes acceptances that anybody else wrote count for nothing.
    """

    def __init__(self, folder: Path, seals: RowSeals | None = None) -> None:
        self._folder = folder
        self._seals = seals
        self._read: dict[str, dict[str, AcceptedTool]] = {}

    def get(self, server: str, tool: str) -> AcceptedTool | None:
        return self._of(server).get(tool)

    def names(self, server: str) -> frozenset[str]:
        """Return the tools of a server that were accepted."""
        return frozenset(self._of(server))

    def put(self, server: str, tool: str, accepted: AcceptedTool) -> None:
        entries = self._of(server) | {tool: accepted}
        self._write(server, entries)
        self._read[server] = entries

    def adopt(self) -> None:
        """Seal what was accepted before there was a key, as it is."""
        for path in sorted(self._folder.glob("*.json")):
            found = self._load(path)
            if found and not any(each.mac for each in found.values()):
                self._write(path.stem, {name: _plain(each) for name, each in found.items()})

    def _write(self, server: str, entries: Mapping[str, AcceptedTool]) -> None:
        stored = {
            name: _SealedTool(each.fingerprint, each.shown, each.use, self._mac(server, name, each))
            for name, each in entries.items()
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(server)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            descriptor = os.open(
                fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600
            )
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(stored, order="sorted")) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _of(self, server: str) -> dict[str, AcceptedTool]:
        if server not in self._read:
            self._read[server] = {
                name: _plain(each)
                for name, each in self._load(self._path(server)).items()
                if self._seals is None
                or self._seals.file_holds(
                    _SEALED_AS, f"{server}/{name}", _content(_plain(each)), each.mac
                )
            }
        return self._read[server]

    def _mac(self, server: str, name: str, accepted: AcceptedTool) -> str:
        if self._seals is None:
            return ""
        return self._seals.file_mac(_SEALED_AS, f"{server}/{name}", _content(accepted))

    def _path(self, server: str) -> Path:
        return self._folder / f"{server}.json"

    def _load(self, path: Path) -> dict[str, _SealedTool]:
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, _SealedTool])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            log.error(
                "%s cannot be read, so every tool in it must be accepted again: %s", path, error
            )
            return {}


def _plain(stored: _SealedTool) -> AcceptedTool:
    return AcceptedTool(stored.fingerprint, stored.shown, stored.use)


def _content(accepted: AcceptedTool) -> bytes:
    return msgspec.json.encode(accepted, order="sorted")
