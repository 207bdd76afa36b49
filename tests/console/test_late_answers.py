"""An answer that is under way while something happens hides nothing of it: questions, news, and
what somebody writes meanwhile.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.console_quiet import open_in_time
from tests.console_scenes import asked
from tests.console_world import Person, person, say, settled
from tests.daemon import DaemonProcess, start

SCRIPT = {
    "*": [{"text": "Fine."}],
    "write": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "plan.txt", "content": "x"}}]},
        {"text": "It is settled."},
    ],
    "break": [{"fail": {"failure": "bad_request", "message": "no such thing"}}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("late")
    config = "[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n"
    with start(folder, config=config, script=SCRIPT) as running:
        yield running


@pytest.fixture
def somebody(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    # What passes a service worker is not held back reliably, and when it takes the page over is its
    # own affair.
    with person(browser, daemon, service_workers="block") as here:
        yield here
    daemon.post("/v1/stop")


class Held:
    """The first answer to such a question stays under way until it is let go. It says how it was
    before, or else what was said.
    """

    def __init__(self, page: Page, path: str, before: dict[str, Any] | None = None) -> None:
        self._page = page
        self._before = before
        self._routes: list[Route] = []
        self._answer: APIResponse | None = None
        page.route(re.compile(rf"{re.escape(path)}(\?|$)"), self._ask)

    def _ask(self, route: Route) -> None:
        if self._routes:
            route.continue_()
            return
        self._routes.append(route)
        if self._before is None:
            self._answer = route.fetch()

    def let_go(self) -> None:
        (route,) = self._routes
        if self._before is not None:
            route.fulfill(json=self._before)
            return
        deadline = time.monotonic() + 30
        while self._answer is None:
            assert time.monotonic() < deadline, "it was not answered"
            self._page.wait_for_timeout(20)
        route.fulfill(response=self._answer)


def test_a_question_that_comes_while_the_lists_are_under_way_is_counted(somebody: Person) -> None:
    daemon = somebody.daemon
    session, _ = daemon.run("hello")
    page = open_in_time(somebody, f"/#/timeline/{session}/view=entries")
    rows = page.get_by_role("listbox").get_by_role("option")
    expect(rows.first).to_be_visible()
    lists = Held(page, "/v1/approvals", {"approvals": [], "next": None})
    with page.expect_request("**/v1/approvals"):
        daemon.run("hello", session)
        page.clock.run_for(1_000)
    asked(daemon, "write", "", session)
    expect(rows.filter(has_text="Approval requested")).to_be_visible()
    # Now it would look again, and the first answer is not there yet.
    page.clock.run_for(1_000)
    lists.let_go()
    expect(page.get_by_role("link", name="Approvals").locator(".count")).to_have_text("1")


def test_entries_that_come_while_a_part_of_the_tape_is_under_way_are_shown(
    somebody: Person,
) -> None:
    daemon = somebody.daemon
    session, _ = daemon.run("hello")
    page = somebody.log_in(f"/#/timeline/{session}/view=entries")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    part = Held(page, "/entries", daemon.get(f"/v1/sessions/{session}/entries"))
    with page.expect_request("**/entries?*"):
        daemon.run("hello", session)
    daemon.run("hello", session)
    head = daemon.get(f"/v1/sessions/{session}")["head_seq"]
    expect(page.get_by_role("listbox", name=f"{head} entries")).to_be_visible()
    part.let_go()
    expect(page.locator(f"#entry-{head}")).to_contain_text(re.compile("Answer|Run failed"))


def test_a_page_that_was_left_writes_no_address_over_the_one_gone_to(somebody: Person) -> None:
    session, _ = somebody.daemon.run("hello")
    page = open_in_time(somebody, f"/#/timeline/{session}")
    expect(page.get_by_text("Drag to select")).to_be_visible()
    page.get_by_role("searchbox", name="Search entries").fill("hello")
    # As in the moment of a step back that no page has heard of yet.
    page.evaluate("history.pushState(null, '', '#/approvals')")
    page.clock.run_for(1_000)
    assert page.evaluate("location.hash") == "#/approvals"


def test_news_that_comes_while_the_bell_is_under_way_rings_it(somebody: Person) -> None:
    daemon = somebody.daemon
    page, other = somebody.log_in("/#/settings"), somebody.tab("/#/settings")
    bells = [each.get_by_role("button", name="Notices", exact=True) for each in (page, other)]
    for bell in bells:
        expect(bell).to_be_visible()
    held = Held(page, "/v1/notices", {"notices": [], "unread": 0})
    with page.expect_request("**/v1/notices?*"):
        fail(daemon, "one")
    fail(daemon, "two")
    # The first tab tells the other one: so it knows itself.
    expect(other.get_by_role("button", name="Notices 2 unread")).to_be_visible()
    held.let_go()
    expect(page.get_by_role("button", name="Notices 2 unread")).to_be_visible()


def test_what_is_written_while_a_message_is_under_way_is_the_next_one(somebody: Person) -> None:
    page = somebody.log_in(f"/#/chat/{somebody.daemon.run('hello')[0]}")
    said = page.get_by_role("article", name="You")
    expect(said).to_have_count(1)
    first = Held(page, "/messages")
    say(page, "one")
    expect(said).to_have_count(2)
    say(page, "two")
    box = page.get_by_role("textbox", name="Message")
    box.fill("three")
    first.let_go()
    expect(said).to_have_text([re.compile(f"^{words}") for words in ("hello", "one", "two")])
    expect(box).to_have_value("three")


def test_what_is_written_while_a_file_is_under_way_stays(somebody: Person) -> None:
    page = somebody.log_in(f"/#/chat/{somebody.daemon.run('hello')[0]}")
    expect(page.get_by_role("article", name="You")).to_have_count(1)
    first = Held(page, "/files")
    for name in ("a.txt", "b.txt"):
        page.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "text/plain", "buffer": b"x"}
        )
    box, attached = (
        page.get_by_role("textbox", name="Message"),
        page.locator(".composer .attached li"),
    )
    expect(attached).to_have_count(1)
    box.fill("look at both")
    first.let_go()
    expect(attached).to_have_count(2)
    expect(box).to_have_value("look at both")


def test_what_was_found_for_other_words_is_not_shown_for_these(somebody: Person) -> None:
    page = somebody.log_in()
    old = {
        "session_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "seq": 1,
        "time_ms": 1,
        "title": "of before",
        "snippet": "of before",
    }
    first = Held(page, "/v1/sessions/search", {"found": [old]})
    box = page.get_by_role("searchbox", name="Search sessions")
    with page.expect_request("**/v1/sessions/search?q=before"):
        box.fill("before")
    with page.expect_response("**/v1/sessions/search?q=nobody%20said%20this"):
        box.fill("nobody said this")
    expect(page.get_by_text("No sessions match")).to_be_visible()
    with page.expect_event("requestfinished", lambda request: request.url.endswith("q=before")):
        first.let_go()
    settled(page)
    expect(page.get_by_role("navigation", name="Sessions")).not_to_contain_text("of before")


def test_what_was_found_in_memory_for_words_is_not_shown_when_they_are_gone(
    somebody: Person,
) -> None:
    somebody.daemon.post("/v1/memory", {"text": "The office is in Brno"})
    page = somebody.log_in("/#/memory")
    expect(page.locator(".remembered")).to_contain_text("Brno")
    first = Held(page, "/v1/memory/search")
    box = page.get_by_role("searchbox", name="Search memory")
    with page.expect_request("**/v1/memory/search?*"):
        box.fill("office")
    box.fill("")
    page.get_by_role("button", name="Forgotten").click()
    expect(page.get_by_text("No forgotten memories.")).to_be_visible()
    with page.expect_event("requestfinished", lambda request: "/search?" in request.url):
        first.let_go()
    settled(page)
    expect(page.locator(".remembered")).to_have_count(0)


def test_what_was_archived_before_is_not_shown_when_it_is_known_anew(somebody: Person) -> None:
    page = somebody.log_in()
    old = {**somebody.daemon.post("/v1/sessions"), "title": "of before"}
    first = Held(page, "/v1/sessions?archived=true&limit=100", {"sessions": [old], "next": None})
    with page.expect_request("**/v1/sessions?archived=true*"):
        page.get_by_role("button", name="Archived", exact=True).click()
    with page.expect_response("**/v1/sessions?archived=true*"):
        somebody.daemon.run("hello")
    with page.expect_event("requestfinished", lambda request: "archived=true" in request.url):
        first.let_go()
    settled(page)
    expect(page.get_by_role("navigation", name="Sessions")).not_to_contain_text("of before")


def fail(daemon: DaemonProcess, name: str) -> None:
    made = daemon.post("/v1/schedules", {"when": "every 5h", "text": "break", "name": name})[
        "schedule"
    ]["schedule_id"]
    daemon.post(f"/v1/schedules/{made}/run")


# Each answer comes late, by a time of its own; what then moves by itself is kept with how far.
_LATE = """
const asks = window.fetch;
let number = 0;
window.fetch = async (...what) => {
  const answer = await asks(...what);
  await new Promise((done) => setTimeout(done, 40 + ((number++ * 37) % 160)));
  return answer;
};
window.moved = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.moved.push([each.value, each.sources.map((it) => it.node?.textContent)]);
}).observe({type: "layout-shift", buffered: true});
"""


@pytest.mark.parametrize(
    ("path", "last"), [("usage", "Add budget"), ("schedules/new", "in the next 30 days")]
)
def test_nothing_moves_away_under_the_pointer_while_a_page_loads(
    somebody: Person, path: str, last: str
) -> None:
    somebody.daemon.run("hello")
    somebody.daemon.request("PUT", "/v1/budgets/month", {"every": "month", "tokens": 1_000_000})
    somebody.context.add_init_script(_LATE)
    page = somebody.log_in("/#/tour")
    page.evaluate("window.moved.length = 0")
    page.goto(f"{somebody.daemon.url}/#/{path}")
    expect(page.get_by_text(last)).to_be_visible()
    settled(page)
    assert sum(share for share, _ in page.evaluate("window.moved")) < 0.01, page.evaluate(
        "window.moved"
    )
