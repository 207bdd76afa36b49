"""Getting in and out of the console, on every page and every width, and what happens when the
daemon is away.
"""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, read, say, serious, settled
from tests.daemon import DaemonProcess

PAGES = (
    "chat",
    "approvals",
    "timeline",
    "memory",
    "channels",
    "connections",
    "policies",
    "security",
    "skills",
    "usage",
    "journal",
    "health",
    "settings",
)


def test_a_link_logs_in_once_and_lands_in_the_console(somebody: Person) -> None:
    link = somebody.daemon.post("/v1/login-links")["url"].removeprefix(somebody.daemon.url)
    page = somebody.tab(link)
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    assert page.url.rstrip("/#") == somebody.daemon.url
    again = somebody.tab(link)
    expect(again.get_by_role("alert")).to_contain_text("already used")


def test_who_is_not_logged_in_is_told_how_to_and_a_pasted_link_will_do(somebody: Person) -> None:
    page = somebody.tab("/#/settings")
    expect(page.get_by_role("heading", name="Log in to Palyra")).to_be_visible()
    expect(page.get_by_text("palyra login")).to_be_visible()
    assert serious(page) == []
    page.get_by_label("Login link").fill("javascript:alert(1)")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not a login link")
    page.get_by_label("Login link").fill(somebody.daemon.post("/v1/login-links")["url"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()


def test_logging_out_logs_every_tab_out(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    other = somebody.tab("/#/chat")
    expect(other.get_by_role("textbox", name="Message")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in to Palyra")).to_be_visible()
    expect(other.get_by_role("heading", name="Log in to Palyra")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_fit_for_everyone_also_on_a_phone(
    browser: Browser, daemon: DaemonProcess, scheme: str
) -> None:
    daemon.run("hello")
    with person(
        browser, daemon, color_scheme=scheme, viewport={"width": 360, "height": 740}
    ) as somebody:
        page = somebody.log_in()
        say(page, "code")
        expect(page.locator(".code")).to_be_visible()
        assert serious(page) == []
        session = page.url.rpartition("/")[2]
        for name in (*PAGES, f"timeline/{session}"):
            page.goto(f"{daemon.url}/#/{name}")
            settled(page)
            assert serious(page) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360, name


def test_nothing_moves_for_who_wants_no_motion(browser: Browser, daemon: DaemonProcess) -> None:
    with person(browser, daemon, reduced_motion="reduce") as somebody:
        page = somebody.log_in()
        say(page, "never")
        expect(page.locator(".working i").first).to_be_visible()
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.working i')).animationName")
            == "none"
        )
        daemon.post("/v1/stop")


def test_the_theme_is_chosen_and_kept(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("button", name="Dark").click()
    page.reload()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 19, 21)"


def test_the_timeline_shows_every_entry_and_leads_back(somebody: Person) -> None:
    session, _ = somebody.daemon.run("hello")
    page = somebody.log_in(f"/#/timeline/{session}/view=entries")
    rows = page.get_by_role("listbox").get_by_role("option")
    expect(rows.first).to_contain_text("Session created")
    rows.filter(has_text="Model reply").click()
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator(".tape-entry")).to_contain_text("model.replied")
    page.get_by_role("button", name="Rewind to here…").click()
    expect(page.get_by_role("button", name="Rewind session")).to_be_visible()
    page.get_by_role("button", name="Fork…").click()
    page.get_by_role("button", name="Branch session").click()
    expect(page.get_by_text("Branched from another session.")).to_be_visible()


def test_something_is_remembered_found_and_forgotten(somebody: Person) -> None:
    page = somebody.log_in("/#/memory")
    page.get_by_label("New memory").fill("The owner drinks green tea")
    page.get_by_role("button", name="Add memory").click()
    page.get_by_role("searchbox", name="Search memory").fill("green tea")
    expect(page.locator(".remembered")).to_contain_text(re.compile(r"green tea.*Score", re.DOTALL))
    page.reload()
    expect(page.get_by_role("searchbox", name="Search memory")).to_have_value("green tea")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_text("No results.")).to_be_visible()


def test_tabs_go_on_by_themselves_after_the_daemon_was_killed(
    browser: Browser, daemon: DaemonProcess
) -> None:
    with person(browser, daemon) as somebody:
        page = somebody.log_in()
        say(page, "slow")
        expect(page.get_by_text("The beginning is")).to_be_visible()
        tabs = [page, *(somebody.tab(page.url.removeprefix(daemon.url)) for _ in range(2))]
        port = daemon.port
        for tab in tabs:
            expect(tab.locator(".meter .badge")).to_have_text("Working")
        daemon.kill()
        for tab in tabs:
            expect(tab.get_by_role("alert")).to_contain_text("Cannot reach Palyra")
        (daemon.home.parent / "slow").touch()
        daemon.restart(port=port)
        for tab in tabs:
            expect(tab.get_by_text("The beginning is here, and the end.")).to_be_visible()
            expect(tab.get_by_role("alert")).to_have_count(0)
            expect(tab.get_by_role("article", name="Palyra")).to_have_count(1)
            expect(tab.locator(".meter .badge")).to_have_text("Done")
        assert len({read(tab.get_by_role("log")) for tab in tabs}) == 1, "every tab shows the same"
        say(tabs[1], "hello")
        for tab in tabs:
            expect(tab.get_by_role("article", name="Palyra").last.locator("strong")).to_have_text(
                "the script"
            )
