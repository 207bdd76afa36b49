"""The only way out of a sandbox: a proxy on a Unix socket that reaches the listed hosts and nothing
else.

Names are looked up here, not inside, and every address is judged; a private one is reached only if
it was listed as an address. A gate lives as long as the command it was opened for.

The hosts a sandboxed process may reach, as somebody listed them. Exactly those: a name never
covers more than it says.

`example.org` is that host on the ports of the web, `example.org:8443` on that port, `*.example.org`
every host below it but not itself. An address is listed as it is written in a URL, `192.0.2.1:8080`
or `[2001:db8::1]`.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, PalyraError
from palyra.tools.net import addresses, hosts, resolve, tunnel, urls
from palyra.tools.net.resolve import OpenConnection, Resolver
from palyra.tools.net.tunnel import ByteMeter, SandboxClient

if TYPE_CHECKING:
    import h11

_WEB = frozenset(urls.PORTS.values())


class AllowedHost(Struct, frozen=True):
    """`below`: every host below `host`, instead of itself."""

    host: str
    ports: frozenset[int]
    below: bool = False

    def covers(self, host: str, port: int) -> bool:
        return port in self.ports and (
            host.endswith("." + self.host) if self.below else host == self.host
        )


class AllowedHosts:
    """A list of hosts that has been read. Raises InvalidInput or Refused for an entry that does not
    say exactly one thing.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self.entries = tuple(_entry(text) for text in sorted(entries))

    def covers(self, host: str, port: int) -> bool:
        return any(entry.covers(host, port) for entry in self.entries)


def _entry(text: str) -> AllowedHost:
    spelt, port = urls.split_port(text.strip(), 0)
    below = spelt.startswith("*.")
    host = hosts.parse(spelt.removeprefix("*."))
    if below and (addresses.parse(host) is not None or "." not in host):
        raise InvalidInput(
            f"{hosts.shown(text)} covers too much: a star stands before a domain of at least two"
            " parts"
        )
    return AllowedHost(host, frozenset({port}) if port else _WEB, below)


Verdict = Literal["allowed", "refused", "failed", "limited"]

_HEAD_S = 15.0


class Allowance(Struct, frozen=True):
    """Limits of one gate: bytes in both directions together, seconds per connection, connections at
    a time.
    """

    bytes: int = 256 << 20
    seconds: float = 600.0
    at_once: int = 64


class Passage(Struct, frozen=True, kw_only=True):
    """One connection through a gate, after it has ended. `host` is what was asked for, if it could
    be read.
    """

    host: str
    port: int
    verdict: Verdict
    reason: str = ""
    sent: int = 0
    received: int = 0
    duration_ms: int = 0


Log = Callable[[Passage], None]


class _Asked(Struct):
    """Target that a client wants, as far as it is known, and whether it was let through."""

    host: str = ""
    port: int = 0
    passed: bool = False


class EgressCounts(Struct):
    allowed: int = 0
    refused: int = 0
    failed: int = 0
    limited: int = 0


class Egress:
    """Opens gates. `folder` is where sockets are made."""

    def __init__(
        self,
        resolver: Resolver,
        *,
        folder: str | None = None,
        allowance: Allowance = Allowance(),  # noqa: B008 - frozen
        log: Log = lambda passage: None,
    ) -> None:
        self._resolver = resolver
        self._folder = folder
        self._allowance = allowance
        self._log = log

    def check(self, allowed: Iterable[str]) -> None:
        """Raise Refused for a list that names a host which is never reached, InvalidInput for one
        that cannot be read.
        """
        for entry in AllowedHosts(allowed).entries:
            for port in entry.ports:
                self._resolver.check(entry.host, port)

    @asynccontextmanager
    async def gate(self, allowed: frozenset[str]) -> AsyncIterator["Gate"]:
        """A gate to these hosts, closed with everything that runs through it when the block is
        left.

        Raises InvalidInput or Refused if the list cannot be read.
        """
        listed = AllowedHosts(allowed)
        folder = tempfile.mkdtemp(prefix="palyra-gate-", dir=self._folder)
        try:
            gate = Gate(
                os.path.join(folder, "proxy"), listed, self._resolver, self._allowance, self._log
            )
            await gate.open()
            try:
                yield gate
            finally:
                await gate.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Gate:
    def __init__(
        self,
        socket_path: str,
        listed: AllowedHosts,
        resolver: Resolver,
        allowance: Allowance,
        log: Log,
    ) -> None:
        self.socket_path = socket_path
        self.counts = EgressCounts()
        self._listed = listed
        self._resolver = resolver
        self._allowance = allowance
        self._log = log
        self._meter = ByteMeter(allowance.bytes)
        self._working: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._closed = False

    @property
    def carried(self) -> int:
        """Bytes in both directions, so far."""
        return self._meter.total

    def allow(self, hosts: frozenset[str]) -> None:
        """From now on it leads to these hosts, and to no others. What runs through it already goes
        on.
        """
        self._listed = AllowedHosts(hosts)

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.socket_path)
        os.chmod(self.socket_path, 0o600)

    async def close(self) -> None:
        """Ends every connection. Whoever is cancelled here leaves nothing running either."""
        assert self._server is not None
        self._closed = True
        self._server.close()
        working = tuple(self._working)
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            # It was on its way in when the gate was closed.
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        # One that is cancelled before its first step does not do it itself.
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began = monotonic()
        client = SandboxClient(reader, writer, self._meter.branch())
        asked = _Asked()
        verdict: Verdict = "failed"
        reason = "the client left"
        try:
            async with asyncio.timeout(self._allowance.seconds):
                verdict, reason = await self._answer(client, asked)
        except TimeoutError:
            verdict, reason = "limited", "it took too long"
        except OSError:
            reason = "the connection broke off"
        except asyncio.CancelledError:
            verdict, reason = "allowed" if asked.passed else "failed", "the gate was closed"
            raise
        finally:
            writer.transport.abort()
            setattr(self.counts, verdict, getattr(self.counts, verdict) + 1)
            self._log(
                Passage(
                    host=asked.host,
                    port=asked.port,
                    verdict=verdict,
                    reason=reason,
                    sent=client.meter.sent,
                    received=client.meter.received,
                    duration_ms=int((monotonic() - began) * 1000),
                )
            )

    async def _answer(self, client: SandboxClient, asked: _Asked) -> tuple[Verdict, str]:
        """Serves one connection and says how it ended."""
        try:
            if len(self._working) > self._allowance.at_once:
                raise LimitExceeded(f"more than {self._allowance.at_once} connections at a time")
            async with asyncio.timeout(_HEAD_S):
                request = await client.request()
            if request is None:
                return "failed", "the client left"
            await self._pass(client, request, asked)
        except Forbidden as error:
            await client.refuse(403, error.message)
            return "refused", error.message
        except InvalidInput as error:
            await client.refuse(400, error.message)
            return "refused", error.message
        except LimitExceeded as error:
            await client.refuse(503, error.message)
            return "limited", error.message
        except PalyraError as error:
            await client.refuse(502, error.message)
            return "failed", error.message
        return "allowed", ""

    async def _pass(self, client: SandboxClient, request: "h11.Request", asked: _Asked) -> None:
        target = request.target.decode("ascii", "replace")
        if request.method == b"CONNECT":
            spelt, port = urls.split_port(target, 0)
            host = hosts.parse(spelt)
            line = await self._line(asked, host, port)
            await tunnel.tunnel(client, line)
            return
        if target.startswith("/") or target == "*":
            raise InvalidInput(
                "this is a proxy: ask for CONNECT host:port or for a whole http:// URL"
            )
        url = urls.parse(target)
        if url.scheme != "http":
            raise InvalidInput("ask for https through CONNECT")
        line = await self._line(asked, url.host, url.port)
        await tunnel.forward(client, request, url, line)

    async def _line(self, asked: _Asked, host: str, port: int) -> OpenConnection:
        asked.host, asked.port = host, port
        line = await resolve.dial(host, port, await self._addresses(host, port))
        asked.passed = True
        return line

    async def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return where to connect to. Raises Forbidden for what is not listed or must not be
        reached.
        """
        if not self._listed.covers(host, port):
            raise Forbidden(
                f"{hosts.written(host)}:{port} is not among the hosts that were allowed for this"
                " command"
            )
        return await self._resolver.resolve(host, port)
