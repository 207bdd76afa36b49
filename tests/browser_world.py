"""A real Chromium in a real sandbox and a small web on loopback, for the tests of the browser
tools.

One event loop and one browser serve a whole module of tests: starting a browser is what takes time.
"""

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

import pytest
import uvloop

from palyra.core.ports import CallContext
from palyra.core.tools import Preview, Scope, ToolResult
from palyra.tools.browser import discovery, tools
from palyra.tools.browser.discovery import Installed
from palyra.tools.browser.pool import Browsers
from palyra.tools.catalogue import Catalogue
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox.sandbox import Sandbox
from tests.net_world import Names, Site

T = TypeVar("T")
HOSTS = ("site.example", "other.example", "cdn.example")


def installed() -> Installed:
    found = discovery.find(os.environ)
    if not isinstance(found, Installed):
        pytest.fail(f"{found.what}: run `.venv/bin/python scripts/chromium.py` ({found.fix})")
    return found


def resolver(port: int) -> Resolver:
    """Every name leads to loopback; the hosts of this web may be reached there, on its port
    only.
    """
    return Resolver(
        Names({"*": [["127.0.0.1"]]}), allow_private=frozenset(f"{host}:{port}" for host in HOSTS)
    )


class Surfing:
    """The browser tools, called as a model would call them."""

    def __init__(self, runner: asyncio.Runner, site: Site, sandbox: Sandbox) -> None:
        self._runner = runner
        self._sandbox = sandbox
        self.site = site
        self.browsers = self.another()
        self.catalogue = Catalogue(tools.tools(self.browsers))

    def another(self, **more: Any) -> Browsers:
        return Browsers(self._sandbox, resolver(self.site.port), installed(), **more)

    def wait(self, work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
        return self._runner.run(asyncio.wait_for(work, seconds))

    def url(self, path: str = "/", host: str = "site.example") -> str:
        return f"http://{host}:{self.site.port}{path}"

    def call(self, name: str, *, session: str = "session", **arguments: Any) -> ToolResult:
        return self.wait(self.calling(self.catalogue, name, session=session, **arguments))

    async def calling(
        self, catalogue: Catalogue, name: str, *, session: str = "session", **arguments: Any
    ) -> ToolResult:
        tool, typed, _ = catalogue.parse(f"browser.{name}", arguments)
        context = CallContext(
            principal="user:owner",
            session_id=session,
            run_id=f"run of {session}",
            call_id="c",
            workspace="",
        )
        return await tool.execute(typed, context)

    def open(self, path: str = "/", **more: Any) -> ToolResult:
        return self.call("open", url=self.url(path), **more)

    def scope(self, name: str, **arguments: Any) -> Scope:
        tool, typed, _ = self.catalogue.parse(f"browser.{name}", arguments)
        return tool.scope(typed, "")

    def preview(self, name: str, **arguments: Any) -> Preview:
        tool, typed, _ = self.catalogue.parse(f"browser.{name}", arguments)
        return tool.preview(typed, "")

    def reference(self, result: ToolResult, name: str) -> str:
        """The reference of what a page calls by this name."""
        page = self.browsers.find(result.data["page"])
        return f"{page.mark}.{[item.name for item in page.items].index(name) + 1}"


@contextmanager
def surfing(pages: Mapping[str, bytes] | Any) -> Iterator[Surfing]:
    """A web with these pages under every host of it, and the tools. `pages` as for `Site`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        site = runner.run(stack.enter_async_context(Site(pages)))
        surf = Surfing(runner, site, Sandbox())
        try:
            yield surf
        finally:
            runner.run(surf.browsers.close())
            runner.run(stack.aclose())


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def below(pid: int) -> list[int]:
    """Every process whose line of parents leads to this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        next_ones = children.get(waiting.pop(), [])
        found += next_ones
        waiting += next_ones
    return found
