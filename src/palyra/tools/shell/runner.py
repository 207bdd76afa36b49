"""From the arguments of a call to a process in the sandbox, the same for the foreground and for
jobs.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from msgspec import Struct

from palyra.core.errors import Forbidden
from palyra.core.labels import Label, merge, private, untrusted
from palyra.core.tools import Tier
from palyra.tools.sandbox.command import Caps, Command, Exit, NetworkAccess
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell import read_only_git
from palyra.tools.shell.read_only_commands import confined

_LONGEST_NAME = 60


class GatePort(Protocol):
    socket_path: str


class EgressPort(Protocol):
    """Opens a way to the hosts on a list and to no others; see `palyra.tools.net.egress`."""

    def check(self, allowed: Sequence[str]) -> None: ...

    def gate(self, allowed: frozenset[str]) -> AbstractAsyncContextManager[GatePort]: ...


class ShellCommand(Struct, frozen=True, kw_only=True):
    """One command line to run, with everything decided. What is to read only cannot write in the
    workspace.
    """

    command: str
    cwd: str
    workspace: str
    hosts: tuple[str, ...]
    caps: Caps
    reads_only: bool = False


class Runner:
    """`tier` is what every command is to have at least; where the machine gives less, nothing
    runs.
    """

    def __init__(
        self, sandbox: Sandbox, egress: EgressPort | None = None, *, tier: Tier = "C"
    ) -> None:
        self.sandbox = sandbox
        self.tier = tier
        self._egress = egress

    def check_hosts(self, hosts: Sequence[str]) -> None:
        """Raise Refused for hosts that no command reaches, before anybody is asked about them."""
        if hosts and self._egress is not None:
            self._egress.check(hosts)

    @asynccontextmanager
    async def started(self, wanted: ShellCommand) -> AsyncIterator[Process]:
        """The command, running; when the block is left its tree is dead and its way out is
        closed.
        """
        async with AsyncExitStack() as stack:
            network = None
            if wanted.hosts and self._egress is None:
                raise Forbidden("this daemon has no way out for commands: run it without hosts")
            self.check_hosts(wanted.hosts)
            if wanted.hosts and self._egress is not None:
                gate = await stack.enter_async_context(self._egress.gate(frozenset(wanted.hosts)))
                network = NetworkAccess(gate.socket_path)
            yield await stack.enter_async_context(
                await self.sandbox.start(self._command(wanted, network))
            )

    def _command(self, wanted: ShellCommand, network: NetworkAccess | None) -> Command:
        return Command(
            argv=(shell(), "-c", confined(wanted.command) if wanted.reads_only else wanted.command),
            cwd=wanted.cwd,
            workspace=wanted.workspace,
            env=dict(read_only_git.QUIET) if wanted.reads_only else {},
            writable=not wanted.reads_only,
            caps=wanted.caps,
            network=network,
            tier=self.tier,
        )


def shell() -> str:
    return next(
        path
        for path in ("/bin/bash", "/usr/bin/bash", "/bin/sh")
        if path == "/bin/sh" or os.access(path, os.X_OK)
    )


def label(command: str, hosts: Sequence[str]) -> Label:
    """What a command prints can show any file of the workspace, and is as trustworthy as what it
    could talk to.
    """
    line = " ".join(command.split())
    shown = private(
        f"command:{line if len(line) <= _LONGEST_NAME else line[:_LONGEST_NAME] + '...'}"
    )
    return merge(shown, untrusted(*(f"shell:{host}" for host in hosts))) if hosts else shown


def ending(ended: Exit, caps: Caps) -> str:
    """How it ended, in words."""
    match ended.killed:
        case "":
            named = f" ({ended.signal})" if ended.signal else ""
            return f"exit code {ended.code}{named}"
        case "time":
            return f"killed after {caps.time_s or 0:g} s"
        case "memory":
            return f"killed: it used more than {caps.memory_bytes >> 20} MiB of memory"
        case "processes":
            return f"killed: it had more than {caps.processes} processes"
        case "output":
            return f"killed: it wrote more than {caps.output_bytes >> 20} MiB of output"
        case "disk":
            return "killed: the workspace's disk was nearly full"
        case "stopped":
            return "stopped"
