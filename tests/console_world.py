"""The console in a real Chromium, against a real daemon, used as a person would. What a page throws
or refuses fails the test.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

from palyra.api.console import FOLDER
from palyra.tools.browser import discovery
from palyra.tools.browser.discovery import Installed
from tests.daemon import DaemonProcess

AXE = Path(__file__).parent.parent / "console" / "node_modules" / "axe-core" / "axe.min.js"
# A bound that only ends a failed test: a machine with other work to do needs its time.
WAIT_MS = 60_000
_LOADS_S = 5
# What pages have asked for and not been given yet.
_asked: WeakKeyDictionary[BrowserContext, set[Request]] = WeakKeyDictionary()
_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
_WATCH = """(it, words) => {
  it.said = new Promise((done) => new MutationObserver(() => { if (it.textContent.includes(words)) done(); })
    .observe(it, {childList: true, characterData: true, subtree: true}));
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    found = discovery.find(os.environ)
    if not isinstance(found, Installed):
        pytest.fail(f"{found.what}: run `.venv/bin/python scripts/chromium.py` ({found.fix})")
    if not (FOLDER / "index.html").exists():
        pytest.fail("the console is not built: run `make console`")
    if not AXE.exists():
        pytest.fail("axe is not installed: remove src/palyra/console and run `make console`")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody at a browser: a context of their own, and the pages (tabs) they open."""

    def __init__(self, context: BrowserContext, daemon: DaemonProcess) -> None:
        self.context = context
        self.daemon = daemon
        self.complaints: list[str] = []
        context.set_default_timeout(WAIT_MS)
        asked = _asked[context] = set()
        context.on(
            "request",
            lambda request: asked.add(request) if request.resource_type == "fetch" else None,
        )
        context.on("requestfinished", lambda request: asked.discard(request))
        context.on("requestfailed", lambda request: asked.discard(request))

    def tab(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._said)
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.goto(self.daemon.url + path)
        return page

    def log_in(self, path: str = "") -> Page:
        """Through the link that `palyra login` prints."""
        link = self.daemon.post("/v1/login-links")["url"]
        page = self.tab(link.removeprefix(self.daemon.url))
        page.get_by_role("textbox", name="Message").wait_for()
        if path:
            page.goto(self.daemon.url + path)
        settled(page)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        text = message.text
        # What the browser itself says of connections that a test has cut.
        if (
            message.type == "error"
            and "Failed to load resource" not in text
            and "WebSocket connection to" not in text
        ):
            self.complaints.append(text)


@contextmanager
def person(browser: Browser, daemon: DaemonProcess, **more: Any) -> Iterator[Person]:
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **more})
    try:
        somebody = Person(context, daemon)
        yield somebody
        assert somebody.complaints == []
    finally:
        context.close()


def say(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    box.fill(text)
    box.press("Enter")


def read(shown: Locator) -> str:
    """What somebody can read there: a page that is still being loaded shows nothing."""
    expect(shown).to_be_visible()
    return shown.inner_text()


def file_text(path: Path) -> str:
    """What a call has written there, once it has: an answer is recorded before its tool runs."""
    until = time.monotonic() + WAIT_MS / 1000
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return path.read_text()


def settled(page: Page) -> None:
    """The view that somebody went to is drawn, with what it loads: just after the way there, the
    one before it is.

    Until then things move, and what is pressed here and let go there was not clicked.
    """
    page.evaluate(_FRAMES)
    expect(page.get_by_role("heading", level=1).first).to_be_attached()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    end, quiet = time.monotonic() + _LOADS_S, 0
    while quiet < 2 and time.monotonic() < end:  # What a test holds back is not waited for.
        page.evaluate(_FRAMES)
        quiet = 0 if _asked[page.context] else quiet + 1


def click_and_see(button: Locator, words: str) -> None:
    """Click what then says something for a moment, however short that is for who looks."""
    button.evaluate(_WATCH, words)
    button.click()
    button.evaluate("(it) => it.said")


def serious(page: Page) -> list[str]:
    """What axe finds that keeps somebody out, with where it stands."""
    # Through the debugger: the page's own content policy lets no script in.
    page.evaluate(AXE.read_text() + "\n;0")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
