"""What the operator has accepted: for each tool of a server the exact declaration, so that a change
can be shown as one.

The rule: what cannot be read was not accepted.
"""

import difflib
import logging
import os
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from palyra.features.mcp import jsonrpc
from palyra.features.mcp.declaration import Declared
from palyra.features.mcp.model import Pending

log = logging.getLogger("palyra.mcp")

_MOST_DIFF_LINES = 400
_MOST_CHANGES, _MOST_WORDS = 12, 120


class AcceptedTool(Struct, frozen=True):
    """A declaration as it was when somebody said yes to it."""

    fingerprint: str
    shown: dict[str, Any]


class AcceptanceStore(Protocol):
    """Where acceptances are kept. Both may block."""

    def get(self, server: str, tool: str) -> AcceptedTool | None: ...

    def put(self, server: str, tool: str, accepted: AcceptedTool) -> None: ...


class KnownFiles:
    """One JSON file for each server in a folder. A file is replaced whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, dict[str, AcceptedTool]] = {}

    def get(self, server: str, tool: str) -> AcceptedTool | None:
        return self._of(server).get(tool)

    def put(self, server: str, tool: str, accepted: AcceptedTool) -> None:
        entries = self._of(server) | {tool: accepted}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(server)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            descriptor = os.open(
                fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600
            )
            with open(descriptor, "wb") as file:
                file.write(
                    msgspec.json.format(msgspec.json.encode(entries, order="sorted")) + b"\n"
                )
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
        self._read[server] = entries

    def _of(self, server: str) -> dict[str, AcceptedTool]:
        if server not in self._read:
            self._read[server] = self._load(self._path(server))
        return self._read[server]

    def _path(self, server: str) -> Path:
        return self._folder / f"{server}.json"

    def _load(self, path: Path) -> dict[str, AcceptedTool]:
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, AcceptedTool])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            log.error(
                "%s cannot be read, so every tool in it must be accepted again: %s", path, error
            )
            return {}


def pending(server: str, declared: Declared, accepted: AcceptedTool | None) -> Pending:
    before = _lines(accepted.shown) if accepted else []
    lines = list(
        difflib.unified_diff(before, _lines(declared.shown()), "accepted", "now", lineterm="", n=2)
    )[2:]
    if len(lines) > _MOST_DIFF_LINES:
        lines = [*lines[:_MOST_DIFF_LINES], f"… and {len(lines) - _MOST_DIFF_LINES} more lines"]
    words = _in_words(accepted.shown, declared.shown()) if accepted else "a new tool"
    return Pending(
        server, declared.name, declared.fingerprint, accepted is None, "\n".join(lines), words
    )


def _in_words(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What has changed, named and not quoted."""
    said = (
        ["its description is another one"]
        if before.get("description") != now["description"]
        else []
    )
    old, new = _arguments(before.get("schema")), _arguments(now["schema"])
    said += [f"it takes a new argument {name}" for name in new if name not in old]
    said += [f"it no longer takes {name}" for name in old if name not in new]
    said += [
        f"its argument {name} is described otherwise"
        for name in new
        if name in old and old[name] != new[name]
    ]
    if before.get("schema") != now["schema"] and old == new:
        said.append("its arguments are described otherwise")
    for key, claim in (("read_only", "changes nothing"), ("idempotent", "may be repeated")):
        if before.get(key) != now[key]:
            said.append(f"it {'says now' if now[key] else 'no longer says'} that it {claim}")
    return (
        "; ".join(jsonrpc.clean(each, _MOST_WORDS) for each in said[:_MOST_CHANGES])
        or "its name is another one"
    )


def _arguments(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _lines(shown: dict[str, Any]) -> list[str]:
    """One fact on a line. Long texts are cut into sentences' length, so that a change in them does
    not hide.
    """
    lines = []
    for key, value in shown.items():
        if isinstance(value, str):
            pieces = [
                line[at : at + 120]
                for line in value.splitlines() or [""]
                for at in range(0, max(len(line), 1), 120)
            ]
            lines += [f"{key}: {piece}" for piece in pieces]
        else:
            text = msgspec.json.format(msgspec.json.encode(value, order="sorted")).decode()
            lines += [f"{key}: {line}" for line in text.splitlines()]
    return lines
