"""The console in Firefox and in WebKit: in, a message and its answer, an approval, every page, a formula and a
diagram, and nothing that the browser refuses. Skipped where a browser is missing.
"""

from collections.abc import Iterator

import pytest

from tests.console.conftest import script
from tests.console.test_access import PAGES
from tests.console.test_content import DIAGRAM
from tests.daemon import DaemonProcess, start
from tests.other_browsers import Tab, firefox, firefox_program, webkit, webkit_program

DRAWN = (
    "!!document.querySelector('h1')?.textContent && !document.body.innerText.includes('Loading…')"
)
BROWSERS = {"firefox": (firefox_program, firefox), "webkit": (webkit_program, webkit)}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("daemon")
    formula = {"formula": [{"text": "So $\\frac{1}{2}$ it is."}], "diagram": [{"text": DIAGRAM}]}
    with start(
        folder,
        config="[limits]\nrequests_per_second = 1000\n",
        script={**script(folder), **formula},
    ) as running:
        yield running


@pytest.fixture(scope="module", params=BROWSERS)
def tab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, daemon: DaemonProcess
) -> Iterator[Tab]:
    program, browser = BROWSERS[request.param]
    if not program():
        pytest.skip(f"no {request.param}: run `.venv/bin/python scripts/other_browsers.py`")
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        opened.resize(1280, 860)
        opened.go(daemon.post("/v1/login-links")["url"])
        opened.says("What can I help with?")
        yield opened


@pytest.fixture(autouse=True)
def without_complaints(tab: Tab) -> Iterator[None]:
    yield
    assert tab.complaints() == []


def say(tab: Tab, text: str) -> None:
    tab.click("textarea[aria-label=Message]")
    tab.type(text + "\ue007")


def test_a_message_is_answered_and_a_change_is_approved(tab: Tab, daemon: DaemonProcess) -> None:
    say(tab, "hello")
    tab.says("from the script")
    say(tab, "write")
    tab.says("Approve file write?")
    # In two columns or in one, as wide as the window is.
    tab.until("/one[^]*two/.test(document.querySelector('.diff')?.innerText)")
    tab.click("button.yes:not(:disabled)", "Approve")
    tab.says("It is settled.")
    plan = daemon.workspace / "plan.txt"
    assert plan.read_text() == "one\ntwo\n"
    plan.unlink()  # The next browser writes it, too.


def test_every_page_is_drawn(tab: Tab, daemon: DaemonProcess) -> None:
    session, _ = daemon.run("hello")
    for page in (*PAGES, "schedules", "learning", f"timeline/{session}"):
        tab.go(f"{daemon.url}/#/{page}")
        tab.until(DRAWN)
        wide = tab.evaluate("document.documentElement.scrollWidth")
        assert wide <= 1280, page


def test_formulas_and_diagrams_are_drawn(tab: Tab, daemon: DaemonProcess) -> None:
    tab.go(f"{daemon.url}/#/chat")
    say(tab, "formula")
    tab.until("!!document.querySelector('.reply mfrac')")
    say(tab, "diagram")
    # The frame is somebody else's: only its size can be seen, which it tells when it has drawn.
    tab.until(
        "!['', '222'].includes(document.querySelector('iframe[title=Diagram]')?.height ?? '')"
    )
