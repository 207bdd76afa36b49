"""Starting a command inside bubblewrap: spawn, learn its first process, set its limits, open the
gate.
"""

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from palyra.core.errors import Unavailable
from palyra.system.descriptors import PipeReader, Writer, held
from palyra.tools.sandbox import bubblewrap, relay, seccomp, spawn
from palyra.tools.sandbox.changed_files import ChangedFiles
from palyra.tools.sandbox.command import Caps, Command
from palyra.tools.sandbox.masks import Mask
from palyra.tools.sandbox.process import Pipes, Process
from palyra.tools.sandbox.spawn import Mourner
from palyra.tools.sandbox.system import EtcFolder

_LONGEST_START_S = 20.0
_LONGEST_LAST_WORDS_S = 1.0
_INFO_BYTES = 4096


class _Info(Struct, rename={"child_pid": "child-pid"}):
    """Information that bubblewrap gives about the sandbox it made."""

    child_pid: int


class Tools(Struct, frozen=True):
    """The programs that make a sandbox, the one that sees to its end, and the /etc it gets."""

    bwrap: str
    python: str
    mourner: Mourner
    etc: EtcFolder


class _Namespace:
    """Ends a tree through the first process of its pid namespace: when that dies the kernel kills
    all others.

    Until that process is known, nothing is killed: bubblewrap's outer process must not die before
    it has released the inner one. Closing the gate is enough then, because a gate without a daemon
    behind it does not open.
    """

    def __init__(self, gate: Writer) -> None:
        self._gate = gate
        self._first = -1
        self._ended = False

    def found(self, pid: int) -> None:
        self._first = os.pidfd_open(pid)
        if self._ended:
            self.end()

    def end(self) -> None:
        self._ended = True
        self._gate.close()
        if self._first >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def close(self) -> None:
        if self._first >= 0:
            os.close(self._first)
            self._first = -1


async def start(
    tools: Tools,
    command: Command,
    masks: Sequence[Mask],
    readable: Sequence[str],
    aftermath: ChangedFiles | None = None,
) -> Process:
    """The command, running. It has not done anything before all its limits are in force."""
    port = relay.PORT if command.network else 0
    info_out, info_in = os.pipe()
    filters = held(seccomp.program(), "seccomp") if seccomp.supported() else -1
    lines = bubblewrap.options(
        command, masks, readable, f"http://127.0.0.1:{port}" if port else "", tools.etc
    )
    lines += ["--info-fd", str(info_in), *(["--seccomp", str(filters)] if filters >= 0 else [])]
    # Through a descriptor: arguments of a process can be read by everybody on the machine, and the
    # environment may hold a secret.
    arguments = held(b"".join(line.encode() + b"\0" for line in lines), "arguments")
    passed = [info_in, arguments, *([filters] if filters >= 0 else [])]
    info = PipeReader(info_out)
    try:
        tools.mourner.attend(os.path.dirname(tools.etc.folder))
        argv = [tools.mourner.mark, "--args", str(arguments), "--", *bubblewrap.gated(command)]
        root, pipes = spawn.spawn(argv, command, passed, program=tools.bwrap)
    except OSError as error:
        info.close()
        raise Unavailable(f"bubblewrap could not be started: {error}") from error
    finally:
        for descriptor in passed:
            os.close(descriptor)
    ender = _Namespace(pipes.stdin)
    process = Process(command, root, ender, pipes, spawn.group(command.caps), aftermath)
    try:
        async with asyncio.timeout(_LONGEST_START_S):
            await _open_gate(tools, process, pipes, info, ender)
    except BaseException as error:
        # Its first process may be gone before we get to know it: why is said in the same way.
        said = (
            await _last_words(process, pipes)
            if isinstance(error, EOFError | ProcessLookupError)
            else b""
        )
        async with process:
            pass
        if isinstance(error, TimeoutError | msgspec.DecodeError | OSError | EOFError):
            why = f"{error} {said.decode(errors='replace')}".strip()
            raise Unavailable(f"the sandbox did not start: {why[:500]}") from error
        raise
    finally:
        info.close()
    return process


async def _last_words(process: Process, pipes: Pipes) -> bytes:
    """Return bubblewrap's message when it gives up, which may come in pieces."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_LAST_WORDS_S):
            await process.wait()
    return (pipes.stderr or pipes.stdout).at_hand()


async def _open_gate(
    tools: Tools, process: Process, pipes: Pipes, info: PipeReader, ender: _Namespace
) -> None:
    command = process.command
    told = await info.read_all(_INFO_BYTES)
    if not told:
        raise EOFError
    first = msgspec.json.decode(told, type=_Info).child_pid
    ender.found(first)
    if process.group is not None:
        process.group.enter(first)
    _limit(first, command.caps, grouped=process.group is not None)
    if command.network is not None:
        process.on_exit.connect(await relay.start(tools.python, first, command.network.socket_path))
    # Only now: a word that waited in the pipe would let a sandbox begin whose daemon has died
    # since.
    said = await pipes.stdout.read_all(len(bubblewrap.READY))
    if said != bubblewrap.READY:
        raise EOFError(said.decode(errors="replace"))
    await process.stdin.write(b"go\n")
    if command.stdin == "null":
        process.stdin.close()


def _limit(pid: int, caps: Caps, *, grouped: bool) -> None:
    for kind, most in spawn.rlimits(caps, grouped=grouped).items():
        resource.prlimit(pid, kind, (most, most))
