"""The browsers that are open: one for each session that uses one, closed when the run that opened
it ends.

A page is known by a short mark that is given out once. It says, without knowing the session, which
page a call is about; a call of another session cannot use it, and neither can one that comes after
the page has changed.
"""

import asyncio
import secrets
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from palyra.core.errors import Conflict, Forbidden, LimitExceeded, NotFound, PalyraError
from palyra.tools.browser import driver
from palyra.tools.browser.discovery import Installed
from palyra.tools.browser.driver import Died, Driven, PageElement, Seen
from palyra.tools.net import urls
from palyra.tools.net.resolve import Resolver
from palyra.tools.net.urls import Url
from palyra.tools.sandbox.command import Caps
from palyra.tools.sandbox.sandbox import Sandbox

MOST_OPEN = 4
_MOST_DEATHS = 32
# Commands that change nothing: another browser may do them again.
_LOOKING = frozenset({"read", "screenshot"})
IDLE_S = 30 * 60.0
# Without letters that look like others, or that make words.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"


class BrowserPage(Struct, frozen=True):
    """A page as it was when it was last looked at. `site` is the web address it belongs to,
    whatever it shows now.
    """

    mark: str
    session_id: str
    url: str
    site: Url
    title: str
    items: tuple[PageElement, ...]

    def item(self, number: int) -> PageElement:
        if not 1 <= number <= len(self.items):
            raise NotFound(
                f"there is nothing numbered {number} on the page {self.mark}: read it again with"
                " browser.read"
            )
        return self.items[number - 1]


class InUse(Struct, frozen=True):
    """An open browser, for who looks after it."""

    session_id: str
    run_id: str
    pid: int
    running: bool


class _Open:
    """A session's browser."""

    def __init__(self, driven: Driven, run_id: str) -> None:
        self.driven = driven
        self.run_id = run_id
        self.marks: list[str] = []
        # What it was let reach, for the one that takes its place.
        self.hosts: frozenset[str] = frozenset()
        self.timer: asyncio.TimerHandle | None = None


class Browsers:
    def __init__(
        self,
        sandbox: Sandbox,
        resolver: Resolver,
        installed: Installed,
        *,
        caps: Caps = driver.CAPS,
        idle_s: float = IDLE_S,
        page_s: float = driver.PAGE_S,
        most: int = MOST_OPEN,
    ) -> None:
        self.resolver = resolver
        self._sandbox = sandbox
        self._installed = installed
        self._caps = caps
        self._idle_s = idle_s
        self._page_s = page_s
        self._most = most
        self._open: dict[str, _Open] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._starting: set[str] = set()
        self._pages: dict[str, BrowserPage] = {}
        self._closing: set[asyncio.Task[None]] = set()
        # Browsers that ended by themselves since the watchdog looked last.
        self.deaths: list[InUse] = []

    @property
    def open(self) -> int:
        return len(self._open)

    def in_use(self) -> list[InUse]:
        """The browsers that are open, each with the run that used it last."""
        return [
            InUse(key, each.run_id, each.driven.pid, each.driven.running)
            for key, each in self._open.items()
        ]

    def find(self, mark: str) -> BrowserPage:
        page = self._pages.get(mark)
        if page is None:
            raise NotFound(
                f"there is no page {mark[:16]!r} any more: open one with browser.open",
                page=mark[:16],
            )
        return page

    async def visit(self, session_id: str, run_id: str, url: Url, hosts: frozenset[str]) -> "Visit":
        """Open an address, in the session's browser or a new one."""
        opened = await self._of(session_id, run_id)
        try:
            return await self._visit(session_id, opened, url, hosts)
        except Died:
            # It was no fault of the call: a new browser does it, once.
            return await self._visit(session_id, await self._of(session_id, run_id), url, hosts)

    async def _visit(
        self, session_id: str, opened: _Open, url: Url, hosts: frozenset[str]
    ) -> "Visit":
        async with opened.driven.lock:
            opened.hosts |= hosts
            opened.driven.allow(hosts)
            return await self._command(session_id, opened, url, do="open", url=str(url))

    async def act(
        self, session_id: str, page: BrowserPage, *, fresh: bool, **command: Any
    ) -> "Visit":
        """Something on a page that is open. With `fresh` only if nothing has looked at it since, so
        that numbers mean the same.
        """
        if page.session_id != session_id:
            raise Forbidden("this page is not this session's: open one with browser.open")
        opened = self._open.get(session_id)
        if opened is None:
            raise NotFound("the browser was closed: open the page again with browser.open")
        try:
            if not opened.driven.running:
                await self._bury(session_id, opened)
                raise Died("the browser has died")
            async with opened.driven.lock:
                if fresh and opened.marks[-1:] != [page.mark]:
                    now = opened.marks[-1] if opened.marks else "none"
                    raise Conflict(
                        f"the page has changed since {page.mark}: use the references of {now}, or"
                        " read it again"
                    )
                return await self._command(session_id, opened, page.site, **command)
        except Died as error:
            if command["do"] not in _LOOKING or fresh:
                # Whether the click arrived is not known, and its number means nothing on a page
                # that is loaded anew.
                raise Died(f"{error.message}: open the page again with browser.open") from error
            visit = await self.visit(session_id, opened.run_id, urls.parse(page.url), opened.hosts)
            if command["do"] == "read" or visit.page is None:
                return visit
            return await self.act(session_id, visit.page, fresh=False, **command)

    async def _of(self, session_id: str, run_id: str) -> _Open:
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            opened = self._open.get(session_id)
            if opened is not None and opened.driven.running:
                opened.run_id = run_id
                return opened
            if opened is not None:
                await self._bury(session_id, opened)
            if len(self._open) + len(self._starting) >= self._most:
                raise LimitExceeded(
                    f"{self._most} browsers are open already: wait until another run has ended, or"
                    " cancel one"
                )
            self._starting.add(session_id)
            try:
                driven = await driver.start(
                    self._sandbox, self.resolver, self._installed, self._caps, self._page_s
                )
            finally:
                self._starting.discard(session_id)
            self._open[session_id] = _Open(driven, run_id)
            return self._open[session_id]

    async def _command(
        self, session_id: str, opened: _Open, before: Url, **command: Any
    ) -> "Visit":
        if opened.timer is not None:
            opened.timer.cancel()
        try:
            seen = await opened.driven.ask(**command)
        finally:
            if self._open.get(session_id) is opened:
                opened.timer = asyncio.get_running_loop().call_later(
                    self._idle_s, self._close_later, session_id
                )
            if not opened.driven.running and self._open.get(session_id) is opened:
                await self._bury(session_id, opened)
        site = _site(seen.url, before)
        blocked = {host: why for host, why in opened.driven.blocked.items() if host in seen.tried}
        if seen.error or command["do"] == "screenshot":
            return Visit(seen, site, blocked, None)
        mark = self._mark()
        page = BrowserPage(
            mark, session_id, seen.url[: urls.LONGEST], site, seen.title[:200], tuple(seen.items)
        )
        for old in opened.marks[:-1]:
            self._pages.pop(old, None)
        # The last but one stays known, so that a call with it hears that the page has changed and
        # not that there is none.
        opened.marks = [*opened.marks[-1:], mark]
        self._pages[mark] = page
        return Visit(seen, site, blocked, page)

    async def _bury(self, session_id: str, opened: _Open) -> None:
        """Put a browser away that has ended by itself, for the watchdog to tell of."""
        self.deaths.append(InUse(session_id, opened.run_id, opened.driven.pid, running=False))
        del self.deaths[:-_MOST_DEATHS]
        if self._open.get(session_id) is opened:
            await self._end(self._take(session_id))

    def _mark(self) -> str:
        while (mark := "".join(secrets.choice(_LETTERS) for _ in range(4))) in self._pages:
            pass
        return mark

    def run_ended(self, run_id: str) -> None:
        for session_id, opened in tuple(self._open.items()):
            if opened.run_id == run_id:
                self._close_later(session_id)

    async def end(self, session_id: str) -> None:
        """Close a session's browser, if it has one."""
        await self._end(self._take(session_id))

    def _close_later(self, session_id: str) -> None:
        task = asyncio.ensure_future(self._end(self._take(session_id)))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _take(self, session_id: str) -> _Open | None:
        """A session's browser, which nobody finds any more."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            if opened.timer is not None:
                opened.timer.cancel()
            for mark in opened.marks:
                self._pages.pop(mark, None)
        return opened

    async def _end(self, opened: _Open | None) -> None:
        if opened is not None:
            await opened.driven.close()

    async def close(self) -> None:
        for session_id in tuple(self._open):
            await self._end(self._take(session_id))
        await asyncio.gather(*self._closing, return_exceptions=True)


class Visit(Struct, frozen=True):
    """Result of one command. `blocked` are places the page wanted and did not get, and why."""

    seen: Seen
    site: Url
    blocked: dict[str, str]
    page: BrowserPage | None


def _site(url: str, before: Url) -> Url:
    """The web address of a page; for one without (about:blank, data:) the one it came from."""
    try:
        return urls.parse(url)
    except PalyraError:
        return before
