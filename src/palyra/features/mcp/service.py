"""The MCP servers of this daemon: which there are, what of theirs is offered, and the verbs of
whoever answers for them.

Two rules: no server, however slow or broken, delays or ends anything but its own calls; and a yes
to a tool is on the system tape before the tool is offered.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from palyra.core.argument_roles import ToolUse
from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.core.events import AdminChanged
from palyra.core.ids import OWNER, SYSTEM, SYSTEM_TAPE
from palyra.features.mcp.settings import ServerStatus
from palyra.features.vault.service import Vault
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.row_seals import RowSeals
from palyra.tools.catalogue import Catalogue
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from palyra.features.mcp.servers import Servers
    from palyra.features.mcp.settings import ServerConfig

# A server stays for days: what it may carry through its way out is not counted like a command's.
_CARRIES_BYTES, _CARRIES_S = 1 << 40, 86_400.0


class Opener:
    """Opener of configured servers: each runs in the sandbox, with its secrets looked up at each
    start.

    `look_up` gives the value behind `env:NAME` and `file:/path`; `closed` are the daemon's own
    folders.
    """

    def __init__(
        self,
        folder: Path,
        sandbox: Sandbox,
        resolver: Resolver,
        vault: Vault,
        look_up: Callable[[str], str],
        *,
        closed: tuple[str, ...],
        seals: RowSeals | None = None,
    ) -> None:
        self._folder = folder
        self._seals = seals
        self._sandbox = sandbox
        self._resolver = resolver
        self._vault = vault
        self._look_up = look_up
        self._closed = closed

    def adopt(self) -> None:
        """Seal what was accepted before there was a key. Blocks on files."""
        known = self._folder / "known"
        if self._seals is not None and self._seals.adopts and known.is_dir():
            from palyra.features.mcp.acceptances import KnownFiles

            KnownFiles(known, self._seals).adopt()

    def open(self, config: "ServerConfig", changed: Callable[[], None]) -> "Servers":
        # Whoever has no servers does not pay for what speaks to them.
        from palyra.features.mcp import process
        from palyra.features.mcp.acceptances import KnownFiles
        from palyra.features.mcp.servers import Servers
        from palyra.tools.net.egress import Allowance, Egress

        # The operator wrote this list: an address in it may be private.
        egress = Egress(
            self._resolver.allowing(config.hosts),
            allowance=Allowance(bytes=_CARRIES_BYTES, seconds=_CARRIES_S),
        )
        return Servers(
            [config],
            KnownFiles(self._folder / "known", self._seals),
            self._folder / "work",
            spawn=process.spawner_for(config, self._sandbox, egress.gate, closed=self._closed),
            resolve=self._resolved,
            changed=changed,
        )

    async def _resolved(self, config: "ServerConfig") -> "ServerConfig":
        """The settings with every reference replaced by what it stands for now."""
        from importlib.util import find_spec

        if find_spec("jsonschema_rs") is None:
            raise Unavailable(
                "the package jsonschema-rs is missing: install palyra with the extra mcp"
                " (palyra[mcp])"
            )
        found: dict[str, str] = {}
        for value in (*config.env.values(), *config.headers.values()):
            reference = _reference(value)
            if reference and reference not in found:
                found[reference] = await self._value(config, reference)

        def filled(given: Mapping[str, str]) -> dict[str, str]:
            return {name: _filled(value, found) for name, value in given.items()}

        return dataclasses.replace(
            config,
            env=filled(config.env),
            headers=filled(config.headers),
            confidential=tuple(found.values()),
        )

    async def _value(self, config: "ServerConfig", reference: str) -> str:
        if not reference.startswith("vault:"):
            return self._look_up(reference)
        value = ""
        # A secret that is for certain hosts must be for every host that the server can send it to.
        hosts = (config.authority,) if config.url else config.hosts
        for host in hosts or (None,):
            value = await self._vault.resolve(
                reference,
                principal=OWNER,
                session="",
                tool=config.source,
                host=host.partition(":")[0] if host else None,
            )
        return value


class Mcp:
    def __init__(self, db: Database, catalogue: Catalogue, opener: Opener) -> None:
        self._db = db
        self._catalogue = catalogue
        self._opener = opener
        self._configs: dict[str, ServerConfig] = {}
        self._servers: dict[str, Servers] = {}
        self._changing = asyncio.Lock()
        self._read = False

    async def apply(self, wanted: "Mapping[str, ServerConfig]") -> None:
        """Use exactly these servers from now on. Those that are as before are left alone; nobody
        waits for one to connect.
        """
        async with self._changing:
            await self._tell_of_packages(wanted)
            gone = [name for name, config in self._configs.items() if wanted.get(name) != config]
            await asyncio.gather(*(self._servers.pop(name).close() for name in gone))
            for name in gone:
                del self._configs[name]
                self._catalogue.renew(f"mcp:{name}", ())
            for name, config in wanted.items():
                if name not in self._configs:
                    self._configs[name] = config
                    self._servers[name] = self._opened(name, config)
                    await self._servers[name].start()

    async def _tell_of_packages(self, wanted: "Mapping[str, ServerConfig]") -> None:
        """Record packages that somebody accepted since the settings were read last."""
        first, self._read = not self._read, True
        for name, config in wanted.items():
            before = self._configs.get(name)
            was = before.package if before else ""
            if config.package != was and not first:
                await self._record(SYSTEM, "package", name, package=config.package, was=was)

    def _opened(self, name: str, config: "ServerConfig") -> "Servers":
        def changed() -> None:
            if self._servers.get(name) is servers:
                self._catalogue.renew(config.source, servers.tools())

        servers = self._opener.open(config, changed)
        return servers

    def status(self) -> tuple[ServerStatus, ...]:
        return tuple(
            status for name in sorted(self._servers) for status in self._servers[name].status()
        )

    def one(self, name: str) -> ServerStatus:
        return self._server(name).status()[0]

    async def accept(
        self,
        by: str,
        name: str,
        fingerprint: str,
        uses: Mapping[str, ToolUse] = MappingProxyType({}),
    ) -> ServerStatus:
        """A person's yes to what was shown: one pending tool, or everything that is pending, by
        fingerprint. `uses`: what they say of arguments instead of what is proposed.
        """
        server = self._server(name)
        shown = self.one(name)
        chosen = [
            each for each in shown.pending if fingerprint in (each.fingerprint, shown.fingerprint)
        ]
        if not chosen:
            why = (
                "nothing needs to be accepted"
                if not shown.pending
                else "it has changed since it was shown; look at it again"
            )
            raise Conflict(f"the MCP server {name}: {why} (palyra mcp show {name})")
        await self._record(
            by, "accepted", name, tools={each.tool: each.fingerprint for each in chosen}
        )
        for each in chosen:
            await server.accept(name, each.tool, each.fingerprint, uses.get(each.tool))
        return self.one(name)

    async def set_use(self, by: str, name: str, tool: str, use: ToolUse) -> ServerStatus:
        """Set what the arguments of an accepted tool are for, from now on."""
        server = self._server(name)
        offered = {each.declared.name: each for each in server.tools()}
        if tool not in offered:
            raise NotFound(
                f"the MCP server {name} offers no tool {tool[:64]!r}: accept it first (palyra mcp"
                f" show {name})"
            )
        declared = offered[tool].declared
        known = declared.schema.get("properties")
        unknown = [each.name for each in use.arguments if each.name not in (known or {})]
        if unknown:
            raise InvalidInput(
                f"{tool} has no argument {unknown[0][:64]!r}; it takes {', '.join(known or {})}"
            )
        await self._record(by, "arguments", name, tool=tool, use=msgspec.to_builtins(use))
        await server.accept(name, tool, declared.fingerprint, use)
        return self.one(name)

    async def restart(self, by: str, name: str) -> ServerStatus:
        """End the server and begin anew, with its secrets looked up again."""
        server = self._server(name)
        if not self._configs[name].enabled:
            raise Conflict(
                f"the MCP server {name} is not enabled: palyra config set mcp.{name}.enabled true"
            )
        await self._record(by, "restarted", name)
        async with self._changing:
            if self._servers.get(name) is server:
                await server.restart(name)
        return self.one(name)

    async def close(self) -> None:
        async with self._changing:
            await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _server(self, name: str) -> "Servers":
        server = self._servers.get(name)
        if server is None:
            near = get_close_matches(name, self._servers, n=1)
            hint = f"did you mean {near[0]}?" if near else "`palyra mcp list` names them"
            raise NotFound(f"there is no MCP server {name[:64]!r}: {hint}")
        return server

    async def _record(self, by: str, action: str, name: str, **details: object) -> None:
        event = AdminChanged(what="mcp", action=action, subject=name, details=details)
        await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))


def _reference(value: str) -> str:
    """The reference in a value: all of it, or its last word, as in `Bearer vault:NAME`."""
    last = value.rpartition(" ")[2]
    return last if last.startswith(("vault:", "env:", "file:/")) else ""


def _filled(value: str, found: Mapping[str, str]) -> str:
    reference = _reference(value)
    return value.removesuffix(reference) + found[reference] if reference else value
