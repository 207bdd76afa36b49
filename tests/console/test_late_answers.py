"""An answer that was under way when something happened does not hide it: the lists and the bell are asked for once more."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console_quiet import open_in_time
from tests.console_scenes import asked
from tests.console_world import Person
from tests.daemon import DaemonProcess, start

SCRIPT = {
    "*": [{"text": "Fine."}],
    "write": [{"calls": [{"name": "fs.write", "arguments": {"path": "plan.txt", "content": "x"}}]}, {"text": "It is settled."}],
    "break": [{"fail": {"failure": "bad_request", "message": "no such thing"}}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("late")
    config = "[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n"
    with start(folder, config=config, script=SCRIPT) as running:
        yield running


class Held:
    """The first answer to such a question stays under way until it is let go, and says how it was before."""

    def __init__(self, page: Page, path: str, before: dict[str, Any]) -> None:
        self._before = before
        self._route: Route | None = None
        page.route(re.compile(rf"{re.escape(path)}(\?|$)"), self._ask)

    def _ask(self, route: Route) -> None:
        if self._route is None:
            self._route = route
        else:
            route.continue_()

    def let_go(self) -> None:
        assert self._route is not None
        self._route.fulfill(json=self._before)


def test_a_question_that_comes_while_the_lists_are_under_way_is_counted(somebody: Person) -> None:
    daemon = somebody.daemon
    session, _ = daemon.run("hello")
    page = open_in_time(somebody, f"/#/timeline/{session}")
    expect(page.get_by_role("option").first).to_be_visible()
    lists = Held(page, "/v1/approvals", {"approvals": [], "next": None})
    with page.expect_request("**/v1/approvals"):
        daemon.run("hello", session)
        page.clock.run_for(1_000)
    asked(daemon, "write", "", session)
    expect(page.get_by_role("option").filter(has_text="you were asked")).to_be_visible()
    # Now it would look again, and the first answer is not there yet.
    page.clock.run_for(1_000)
    lists.let_go()
    expect(page.get_by_role("link", name="Approvals").locator(".count")).to_have_text("1")


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


def fail(daemon: DaemonProcess, name: str) -> None:
    made = daemon.post("/v1/schedules", {"when": "every 5h", "text": "break", "name": name})["schedule"]["schedule_id"]
    daemon.post(f"/v1/schedules/{made}/run")
