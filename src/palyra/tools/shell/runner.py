"""From the arguments of a call to a process in the sandbox, the same for the foreground and for
jobs.

What is kept of a command's output: its beginning and its end, and exactly how much lies between.

Progress goes out in whole lines and not more often than a watcher can read; what is told live is
never more than what is kept.
"""

import codecs
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
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

KEPT = 1 << 20
_EVERY_S = 0.1
_AT_ONCE = 4 << 10


class OutputBuffer:
    """The first and the last `most / 2` bytes of a stream of any length."""

    def __init__(self, most: int = KEPT) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        if chunk[room:]:
            self._tail.append(chunk[room:])
            self._tail_size += len(chunk[room:])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> tuple[str, int]:
        """Return the kept output, and how many bytes were left out in the middle."""
        tail = b"".join(self._tail)
        if self.total <= self._half * 2:
            return (bytes(self._head) + tail).decode(errors="replace"), 0
        head, tail = _whole_end(bytes(self._head)), _whole_start(tail[-self._half :])
        dropped = self.total - len(head) - len(tail)
        return (
            (
                f"{head.decode(errors='replace')}\n… [{dropped:,} bytes left out]"
                f" …\n{tail.decode(errors='replace')}"
            ),
            dropped,
        )


class OutputProgress:
    """Hands on output as it comes, in whole lines: what is redacted line by line must not be cut
    inside one.
    """

    def __init__(
        self, tell: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""
        self._last = float("-inf")

    def add(self, chunk: bytes) -> None:
        self._waiting += self._decoder.decode(chunk)
        if self._now() - self._last >= _EVERY_S:
            self.flush(whole_lines=True)

    def flush(self, *, whole_lines: bool = False) -> None:
        end = (
            max(self._waiting.rfind("\n"), self._waiting.rfind("\r")) + 1
            if whole_lines
            else len(self._waiting)
        )
        ready, self._waiting = self._waiting[:end], self._waiting[end:]
        if len(self._waiting) > _AT_ONCE:
            # A line that does not end is not worth its memory here; the result has it.
            self._waiting = ""
        if not ready:
            return
        if len(ready) > _AT_ONCE:
            cut = ready.find("\n", len(ready) - _AT_ONCE) + 1 or len(ready) - _AT_ONCE
            ready = f"… [{cut:,} characters skipped]\n{ready[cut:]}"
        self._last = self._now()
        self._tell(ready)


def _whole_end(data: bytes) -> bytes:
    """Without a character that is cut off at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if needs > back else data
    return data


def _whole_start(data: bytes) -> bytes:
    """Without the rest of a character whose beginning was left out."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


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
    """Return the label: output can show any file of the workspace, and is as trustworthy as what
    the command could talk to.
    """
    line = " ".join(command.split())
    shown = private(
        f"command:{line if len(line) <= _LONGEST_NAME else line[:_LONGEST_NAME] + '...'}"
    )
    return merge(shown, untrusted(*(f"shell:{host}" for host in hosts))) if hosts else shown


def ending(ended: Exit, caps: Caps) -> str:
    """Return how it ended, in words."""
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
