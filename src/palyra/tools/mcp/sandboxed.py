"""A server's program inside the sandbox: a folder of its own to write in, the machine's programs to read, no network but the given.

The rule of the sandbox holds: where the machine gives less than the tier that is asked for, the server does not start.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from palyra.domain.tools import Tier
from palyra.tools.mcp.child import FAREWELL_S, Child, Spawn
from palyra.tools.sandbox.command import Caps, Command, Network
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.sandbox import Sandbox

# A server lives for as long as the daemon does, so only what it may hold at one time is limited.
CAPS = Caps(time_s=None, cpu_s=7 * 86_400, output_bytes=1 << 62)


def spawner(sandbox: Sandbox, *, tier: Tier = "C", network: Network | None = None, caps: Caps = CAPS) -> Spawn:
    """How `Servers` starts programs inside `sandbox`. `network` is the one way out, if there is any."""

    async def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Child:
        command = Command(
            argv=tuple(argv),
            cwd=cwd,
            workspace=cwd,
            env=dict(env),
            caps=caps,
            network=network,
            tier=tier,
            stdin="pipe",
            separate_stderr=True,
        )
        return _Contained(await sandbox.start(command))

    return spawn


class _Contained:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._output = process.output()

    async def read(self) -> bytes:
        return await anext(self._output, b"")

    async def read_errors(self) -> bytes:
        errors = self._process.stderr
        return await errors.read() if errors is not None else b""

    async def write(self, data: bytes) -> None:
        await self._process.stdin.write(data)

    async def stop(self) -> None:
        self._process.stdin.close()
        with suppress(TimeoutError):
            # Whoever gives up waiting for a tree kills it.
            async with asyncio.timeout(FAREWELL_S):
                await self._process.wait()

    async def close(self) -> None:
        await self._process.__aexit__()
