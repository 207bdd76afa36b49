"""The one door to processes: finds out once what this machine can enforce, and starts commands
under it or not at all.

The rule: no silent downgrade. A call names the tier it needs; a machine that gives less refuses it
and says why.
"""

import asyncio
import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from threading import Event

import msgspec

from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, PalyraError, Unavailable
from palyra.core.tools import Tier
from palyra.system import thread_pool
from palyra.tools import blocking
from palyra.tools.sandbox import cgroups
from palyra.tools.sandbox.changed_files import ChangedFiles
from palyra.tools.sandbox.command import STRENGTH, Caps, Command, Probe
from palyra.tools.sandbox.masks import Look, Mask, Masks
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.spawn import Mourner
from palyra.tools.sandbox.system import Etc

# Each of these must hold inside, or the tier is not what it says. Files are opened and not written:
# a wall that is not there is noticed without harm. (`test -w` would not do, Landlock answers only
# to opening.)
_CLOSED = (
    "! (: >>/proc/sys/kernel/core_pattern) 2>/dev/null && ! (: </etc/shadow) 2>/dev/null && ! ls"
    " /root/. >/dev/null 2>&1"
)
_CHECK = {
    "C": f"{_CLOSED} && test ! -e /run/. && test ! -e /var/. && echo contained",
    "B": f"{_CLOSED} && echo contained",
}
_ROOT_UNCOUNTED = (
    "the daemon is root and may not make control groups, so nothing would end a fork bomb; run it"
    " as an ordinary user, or give it a control group that it may divide (systemd: Delegate=yes)"
)
_ONLY_TIER_C = (
    "{} belongs to a git repository, and without bubblewrap nothing keeps a command from changing"
    " its hooks and settings, which git on this machine would run: install bubblewrap, or work in a"
    " folder without .git"
)
_MOST_HELD = 1_000
_NOT_A_WORKSPACE = (
    "/",
    "/usr",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var",
    "/bin",
    "/lib",
    "/boot",
)


class Sandbox:
    """`readable` are more folders with programs, shown read-only. `hidden` are folders of the
    daemon, closed wherever they lie.

    `most` keeps it from using a stronger tier. `python` runs the helpers that need a process of
    their own.
    """

    def __init__(
        self,
        *,
        readable: Sequence[str] = (),
        hidden: Sequence[str] = (),
        most: Tier = "C",
        python: str = sys.executable,
    ) -> None:
        self._python = python
        self._readable = tuple(readable)
        self._hidden = tuple(hidden)
        self._most = most
        self._masks = Masks()
        self._mourner = Mourner()
        self._etc = Etc(hidden)
        self._probed: asyncio.Task[Probe] | None = None
        self._bwrap: str | None = None

    @property
    def mark(self) -> str:
        """Name that everything that this sandbox starts carries, and nothing else does."""
        return self._mourner.mark

    async def probe(self) -> Probe:
        """Return which tier there is. Tried once, by running a command in it; everybody who asks
        meanwhile waits for the same answer.
        """
        if self._probed is None or (self._probed.done() and self._probed.cancelled()):
            self._probed = asyncio.ensure_future(self._find())
        return await asyncio.shield(self._probed)

    async def start(self, command: Command) -> Process:
        """Start a command in at least the tier it asks for. Raises Forbidden where there is only a
        weaker one.
        """
        found = await self.probe()
        if STRENGTH.index(found.tier) < max(STRENGTH.index(command.tier), STRENGTH.index("B")):
            raise Forbidden(
                f"this needs sandbox tier {command.tier} and this machine gives tier {found.tier}:"
                f" {found.reason}",
                needed=command.tier,
                tier=found.tier,
            )
        return await self._start(_checked(command, self._hidden), found.tier)

    async def _start(self, command: Command, tier: Tier) -> Process:
        readable = (*self._readable, *command.readable)
        if tier == "B":
            from palyra.tools.sandbox import tier_b

            look = await self._look(command)
            if command.writable and (look.repositories or look.pointers):
                raise Forbidden(_ONLY_TIER_C.format(min(look.repositories + look.pointers)))
            after = ChangedFiles(self._masks, command, look) if command.writable else None
            return await tier_b.start(self._python, command, readable, after)
        return await self._start_c(command, readable)

    async def _start_c(self, command: Command, readable: Sequence[str]) -> Process:
        from palyra.tools.sandbox import tier_c

        assert self._bwrap is not None
        etc = self._etc.current
        if etc is None:
            etc = await blocking.off_loop(lambda _: self._etc.make())
        command = msgspec.structs.replace(command, hidden=(*command.hidden, self._etc.root))
        look = await self._look(command)
        aftermath: ChangedFiles | None = None
        if command.writable:
            make = functools.partial(ChangedFiles.staged, self._masks, command, look)
            aftermath = await thread_pool.everyday.run(make) if look.repositories else make()
        masks = sorted({*look.masks, *(aftermath.masks if aftermath else ())})
        if command.holds and command.writable:
            masks = sorted({*masks, *_held(look)})
        tools = tier_c.Tools(self._bwrap, self._python, self._mourner, etc)
        try:
            return await tier_c.start(tools, command, masks, readable, aftermath)
        except BaseException:
            if aftermath is not None:
                aftermath.close()
            raise

    async def _look(self, command: Command) -> Look:
        if self._masks.few(command.workspace):
            return self._masks.of(command.workspace, command.hidden, Event())
        return await blocking.off_loop(
            lambda stop: self._masks.of(command.workspace, command.hidden, stop)
        )

    async def _find(self) -> Probe:
        reasons: list[str] = []
        if os.geteuid() == 0 and cgroups.places() is None:
            # The kernel does not count the processes of root: a fork bomb would end only when the
            # machine stands still.
            return Probe("A", "no processes", _ROOT_UNCOUNTED)
        if self._most == "C":
            from palyra.tools.sandbox import bubblewrap

            try:
                self._bwrap = bubblewrap.find()
                why = await self._try("C")
            except Unavailable as error:
                why = error.message
            if not why:
                return Probe("C", f"bubblewrap ({self._bwrap})")
            reasons.append(f"tier C: {why}")
        if self._most in ("B", "C"):
            why = _no_landlock() or await self._try("B")
            if not why:
                return Probe("B", "Landlock", "; ".join(reasons))
            reasons.append(f"tier B: {why}")
        return Probe("A", "no processes", "; ".join(reasons))

    async def _try(self, tier: Tier) -> str:
        """Return why a tier does not work here, or nothing."""
        workspace = tempfile.mkdtemp(prefix="palyra-probe-")
        argv = ("/bin/sh", "-c", _CHECK[tier])
        command = Command(
            argv=argv, cwd=workspace, workspace=workspace, caps=Caps(time_s=10.0), tier=tier
        )
        try:
            async with await self._start(command, tier) as process:
                said = b"".join([chunk async for chunk in process.output()])
                ended = await process.wait()
        except (PalyraError, OSError) as error:
            return str(error)
        finally:
            os.rmdir(workspace)
        text = said.decode(errors="replace").strip()
        return (
            ""
            if ended.code == 0 and text == "contained"
            else f"a test command was not contained: {ended.code} {text[:300]}"
        )


def _held(look: Look) -> list[Mask]:
    files = [path for path in look.told if os.path.isfile(path) and not os.path.islink(path)]
    if len(files) > _MOST_HELD:
        raise LimitExceeded(
            f"the folder holds {len(files):,} files that other programs obey (package.json,"
            f" Makefile, …) and at most {_MOST_HELD:,} can be kept as they are: give a smaller"
            " folder, or make it read-only (writable = false)"
        )
    return [Mask(path, "read_only") for path in files]


def _no_landlock() -> str:
    from palyra.tools.sandbox import confine, seccomp, tier_b

    abi = confine.landlock_abi()
    if abi < tier_b.LEAST_ABI:
        return f"the kernel has Landlock generation {abi} and {tier_b.LEAST_ABI} is needed"
    return (
        "" if seccomp.supported() else "there is no system call filter for this kind of processor"
    )


def _checked(command: Command, hidden: tuple[str, ...]) -> Command:
    """The command with real paths; a workspace that would uncover the system is refused."""
    workspace, cwd = os.path.realpath(command.workspace), os.path.realpath(command.cwd)
    if workspace in _NOT_A_WORKSPACE or not os.path.isdir(workspace):
        raise InvalidInput(f"{workspace} cannot be a workspace for commands")
    loader = [name for name in command.env if name.startswith("LD_") or name == "GLIBC_TUNABLES"]
    if loader:
        # The shell that keeps the gate would load it too, before any limit is in force.
        raise InvalidInput(
            f"{loader[0]} cannot be given to a command: it changes how programs are loaded"
        )
    if cwd != workspace and not cwd.startswith(workspace.rstrip("/") + "/"):
        raise Forbidden(f"{cwd} lies outside the workspace {workspace}")
    return msgspec.structs.replace(
        command, workspace=workspace, cwd=cwd, hidden=(*hidden, *command.hidden)
    )
