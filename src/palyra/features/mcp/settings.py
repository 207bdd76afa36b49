"""Settings of one MCP server, from the operator. Plain values, so that reading them costs nothing.

Views of a server: its state, its tools and what needs approval. Plain values, so that naming them
costs nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from palyra.core.argument_roles import ToolUse
from palyra.core.errors import ConfigInvalid
from palyra.core.tools import Tier

State = Literal["disabled", "starting", "ready", "waiting", "failed", "stopped"]


class Pending(Struct, frozen=True):
    """A tool that is not offered yet. `words` says what is different from what was accepted,
    `change` shows it line by line. `use` is what will be accepted about its arguments.
    """

    server: str
    tool: str
    fingerprint: str
    new: bool
    change: str
    words: str = ""
    use: ToolUse | None = None


class ServerStatus(Struct, frozen=True):
    """`starts` counts how often it was connected. `log` is the end of what it wrote to its standard
    error.

    `where` is its program or its host, `package` what was accepted of the package it is started
    from. `fingerprint` stands for everything that is pending,
    together. `late` counts the calls in a row that it has not answered in time.
    """

    name: str
    state: State
    detail: str = ""
    transport: Literal["stdio", "http"] = "stdio"
    server: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()
    problems: tuple[str, ...] = ()
    starts: int = 0
    log: str = ""
    where: str = ""
    tier: str = ""
    package: str = ""
    fingerprint: str = ""
    late: int = 0
    # What was accepted about the arguments of the tools that are offered; not in it: nothing was.
    uses: dict[str, ToolUse] = {}


def together(pending: tuple[Pending, ...]) -> str:
    """One fingerprint for all that waits; empty if nothing does."""
    if not pending:
        return ""
    return sha256(
        msgspec.json.encode(sorted((each.tool, each.fingerprint) for each in pending))
    ).hexdigest()


_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
# Shorter values (a number, a name of a zone) are everywhere, and hiding them hides the message.
_SHORTEST_SECRET = 8
# The environment also holds paths and zones, which answers are about.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|(?:^|_)AUTH(?:_|$)", re.I)
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A program that speaks over its standard streams (`command`), or an address that speaks
    streamable HTTP (`url`).

    `env` and `headers` may hold secrets, so they are never printed. `trusted` says that the
    operator believes what the server says about the effects of its tools; it changes nothing else.

    The rest is for a program in the sandbox: `folder` is what it works in, else it has one of its
    own; `readable` are more folders that it may look into, `hosts` what it may reach, `tier` the
    walls it must have at least. `package` is what was accepted of the package that its command
    would fetch.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    enabled: bool = True
    timeout_ms: int = 60_000
    trusted: bool = False
    folder: str = ""
    writable: bool = True
    readable: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tier: Tier = "none"
    package: str = ""
    # What was looked up for `env` and `headers`, to be hidden wherever it turns up.
    confidential: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigInvalid(
                f"the MCP server name {self.name[:64]!r} must be 1 to 32 of a-z, 0-9, - and _"
            )
        if bool(self.command) == bool(self.url):
            raise ConfigInvalid(f"the MCP server {self.name} needs either a command or a url")
        if self.url and not self.authority:
            raise ConfigInvalid(
                f"the url of the MCP server {self.name} must begin with http:// or https:// and"
                " name a host"
            )
        if self.timeout_ms < 1:
            raise ConfigInvalid(f"the timeout_ms of the MCP server {self.name} must be 1 or more")

    @property
    def source(self) -> str:
        return f"mcp:{self.name}"

    @property
    def authority(self) -> str:
        """Host and port of the address; empty if it is none."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError:
            return ""
        if parts.scheme not in ("http", "https") or not host:
            return ""
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{port}" if port else host

    def without_secrets(self, text: str) -> str:
        """A text as it may be shown: a server can repeat what it was given in confidence."""
        kept = [value for name, value in self.env.items() if _SECRET_NAME.search(name)]
        for value in (*self.confidential, *self.headers.values(), *kept):
            # `Bearer x` is two things, and the first is no secret.
            for secret in (value, value.rpartition(" ")[2]):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "[hidden]")
        return text


@dataclass(frozen=True)
class McpServers:
    """The servers that the config names."""

    servers: Mapping[str, ServerConfig]
