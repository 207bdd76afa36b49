"""One Chromium in one sandbox, driven line by line over its pipe; whoever waits for it and is
cancelled ends it.

The rule: what comes out of the sandbox was written by a program that pages have worked on. It is
bounded, decoded into values and believed in nothing else. The network it has is the gate's, and the
gate's list is what policy has allowed so far.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import Unavailable
from palyra.tools.browser.discovery import Installed
from palyra.tools.net.egress import Egress, Gate, Passage
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox import relay
from palyra.tools.sandbox.command import Caps, Command, NetworkAccess
from palyra.tools.sandbox.process import Process
from palyra.tools.sandbox.sandbox import Sandbox

# A browser with a page needs some hundred megabytes; every thread of it counts as a process.
CAPS = Caps(
    time_s=3600.0,
    cpu_s=1800,
    memory_bytes=1536 << 20,
    processes=600,
    open_files=4096,
    file_bytes=256 << 20,
    temporary_bytes=512 << 20,
    output_bytes=1 << 40,
    free_bytes=0,
)
# How long a page may take to load.
PAGE_S = 20.0
_START_S = 25.0
_LONGER_S = 20.0
_LONGEST_LINE = 16 << 20
_MOST_BLOCKED = 12
_MOST_STDERR = 4096


class PageElement(Struct, frozen=True):
    """Something on a page that can be clicked or filled in."""

    kind: str = ""
    name: str = ""
    value: str = ""
    href: str = ""


class Seen(Struct, frozen=True):
    """Answer of the browser."""

    ready: bool = False
    error: str = ""
    # Nothing more can be had from this browser.
    stuck: bool = False
    url: str = ""
    title: str = ""
    status: int = 0
    text: str = ""
    items: list[PageElement] = []
    cut: bool = False
    notes: list[str] = []
    # host:port of everything the page asked for.
    tried: list[str] = []
    image: str = ""


_decoder = msgspec.json.Decoder(Seen)


class Died(Unavailable):
    """Chromium has ended by itself, whatever it was doing."""


class Driven:
    """Made by `start`. One command at a time: `lock` is for whoever uses it."""

    def __init__(self, stack: AsyncExitStack, gate: Gate, process: Process, page_s: float) -> None:
        self.lock = asyncio.Lock()
        self._answer_s = page_s + _LONGER_S
        self.blocked: dict[str, str] = {}
        self._stack = stack
        self._gate = gate
        self._process = process
        self._hosts: frozenset[str] = frozenset()
        self._lines = self._read()
        self._said = bytearray()
        self._listening = asyncio.ensure_future(self._listen())

    @property
    def running(self) -> bool:
        return self._process.running

    @property
    def pid(self) -> int:
        return self._process.pid

    def allow(self, hosts: frozenset[str]) -> None:
        """These hosts may be reached from now on, besides those before."""
        self._hosts |= hosts
        self._gate.allow(self._hosts)

    async def ask(self, **command: Any) -> Seen:
        """The answer to one command. Raises Unavailable, and the browser is dead, if there is
        none.
        """
        self.blocked.clear()
        try:
            async with asyncio.timeout(self._answer_s):
                await self._process.stdin.write(msgspec.json.encode(command) + b"\n")
                seen = await self._answer()
        except TimeoutError:
            await self.close()
            raise Unavailable(
                "the browser did not answer and was closed: open the page again, or another one"
            ) from None
        except asyncio.CancelledError:
            await self.close()
            raise
        if seen.stuck:
            await self.close()
        return seen

    async def ready(self) -> None:
        try:
            async with asyncio.timeout(_START_S):
                await self._answer()
        except TimeoutError:
            raise Unavailable(
                f"the browser did not start within {_START_S:g} s: {self._why()}"
            ) from None

    async def _answer(self) -> Seen:
        line = await anext(self._lines, None)
        if line is None:
            ended = await self._process.wait()
            await self.close()
            if ended.killed == "memory":
                limit = f"it used more than {CAPS.memory_bytes >> 20} MiB of memory"
                raise Unavailable(
                    f"the browser was ended, because {limit}: open the page again, or another one"
                )
            if not ended.killed:
                raise Died(f"the browser has died ({ended.code}): {self._why()}")
            raise Unavailable(f"the browser ended ({ended.killed}): {self._why()}")
        try:
            return _decoder.decode(line)
        except msgspec.DecodeError as error:
            await self.close()
            raise Unavailable(
                "the browser answered something that cannot be read, and was closed: open the page"
                " again"
            ) from error

    async def _read(self) -> AsyncIterator[bytes]:
        waiting = bytearray()
        async for chunk in self._process.output():
            waiting += chunk
            if len(waiting) > _LONGEST_LINE:
                return
            while (end := waiting.find(b"\n")) >= 0:
                line = bytes(waiting[:end])
                del waiting[: end + 1]
                yield line

    async def _listen(self) -> None:
        """Keep the end of what it complains about."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read():
            self._said += chunk
            del self._said[:-_MOST_STDERR]

    def _why(self) -> str:
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "open the page again"

    async def close(self) -> None:
        """Everything of it is gone when this returns."""
        self._listening.cancel()
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()


async def start(
    sandbox: Sandbox,
    resolver: Resolver,
    installed: Installed,
    caps: Caps = CAPS,
    page_s: float = PAGE_S,
) -> Driven:
    """A fresh browser that may reach nothing yet. Raises Forbidden where there is no sandbox for
    it.
    """
    blocked: dict[str, str] = {}

    def passed(passage: Passage) -> None:
        if passage.verdict != "allowed" and passage.host and len(blocked) < _MOST_BLOCKED:
            blocked.setdefault(f"{passage.host}:{passage.port}", passage.reason)

    async with AsyncExitStack() as stack:
        gate = await stack.enter_async_context(Egress(resolver, log=passed).gate(frozenset()))
        folder = tempfile.mkdtemp(prefix="palyra-browser-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        command = Command(
            argv=_argv(installed, page_s),
            cwd=folder,
            workspace=folder,
            caps=caps,
            network=NetworkAccess(gate.socket_path),
            readable=(*_python(), *installed.folders),
            writable=False,
            stdin="pipe",
            separate_stderr=True,
        )
        process = await stack.enter_async_context(await sandbox.start(command))
        driven = Driven(stack.pop_all(), gate, process, page_s)
        driven.blocked = blocked
    try:
        await driven.ready()
    except BaseException:
        await driven.close()
        raise
    return driven


def _argv(installed: Installed, page_s: float) -> tuple[str, ...]:
    # Isolated, and without the site packages of the daemon's own folder: it finds Playwright by the
    # path it is given.
    program, walk = (
        files("palyra.tools.browser").joinpath(name).read_text("utf-8")
        for name in ("sandboxed_driver.py", "walk.js")
    )
    proxy = f"http://127.0.0.1:{relay.PORT}"
    python = (os.path.realpath(sys.executable), "-I", "-S", "-c", program)
    return (*python, installed.packages, installed.chromium, proxy, walk, str(page_s))


def _python() -> tuple[str, ...]:
    return () if sys.base_prefix in ("/usr", "/usr/local") else (sys.base_prefix,)
