"""The tables `[mcp.NAME]`: what makes one wrong, what is worth a word, and how it becomes what the
MCP client is told.

A secret never stands in the file: where one is wanted, a reference says where it is.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from palyra.serve.config.schema import Config
from palyra.serve.config.sections import McpServer

if TYPE_CHECKING:
    from palyra.features.mcp.settings import ServerConfig

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: *\S")
_SECRET_NAME = re.compile(
    r"KEY$|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTHORIZATION|(?:^|[_-])AUTH(?:[_-]|$)",
    re.I,
)
_REFERENCE = re.compile(
    r"(?:vault:[A-Za-z0-9][A-Za-z0-9_./:-]*|env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)"
)
_HOW = 'name where it is: "vault:NAME", "env:NAME" or "file:/path"'
_PACKAGE = re.compile(r"(?:npm|python):\S+@\S+ sha256:[0-9a-f]{64}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_PROGRAMS = ("args", "env", "folder", "writable", "readable", "hosts", "package")


def good_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def is_reference(value: str) -> bool:
    return _REFERENCE.fullmatch(value) is not None


def objection(key: str, value: Any) -> str:
    """Return what is wrong with one value of the right type, never repeating the value."""
    match key:
        case "env" if not all(_VARIABLE.match(each) for each in value):
            return 'each must be written as "NAME=value"'
        case "env" if _plain_secrets(value, "="):
            return f"holds what looks like a secret; it does not belong in this file: {_HOW}"
        case "headers" if not all(_HEADER.match(each) for each in value):
            return 'each must be written as "Name: value"'
        case "headers" if _plain_secrets(value, ":"):
            return (
                f"holds what looks like a secret; it does not belong in this file: {_HOW}, as in"
                ' "Authorization: Bearer vault:NAME"'
            )
        case "url" if value:
            parts = urlsplit(value)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                return "must be an http or https address"
            return "must not hold credentials; use headers" if "@" in parts.netloc else ""
        case "folder" if value and not os.path.isabs(value):
            return "must be an absolute path"
        case "readable" if not all(map(os.path.isabs, value)):
            return "each must be an absolute path"
        case "package" if value and not _PACKAGE.fullmatch(value):
            return 'must be written as "npm:NAME@VERSION sha256:DIGEST"; `palyra mcp update` does'
    return ""


def _plain_secrets(pairs: tuple[str, ...], mark: str) -> bool:
    """Return whether a value whose name speaks of a secret is given as it is."""
    split = [each.partition(mark)[::2] for each in pairs]
    return any(
        _SECRET_NAME.search(name) and not is_reference(value.split()[-1] if value.split() else "")
        for name, value in split
    )


def contradictions(config: Config) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name, server in config.mcp.items():
        if bool(server.command) == bool(server.url):
            said = (
                "has both a command and a url; keep one"
                if server.url
                else "needs a command, or a url"
            )
            yield ("mcp", name), said, ""
        for key in (
            _OF_PROGRAMS
            if server.url and not server.command
            else ("headers",)
            if server.command
            else ()
        ):
            if getattr(server, key) != getattr(McpServer(), key):
                yield (
                    ("mcp", name, key),
                    f"means nothing for a server with a {'url' if server.url else 'command'}",
                    "",
                )


def notes(config: Config, env: Mapping[str, str]) -> Iterator[str]:
    for name, server in config.mcp.items():
        for key in ("env", "headers"):
            for reference in references(server, key):
                scheme, _, target = reference.partition(":")
                if scheme == "env" and not env.get(target):
                    yield (
                        f"mcp.{name}.{key} refers to the environment variable {target}, which is"
                        " not set"
                    )
                if scheme == "file" and not os.access(target, os.R_OK):
                    yield f"mcp.{name}.{key} refers to the file {target}, which cannot be read"
        parts = urlsplit(server.url)
        if (
            parts.scheme == "http"
            and parts.hostname not in _LOOPBACK
            and any(references(server, "headers"))
        ):
            yield f"mcp.{name} sends its secrets over plain http; use https in url"


def references(server: McpServer, key: str) -> Iterator[str]:
    for each in getattr(server, key):
        value = each.partition("=" if key == "env" else ":")[2].strip()
        if value and is_reference(value.split()[-1]):
            yield value.split()[-1]


def servers(config: Config) -> "dict[str, ServerConfig]":
    """Return the servers for the client. Values are references still: they are looked up when a
    server is started.
    """
    if not config.mcp:
        return {}
    from palyra.features.mcp.settings import ServerConfig

    return {
        name: ServerConfig(
            name=name,
            command=given.command,
            args=given.args,
            env={key: value for key, _, value in (each.partition("=") for each in given.env)},
            url=given.url,
            headers={
                key: value.strip()
                for key, _, value in (each.partition(":") for each in given.headers)
            },
            enabled=given.enabled,
            timeout_ms=given.timeout_ms,
            trusted=given.trusted,
            folder=given.folder,
            writable=given.writable,
            readable=given.readable,
            hosts=given.hosts,
            tier=given.tier,
            package=given.package,
        )
        for name, given in config.mcp.items()
    }
