"""The bell: what was told without asking, on every page, read once for all tabs, and in the browser
if somebody wants that.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import console_world
from tests.console_world import Person, serious
from tests.daemon import DaemonProcess, start
from tests.learning_at_work import learned

ELSEWHERE = """() => {
  window.told = [];
  let heard;
  window.first = new Promise((done) => { heard = done; });
  const keep = (title, options) => { window.told.push({title, ...options}); heard(); return Promise.resolve(); };
  ServiceWorkerRegistration.prototype.showNotification = keep;
  document.hasFocus = () => false;
}"""
SCRIPT = {
    "*": [{"text": "Fine."}],
    "break": [{"fail": {"failure": "bad_request", "message": "no such thing"}}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("notices")
    # What is said is read when the test says so, and not in between by itself: who reads it second
    # finds nothing new.
    config = "[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"
    with start(folder, config=config, script=SCRIPT) as running:
        yield running


@pytest.fixture
def reader(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    daemon.post("/v1/notices/read")
    with console_world.person(browser, daemon) as somebody:
        yield somebody


def fail(daemon: DaemonProcess, name: str) -> str:
    """A schedule whose run fails, which is told."""
    made = daemon.post("/v1/schedules", {"when": "every 5h", "text": "break", "name": name})[
        "schedule"
    ]["schedule_id"]
    daemon.post(f"/v1/schedules/{made}/run")
    return str(made)


def bell(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Notices")).click()


def test_news_comes_to_the_bell_of_every_page_and_leads_to_what_it_is_about(reader: Person) -> None:
    page = reader.log_in("/#/settings")
    expect(page.get_by_role("button", name="Notices", exact=True)).to_be_visible()
    schedule = fail(reader.daemon, "nightly report")
    expect(page.get_by_role("button", name="Notices 1 unread")).to_be_visible()
    bell(page)
    panel = page.get_by_role("dialog", name="Notices")
    notice = panel.get_by_role("listitem").filter(has_text="nightly report failed")
    expect(notice).to_contain_text("Schedule")
    expect(notice).to_contain_text("unread")
    assert serious(page) == []
    notice.get_by_role("link", name="Open", exact=True).click()
    expect(page.get_by_role("heading", name="nightly report")).to_be_visible()
    expect(panel).to_have_count(0)
    assert page.url.endswith(f"#/schedules/{schedule}")
    expect(page.get_by_role("button", name="Notices", exact=True)).to_be_visible()
    assert reader.daemon.get("/v1/notices?unread=true")["notices"] == []


def test_what_was_learned_at_once_is_told_and_can_be_taken_back_from_there(reader: Person) -> None:
    page = reader.log_in()
    (candidate,) = learned(reader.daemon, "Remember that my locker is number 17.")
    expect(page.get_by_role("button", name="Notices 1 unread")).to_be_visible()
    bell(page)
    page.get_by_role("dialog", name="Notices").get_by_role(
        "link", name="Open", exact=True
    ).first.click()
    shown = page.get_by_role("article", name="Candidate")
    expect(shown).to_contain_text("Automatic")
    shown.get_by_role("button", name="Roll back…").click()
    shown.get_by_role("button", name="Roll back").click()
    expect(shown).to_contain_text("Rolled back")
    assert (
        reader.daemon.get(f"/v1/candidates/{candidate['candidate_id']}")["candidate"]["state"]
        == "rolled_back"
    )


def test_what_is_read_in_one_tab_is_read_in_the_other(reader: Person) -> None:
    first = reader.log_in()
    second = reader.tab("/#/memory")
    for name in ("one", "two"):
        fail(reader.daemon, name)
    for page in (first, second):
        expect(page.get_by_role("button", name="Notices 2 unread")).to_be_visible()
    bell(first)
    first.get_by_role("dialog", name="Notices").get_by_role(
        "button", name="Mark as read"
    ).first.click()
    for page in (first, second):
        expect(page.get_by_role("button", name="Notices 1 unread")).to_be_visible()
    first.get_by_role("button", name="Mark all as read").click()
    for page in (first, second):
        expect(page.get_by_role("button", name="Notices", exact=True)).to_be_visible()


def test_who_looks_elsewhere_is_told_by_the_browser_only_after_asking_for_it(
    browser: Browser, daemon: DaemonProcess
) -> None:
    with console_world.person(browser, daemon, permissions=["notifications"]) as somebody:
        # What it would be told while it is not listening yet, it is told later.
        with somebody.context.expect_event(
            "response", lambda response: urlsplit(response.url).path == "/v1/events"
        ):
            page = somebody.log_in()
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.evaluate(ELSEWHERE)
        before = daemon.get("/v1/notices")["unread"]
        fail(daemon, "untold")
        expect(page.get_by_role("button", name=f"Notices {before + 1} unread")).to_be_visible()
        assert page.evaluate("window.told") == []
        bell(page)
        page.get_by_label("Notify me when Palyra needs approval or has news").check()
        schedule = fail(daemon, "told")
        page.evaluate("window.first")
        (told,) = page.evaluate("window.told")
        assert (told["title"], told["data"]) == (
            "Palyra: schedule",
            {"page": f"schedules/{schedule}"},
        )
        assert told["body"].startswith("told failed")


def test_the_bell_is_worked_with_the_keyboard_and_closes_behind_nobody(reader: Person) -> None:
    page = reader.log_in()
    fail(reader.daemon, "by keys")
    button = page.get_by_role("button", name="Notices 1 unread")
    button.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="Notices")
    expect(panel).to_be_focused()
    page.keyboard.press("Tab")
    expect(panel.get_by_role("button", name="Mark all as read")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel).to_be_visible()
    page.get_by_role("textbox", name="Message").click()
    expect(panel).to_have_count(0)


def test_older_ones_are_fetched_when_they_are_looked_for(reader: Person) -> None:
    for number in range(31):
        fail(reader.daemon, f"number {number}")
    # All of them were told: whatever comes later brings the newest ones back.
    deadline = time.monotonic() + 60
    while reader.daemon.get("/v1/notices")["unread"] < 31:
        assert time.monotonic() < deadline, "not all were told"
        time.sleep(0.05)  # Another process: there is nothing to wait on but the clock.
    page = reader.log_in()
    bell(page)
    listed = page.get_by_role("dialog", name="Notices").get_by_role("listitem")
    expect(listed).to_have_count(30)
    page.get_by_role("button", name="Show older").click()
    expect(listed.filter(has_text="number 0 failed")).to_have_count(1)
