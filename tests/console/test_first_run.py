"""The first run, before anything is configured: the tour is really done, and the console is an app
that tells of questions.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console_world import person, say, serious
from tests.daemon import DaemonProcess, start

TOLD = """() => {
  window.told = [];
  let heard;
  window.first = new Promise((done) => { heard = done; });
  const keep = (title, options) => { window.told.push({title, ...options}); heard(); return Promise.resolve(); };
  ServiceWorkerRegistration.prototype.showNotification = keep;
  document.hasFocus = () => false;
}"""


KEPT = """async () => {
  while (!await caches.match("/")) await new Promise((done) => setTimeout(done, 20));
}"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """Nothing is configured: the built-in demo model answers."""
    with start(
        tmp_path_factory.mktemp("first"), config="[limits]\nrequests_per_second = 1000\n"
    ) as running:
        (running.workspace / "README.md").write_text("# A folder\n")
        yield running


def allow(page: Page) -> None:
    page.get_by_role("button", name="Approve", exact=True).click()


@pytest.mark.timeout(300)
def test_the_five_steps_of_the_tour_are_really_done(
    browser: Browser, daemon: DaemonProcess
) -> None:
    written = daemon.workspace / "palyra-tour.txt"
    with person(browser, daemon) as somebody:
        page = somebody.log_in()
        page.get_by_role("link", name="Take the tour").click()
        page.get_by_role("button", name="Start tour").click()
        page.get_by_role("button", name="Ask “What is in this folder?”").click()
        expect(page.get_by_role("article", name="Palyra").last).to_contain_text("README.md")
        page.get_by_role("button", name="Ask for a file").click()
        allow(page)
        expect(page.get_by_role("button", name="Undo", exact=True)).to_be_enabled()
        assert "I was here" in written.read_text()
        assert serious(page) == []
        page.get_by_role("button", name="Undo", exact=True).click()
        page.get_by_role("button", name="Ask again").click()
        assert not written.exists()
        started = daemon.get("/v1/status")["started_ms"]
        page.get_by_role("button", name="Kill Palyra now").click()
        expect(page.get_by_text("Palyra is back and continues where it was.")).to_be_visible()
        assert daemon.get("/v1/status")["started_ms"] != started
        allow(page)
        page.get_by_role("button", name="Verify journal").click()
        expect(page.get_by_text("the chain is intact")).to_be_visible()
        assert "I came back" in written.read_text()
        # A page that is closed and opened again knows how far it was.
        page.reload()
        expect(page.get_by_text("Done", exact=True).first).to_be_visible()
        expect(page.locator(".tour-steps .badge")).to_have_count(5)
        page.get_by_role("link", name="Add a model").click()
        expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def test_the_console_opens_as_an_app_while_the_daemon_is_away(
    browser: Browser, daemon: DaemonProcess
) -> None:
    with person(browser, daemon) as somebody:
        page = somebody.log_in()
        # The first visit is enough: the page itself is kept last.
        page.evaluate(KEPT)
        manifest = daemon.request("GET", "/manifest.webmanifest", token="").json
        assert {"192x192", "512x512"} <= {icon["sizes"] for icon in manifest["icons"]}
        for icon in manifest["icons"]:
            answer = daemon.request("GET", icon["src"], token="")
            assert (answer.status, answer.headers["content-type"], answer.body[:4]) == (
                200,
                "image/png",
                b"\x89PNG",
            )
        # Only files of the console are kept, nothing that the daemon says.
        kept = page.evaluate(
            """async () => (await Promise.all((await caches.keys()).map(async (name) =>
                (await (await caches.open(name)).keys()).map((each) => new URL(each.url).pathname)))).flat()"""
        )
        assert kept
        assert all(path == "/" or path.startswith("/assets/") for path in kept), kept
        port = daemon.port
        daemon.stop()
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("Cannot reach Palyra")
        daemon.restart(port=port)
        expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_question_is_told_to_who_looks_elsewhere_after_a_click_that_asked_for_it(
    browser: Browser, daemon: DaemonProcess
) -> None:
    with person(browser, daemon, permissions=["notifications"]) as somebody:
        page = somebody.log_in()
        page.evaluate("navigator.serviceWorker.ready.then(() => 1)")
        page.evaluate(TOLD)
        say(page, "write a file one.txt that says: one")
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Approvals").locator(".count")).to_have_text("1")
        assert page.evaluate("window.told") == [], "nobody asked to be told"
        page.get_by_role("button", name="Deny").click()
        page.get_by_role("link", name="Approvals").click()
        # The page knows of the first question and of its end: what it tells from here on is about
        # the second.
        expect(page.get_by_text("Nothing needs approval")).to_be_visible()
        page.get_by_label("Notify me").check()
        daemon.post(
            f"/v1/sessions/{daemon.post('/v1/sessions')['session_id']}/messages",
            {"text": "write a file two.txt that says: two"},
        )
        page.evaluate("window.first")
        (told,) = page.evaluate("window.told")
        assert told["title"] == "Palyra needs approval: write a file"
        assert "two.txt" in told["body"]
        page.get_by_label("Notify me").uncheck()
        page.get_by_role("button", name="Deny").click()
    daemon.post("/v1/stop")
