"""A server's program inside the sandbox: a folder to work in, the machine's programs to read, no
network but the given.

The rule of the sandbox holds: where the machine gives less than the tier that is asked for, the
server does not start.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Protocol

from palyra.core.errors import Forbidden
from palyra.core.tools import Tier
from palyra.features.mcp.process import FAREWELL_S, ServerProcess, Spawn
from palyra.features.mcp.settings import ServerConfig
from palyra.tools.sandbox.command import Caps, Command, NetworkAccess
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.sandbox import Sandbox

# A server lives for as long as the daemon does, so only what it may hold at one time is limited.
CAPS = Caps(time_s=None, cpu_s=7 * 86_400, output_bytes=1 << 62)


class ServerGate(Protocol):
    socket_path: str


# Opens a way to these hosts and to no others, for as long as the block lasts; see
# `palyra.tools.net.egress`.
WayOut = Callable[[frozenset[str]], AbstractAsyncContextManager[ServerGate]]


def spawner(sandbox: Sandbox, *, tier: Tier = "C", caps: Caps = CAPS) -> Spawn:
    """How `Servers` starts programs inside `sandbox`, with nothing but their own folders."""

    async def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> ServerProcess:
        return _Contained(
            await sandbox.start(_command(argv, env, cwd, tier, caps)), AsyncExitStack()
        )

    return spawn


def spawner_for(
    config: ServerConfig, sandbox: Sandbox, way_out: WayOut, *, closed: Sequence[str]
) -> Spawn:
    """How this one server's program is started: with the folders and hosts that the operator gave
    it.

    `closed` are the daemon's own folders: no setting opens them.
    """

    async def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> ServerProcess:
        for place in (*([config.folder] if config.folder else []), *config.readable):
            _check_open(place, closed)
        async with AsyncExitStack() as stack:
            network = None
            if config.hosts:
                gate = await stack.enter_async_context(way_out(frozenset(config.hosts)))
                network = NetworkAccess(gate.socket_path)
            command = _command(argv, env, cwd, config.tier, CAPS, network, config)
            return _Contained(await sandbox.start(command), stack.pop_all())

    return spawn


def _command(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    tier: Tier,
    caps: Caps,
    network: NetworkAccess | None = None,
    config: ServerConfig | None = None,
) -> Command:
    return Command(
        argv=tuple(argv),
        cwd=cwd,
        workspace=cwd,
        env=dict(env),
        caps=caps,
        network=network,
        tier=tier,
        readable=config.readable if config else (),
        writable=config.writable if config else True,
        holds=bool(config and config.folder),
        stdin="pipe",
        separate_stderr=True,
    )


def _check_open(place: str, closed: Sequence[str]) -> None:
    real = os.path.realpath(place)
    if not os.path.isdir(real):
        raise Forbidden(
            f"{place} is not a folder; mend folder or readable in the server's settings"
        )
    for each in map(os.path.realpath, closed):
        if f"{each}/".startswith(f"{real.rstrip('/')}/") or real.startswith(f"{each}/"):
            raise Forbidden(
                f"{place} holds, or is a part of, the daemon's own folder {each}; give the server"
                " another one"
            )


class _Contained:
    def __init__(self, process: Process, way_out: AsyncExitStack) -> None:
        self._process = process
        self._way_out = way_out
        self._output = process.output()

    async def read(self) -> bytes:
        return await anext(self._output, b"")

    async def read_errors(self) -> bytes:
        errors = self._process.stderr
        return await errors.read() if errors is not None else b""

    async def write(self, data: bytes) -> None:
        await self._process.stdin.write(data)

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return await self._process.look(hold=called)

    async def stop(self) -> None:
        self._process.stdin.close()
        with suppress(TimeoutError):
            # Whoever gives up waiting for a tree kills it.
            async with asyncio.timeout(FAREWELL_S):
                await self._process.wait()

    async def close(self) -> None:
        try:
            await self._process.__aexit__()
        finally:
            await self._way_out.aclose()
