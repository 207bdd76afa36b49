"""A server's program as a process of our own: its own group, an environment of its own, dead when
the daemon is.

This is the one that runs without walls. `palyra.features.mcp.process` gives the same
inside the sandbox.

What `palyra mcp` finds and writes on this machine: a server's program with what it needs to run,
and permits for its tools.

A server's program inside the sandbox: a folder to work in, the machine's programs to read, no
network but the given.

The rule of the sandbox holds: where the machine gives less than the tier that is asked for, the
server does not start.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from palyra.cli.settings_file import SettingsFile
from palyra.core.errors import ConfigInvalid, Forbidden, InvalidInput, NotFound
from palyra.core.tools import Tier
from palyra.features.mcp.jsonrpc import NotSent
from palyra.features.mcp.package_start import beyond_system
from palyra.features.mcp.settings import ServerConfig
from palyra.system import cpu_affinity
from palyra.system.descriptors import PipeReader, Writer, readable
from palyra.system.private_files import write_private
from palyra.tools.sandbox.command import Caps, Command, NetworkAccess
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.sandbox import Sandbox

FILE = "mcp.cedar"
_HEADING = "// What `palyra mcp permit` wrote. Delete a policy to have its calls denied again.\n"
_INTERPRETER = re.compile(r"node|bun|deno|python[0-9.]*")
_PACKAGE_FILES = ("package.json", "pyproject.toml")
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def found(word: str, args: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The program's path, and the folders that it must be able to read beyond what a sandbox
    shows: of an interpreter, also those of the script that it is given.
    """
    path = shutil.which(word)
    if path is None:
        raise NotFound(f"there is no program {word!r}: install it, or give its whole path")
    path = os.path.abspath(path)
    # Through links, but not out of a virtual environment: its python is a link too.
    while os.path.islink(path) and _environment(path) is None:
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    inside = _environment(path)
    needs = [str(inside), *_base(inside)] if inside else [_root(path)]
    if _INTERPRETER.fullmatch(os.path.basename(path)):
        script = next((each for each in args if not each.startswith("-")), "")
        if os.path.isabs(script) and os.path.isfile(script):
            needs += [_root(script), _root(os.path.realpath(script))]
    return path, beyond_system(needs)


def _root(path: str) -> str:
    """Return the folder that a program or a script is installed in with what it imports: the
    outermost `node_modules`, the nearest folder that is a package, or its own.
    """
    folder = os.path.dirname(path)
    parts = folder.split("/")
    if "node_modules" in parts:
        return "/".join(parts[: parts.index("node_modules") + 1])
    for each in (folder, *map(str, Path(folder).parents)):
        # Nobody's home folder as a whole.
        if each in ("/", os.path.expanduser("~")):
            break
        if any(os.path.exists(os.path.join(each, name)) for name in _PACKAGE_FILES):
            return each
    return folder


def _environment(path: str) -> Path | None:
    """The virtual environment that a program is installed in."""
    folder = Path(path).parent.parent
    return folder if (folder / "pyvenv.cfg").is_file() else None


def _base(environment: Path) -> list[str]:
    """Return where the python of a virtual environment comes from."""
    for line in (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return [os.path.dirname(os.path.realpath(value.strip()))]
    return []


def write_permits(
    home: Path, settings: SettingsFile, server: str, tools: tuple[str, ...], *, unattended: bool
) -> tuple[Path, list[str]]:
    """Add a policy for each tool, or one for the whole server. Gives the file and the ids that are
    new in it.
    """
    from palyra.policy import store

    named = settings.value("policy.folder")
    folder = Path(named) if named else home / "policies"
    path = folder / FILE
    before = path.read_text(encoding="utf-8") if path.exists() else _HEADING
    text, written = before, []
    for tool in tools or ("",):
        if tool and not _TOOL.fullmatch(tool):
            raise InvalidInput(
                f"{tool!r} is not the name of a tool: write it as `palyra mcp show {server}` does,"
                f" without mcp:{server}/"
            )
        name = f"mcp-{server}{f'-{tool}' if tool else ''}{'-unattended' if unattended else ''}"
        if f'@id("{name}")' not in text:
            text = f"{text.rstrip()}\n\n{_policy(name, server, tool, unattended=unattended)}"
            written.append(name)
    if not written:
        return path, written
    write_private(path, text.encode())
    if problems := store.check(folder, settings.value("policy.preset")):
        if before == _HEADING:
            path.unlink()
        else:
            write_private(path, before.encode())
        raise ConfigInvalid(
            f"the policy folder has problems, so nothing was added: {problems[0]}; see `palyra"
            " policy check`"
        )
    return path, written


def _policy(name: str, server: str, tool: str, *, unattended: bool) -> str:
    action = (
        'action in [Action::"run", Action::"run_unattended"]'
        if unattended
        else 'action == Action::"run"'
    )
    resource = f'resource == Tool::"mcp:{server}/{tool}"' if tool else "resource"
    what = f"mcp:{server}/{tool}" if tool else f"the tools of the MCP server {server}"
    condition = "" if tool else f' when {{\n  resource.source == "mcp:{server}"\n}}'
    return (
        f'@id("{name}")\n@reason("{what} may be'
        f' called{" without asking" if unattended else ", after an approval"}")\npermit (\n'
        f'  principal == User::"owner",\n  {action},\n  {resource}\n){condition};\n'
    )


# How long a server may take to leave by itself once its input has ended, and once it was told to.
FAREWELL_S = 1.0
_TOLD_S = 1.0
_DEATH_S = 5.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Runs in the new process before the program does: from now on the kernel kills it when the daemon
# dies. If that has happened already, there is another parent. A program that cannot be started ends
# with the shell's number for that.
_BEFORE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""


class ServerProcess(Protocol):
    """A running server program. Reading gives nothing once it has ended.

    `stop` lets it leave by itself for a moment and returns when nothing of it is left; `close`
    comes after, when nobody reads.
    """

    async def read(self) -> bytes: ...

    async def read_errors(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def look(self, *, called: bool) -> tuple[str, ...]:
        """Return what a person should know of the files it has changed since the last time.
        `called`: during a call.
        """
        ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """A program to start, with exactly this environment, in this folder. `readable` are folders of
    its package; `own` is a folder that it may write besides.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str
    readable: tuple[str, ...] = ()
    own: str = ""


# Starts a program. Raises PalyraError or OSError if it cannot.
Spawn = Callable[[ProgramStart], Awaitable[ServerProcess]]


def environment(home: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server's program: next to nothing about the machine, and what the
    operator set.
    """
    return {"PATH": PATH, **({"HOME": home} if home else {}), "LANG": "C.UTF-8", **given}


async def spawn(start: ProgramStart) -> ServerProcess:
    # On the loop's own thread: when a thread ends, the kernel tells its children that their parent
    # has died.
    with cpu_affinity.roaming():
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-I", "-S", "-c", _BEFORE, str(os.getpid()), *start.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(start.env),
            cwd=start.cwd,
            start_new_session=True,
            bufsize=0,
        )
    return _Process(process)


class _Process:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._handle = os.pidfd_open(process.pid)
        self._input = Writer(os.dup(process.stdin.fileno()))
        self._output = PipeReader(os.dup(process.stdout.fileno()))
        self._errors = PipeReader(os.dup(process.stderr.fileno()))
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    async def read(self) -> bytes:
        return await self._output.read()

    async def read_errors(self) -> bytes:
        return await self._errors.read()

    async def write(self, data: bytes) -> None:
        try:
            await self._input.write(data)
        except OSError as error:
            raise NotSent("its input is closed") from error

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return ()

    async def stop(self) -> None:
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        self._input.close()
        try:
            for seconds, number in ((FAREWELL_S, signal.SIGTERM), (_TOLD_S, signal.SIGKILL)):
                if await _ended(handle, seconds):
                    break
                self._signal(number)
        finally:
            # The group outlives its first process if that left children behind. Its id cannot be
            # another's before we have waited.
            self._signal(signal.SIGKILL)
            await asyncio.shield(_ended(handle, _DEATH_S))
            self._process.poll()
            os.close(handle)

    async def close(self) -> None:
        self._output.close()
        self._errors.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return


async def _ended(handle: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await readable(handle)
    except TimeoutError:
        return False
    return True


# A server lives for as long as the daemon does, so only what it may hold at one time is limited.
CAPS = Caps(time_s=None, cpu_s=7 * 86_400, output_bytes=1 << 62)


class ServerGate(Protocol):
    socket_path: str


# Opens a way to these hosts and to no others, for as long as the block lasts; see
# `palyra.tools.net.egress`.
WayOut = Callable[[frozenset[str]], AbstractAsyncContextManager[ServerGate]]


def spawner(sandbox: Sandbox, *, tier: Tier = "C", caps: Caps = CAPS) -> Spawn:
    """Return how `Servers` starts programs inside `sandbox`, with nothing but their own folders."""

    async def spawn(start: ProgramStart) -> ServerProcess:
        return _Contained(await sandbox.start(_command(start, tier, caps)), AsyncExitStack())

    return spawn


def spawner_for(
    config: ServerConfig, sandbox: Sandbox, way_out: WayOut, *, closed: Sequence[str]
) -> Spawn:
    """Return how this one server's program is started: with the folders and hosts that the operator
    gave it.

    `closed` are the daemon's own folders: no setting opens them.
    """

    async def spawn(start: ProgramStart) -> ServerProcess:
        for place in (*([config.folder] if config.folder else []), *config.readable):
            _check_open(place, closed)
        async with AsyncExitStack() as stack:
            network = None
            if config.hosts:
                gate = await stack.enter_async_context(way_out(frozenset(config.hosts)))
                network = NetworkAccess(gate.socket_path)
            command = _command(start, config.tier, CAPS, network, config)
            return _Contained(await sandbox.start(command), stack.pop_all())

    return spawn


def _command(
    start: ProgramStart,
    tier: Tier,
    caps: Caps,
    network: NetworkAccess | None = None,
    config: ServerConfig | None = None,
) -> Command:
    return Command(
        argv=start.argv,
        cwd=start.cwd,
        workspace=start.cwd,
        # Node's own requests take the way out only if they are told to.
        env={**({"NODE_USE_ENV_PROXY": "1"} if network else {}), **start.env},
        caps=caps,
        network=network,
        tier=tier,
        readable=(*(config.readable if config else ()), *start.readable),
        own=start.own,
        writable=config.writable if config else True,
        holds=bool(config and config.folder),
        stdin="pipe",
        separate_stderr=True,
    )


def _check_open(place: str, closed: Sequence[str]) -> None:
    real = os.path.realpath(place)
    if not os.path.isdir(real):
        raise Forbidden(f"{place} is not a folder; fix folder or readable in the server's settings")
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
