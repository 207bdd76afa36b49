"""Settings of MCP servers as other programs keep them: `claude_desktop_config.json`, `.mcp.json`,
VS Code's and Cursor's `mcp.json`.

The rule: what is not understood is named, never dropped in silence. Reading runs nothing, asks
nobody and looks nothing up.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.core.errors import InvalidInput

_LARGEST = 1 << 20
_TABLES = ("mcpServers", "servers")
_UNUSED = {"type", "transport", "disabled", "command", "args", "env", "url", "headers", "cwd"}
_NAME = re.compile(r"[^a-z0-9_-]+")
# A string, or what JSON does not know: a comment, or a comma before a bracket.
_JSONC = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.S)
_VARIABLE = re.compile(r"\$\{(?:(env|input):)?([A-Za-z_/][\w./-]*)(?::-([^}]*))?\}")
_CONTAINERS = ("docker", "podman", "nerdctl")


class FileInput(Struct, frozen=True):
    """A value that the file asks its reader for."""

    name: str
    description: str
    secret: bool
    default: str = ""


class ForeignServer(Struct, frozen=True, kw_only=True):
    """A server of one file, with its variables as they stand there. `unknown` are fields that mean
    nothing here; `problem` says why it cannot be taken.
    """

    name: str
    file: str
    given_name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    folder: str = ""
    enabled: bool = True
    unknown: tuple[str, ...] = ()
    problem: str = ""

    def texts(self) -> Iterator[str]:
        yield from (
            *self.command,
            *self.env.values(),
            *self.headers.values(),
            self.url,
            self.folder,
        )

    def inputs(self) -> list[str]:
        """Return the names of the inputs that its variables want."""
        found = [
            match[2]
            for text in self.texts()
            for match in _VARIABLE.finditer(text)
            if match[1] == "input"
        ]
        return list(dict.fromkeys(found))


class ServerFile(Struct, frozen=True):
    path: str
    servers: tuple[ForeignServer, ...]
    inputs: tuple[FileInput, ...]
    unknown: tuple[str, ...]


def usual_places(folder: Path, home: Path) -> list[Path]:
    """Return where other programs keep their servers, of a project and of a person."""
    support = home / "Library" / "Application Support"
    return [
        folder / ".mcp.json",
        folder / ".vscode" / "mcp.json",
        folder / ".cursor" / "mcp.json",
        home / ".cursor" / "mcp.json",
        home / ".claude.json",
        home / ".config" / "Claude" / "claude_desktop_config.json",
        support / "Claude" / "claude_desktop_config.json",
        home / ".config" / "Code" / "User" / "mcp.json",
        support / "Code" / "User" / "mcp.json",
        home / ".codeium" / "windsurf" / "mcp_config.json",
    ]


def read(path: Path) -> ServerFile:
    """Read one file. Raise InvalidInput if it is none of these."""
    try:
        with path.open("rb") as file:
            body = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {(error.strerror or '').lower()}") from error
    if len(body) > _LARGEST:
        raise InvalidInput(f"{path} is larger than {_LARGEST >> 20} MiB")
    try:
        text = body.decode("utf-8-sig")
        whole = json.loads(_JSONC.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}") from error
    if isinstance(whole, dict) and isinstance(whole.get("mcp"), dict):
        whole = whole["mcp"]  # The settings of VS Code.
    table = next((key for key in _TABLES if isinstance(whole, dict) and key in whole), "")
    if not table or not isinstance(whole[table], dict):
        raise InvalidInput(f"{path} names no MCP servers: it has neither {' nor '.join(_TABLES)}")
    servers = tuple(_server(str(name), given, path) for name, given in whole[table].items())
    unknown = tuple(str(key) for key in whole if key not in (table, "inputs"))
    return ServerFile(str(path), servers, tuple(_inputs(whole.get("inputs"))), unknown)


def _inputs(given: Any) -> Iterator[FileInput]:
    for each in given if isinstance(given, list) else []:
        if isinstance(each, dict) and isinstance(each.get("id"), str):
            yield FileInput(
                each["id"],
                str(each.get("description", "")),
                bool(each.get("password", False)),
                str(each.get("default", "")),
            )


def _server(given_name: str, given: Any, path: Path) -> ForeignServer:
    name = _NAME.sub("-", given_name.lower()).strip("-_")[:32].strip("-_")
    server = ForeignServer(name=name, given_name=given_name, file=str(path))
    if not name:
        return _with(server, problem="its name has no letter or digit")
    if not isinstance(given, dict):
        return _with(server, problem="it is no table")
    command, args = given.get("command", ""), given.get("args", [])
    url = given.get("url", given.get("serverUrl", given.get("httpUrl", "")))
    tables = [given.get("env") or {}, given.get("headers") or {}]
    if (
        not isinstance(command, str)
        or not isinstance(url, str)
        or not isinstance(args, list)
        or not all(isinstance(each, str) for each in args)
        or not all(isinstance(each, dict) for each in tables)
    ):
        return _with(server, problem="its fields are not of the kinds that they should be")
    words = [command, *args] if command else []
    # How Windows starts a script.
    if [each.lower() for each in words[:2]] == ["cmd", "/c"]:
        words = words[2:]
    known = _UNUSED | {"serverUrl", "httpUrl"}
    kind = str(given.get("type", given.get("transport", "")))
    return _with(
        server,
        command=tuple(words),
        env={str(key): str(value) for key, value in tables[0].items()},
        url=url,
        headers={str(key): str(value) for key, value in tables[1].items()},
        folder=str(given.get("cwd") or ""),
        enabled=not given.get("disabled", False),
        unknown=tuple(sorted(str(key) for key in given if key not in known)),
        problem=_problem(words, url, kind),
    )


def _problem(words: list[str], url: str, kind: str) -> str:
    if bool(words) == bool(url):
        return "it has both a command and an address" if url else "it has no command and no address"
    if kind == "sse":
        return "it speaks the old transport SSE; give its address for streamable HTTP"
    if words and os.path.basename(words[0]) in _CONTAINERS:
        return "containers are not started in the sandbox; name the program itself"
    return ""


def _with(server: ForeignServer, **more: Any) -> ForeignServer:
    return ForeignServer(**({key: getattr(server, key) for key in server.__struct_fields__} | more))


class Filling(Struct, frozen=True):
    """Values of variables. `env` is what the environment has now."""

    inputs: Mapping[str, str]
    env: Mapping[str, str]
    folder: str
    home: str

    def fill(self, text: str) -> str:
        """Return a text with its variables replaced. Raise InvalidInput for one with no value."""
        found = _VARIABLE.sub(self._value, text)
        if unknown := re.search(r"\$\{[^}]*\}?", found):
            raise InvalidInput(f"it has a variable that is not known here: {unknown[0][:60]}")
        return found

    def reference(self, text: str) -> str:
        """Return a value that is one variable of the environment, or ends with one, as the
        reference that looks it up at each start; empty for others.
        """
        before, _, last = text.rpartition(" ")
        found = _VARIABLE.fullmatch(last)
        if found is None or found[1] == "input" or "${" in before or found[3] is not None:
            return ""
        if found[1] is None and found[2] in self._places():
            return ""
        return f"{before} env:{found[2]}".strip()

    def _places(self) -> dict[str, str]:
        return {
            "workspaceFolder": self.folder,
            "workspaceFolderBasename": os.path.basename(self.folder),
            "userHome": self.home,
            "pathSeparator": "/",
            "/": "/",
        }

    def _value(self, match: "re.Match[str]") -> str:
        kind, name, default = match.groups()
        if kind == "input":
            values: Mapping[str, str] = self.inputs
        else:
            values = self.env if kind == "env" else {**self.env, **self._places()}
        if values.get(name):
            return values[name]
        if default is not None:
            return str(default)
        raise InvalidInput(
            f"it needs the input {name}: --input {name}=VALUE"
            if kind == "input"
            else f"the variable {name} is not set here"
        )
