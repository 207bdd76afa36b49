"""The daemon's health in the console: incidents with what was tried, background tasks, how watchful
it is, and the doctor.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console.test_keyboard import choose
from tests.console_health import NEVER_DONE, incident, task
from tests.console_quiet import asks_by_itself, open_in_time
from tests.console_world import Person, person, serious
from tests.daemon import DaemonProcess, start

CONFIG = """[limits]
requests_per_second = 1000
[healing]
mode = "observe_only"
every_ms = 1000
"""
# Larger than the number of any process there can be: one that is free now may be given out again at
# any moment.
NOBODY = (1 << 22) + 1
SCRIPT = {"*": [{"text": "Hello."}]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with start(tmp_path_factory.mktemp("health"), config=CONFIG, script=SCRIPT) as running:
        yield running


def spoil(daemon: DaemonProcess, name: str) -> Path:
    """A half-written file of a process that is gone: the watchdog sees it at its next look."""
    left = daemon.home / f".{name}.{NOBODY}.new"
    left.write_text("half")
    return left


def tasks(page: Page) -> Locator:
    return page.get_by_role("table", name="Tasks", exact=True).locator("tbody").get_by_role("row")


def test_what_is_looked_at_is_shown_with_how_it_is(somebody: Person) -> None:
    page = somebody.log_in("/#/health")
    fine = page.get_by_role("list", name="Passed")
    expect(fine.get_by_role("listitem").first).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Deep check").click()
    expect(fine).to_contain_text("journal")


def test_what_is_wrong_comes_first_and_is_mended_by_a_click(somebody: Person) -> None:
    daemon = somebody.daemon
    daemon.home.chmod(0o755)
    page = somebody.log_in("/#/health")
    bad = page.get_by_role("list", name="Problems")
    expect(bad).to_contain_text("others can read")
    expect(page.locator(".verdict")).to_contain_text("problem")
    assert serious(page) == []
    bad.get_by_role("button", name="Repair").first.click()
    expect(page.get_by_role("list", name="Problems")).to_have_count(0)
    assert daemon.home.stat().st_mode & 0o077 == 0


def test_an_incident_comes_by_itself_is_mended_when_told_to_and_later_by_itself(
    somebody: Person,
) -> None:
    daemon = somebody.daemon
    page = somebody.log_in("/#/health")
    part = page.get_by_role("region", name="Incidents")
    expect(part.get_by_text("No open incidents.")).to_be_visible()
    left = spoil(daemon, "owner.token")
    found = part.get_by_role("list", name="Incidents").locator("> li")
    expect(found).to_contain_text("Machine")
    expect(found).to_contain_text("Info")
    assert left.exists(), "it was only to be told"
    assert serious(page) == []
    found.get_by_role("button", name="Repair now").click()
    expect(part.get_by_text("No open incidents.")).to_be_visible()
    assert not left.exists()
    part.get_by_role("button", name="All").click()
    expect(found.first).to_contain_text("Closed")
    found.first.get_by_text("Repair attempts (").click()
    expect(found.first.get_by_role("list", name="Repair attempts")).to_contain_text("Done")
    # From now on nobody has to be there.
    watchful = page.get_by_role("region", name="Watchdog", exact=True)
    watchful.get_by_role("button", name="Auto-repair").click()
    expect(watchful).to_contain_text("repairs what is safe to repair")
    assert 'mode = "auto"' in (daemon.home / "config.toml").read_text()
    again = spoil(daemon, "owner.token")
    expect(found).to_have_count(2)
    expect(found.first).to_contain_text("Closed")
    assert not again.exists()
    watchful.get_by_role("button", name="Notify only").click()
    expect(watchful).to_contain_text("until you ask")


def test_what_was_tried_in_vain_is_said_to_be_the_owners_to_decide(somebody: Person) -> None:
    tried = [
        {"remedy": "reconnect", "result": "failed", "time_ms": at, "detail": "no answer"}
        for at in (1, 2, 3)
    ]
    incident(
        somebody.daemon,
        "the chat does not answer",
        fix="look at its settings",
        severity="critical",
        tried=[
            *tried,
            {
                "remedy": "escalate",
                "result": "done",
                "time_ms": 4,
                "detail": "3 attempts did not help",
            },
        ],
    )
    page = somebody.log_in("/#/health")
    found = (
        page.get_by_role("list", name="Incidents")
        .locator("> li")
        .filter(has_text="the chat does not answer")
    )
    expect(found).to_contain_text("Critical")
    expect(found).to_contain_text("Fix: look at its settings")
    expect(found).to_contain_text("Needs you")
    expect(found.get_by_role("list", name="Repair attempts").get_by_role("listitem")).to_have_count(
        4
    )
    expect(found.get_by_role("button", name="Repair now")).to_have_count(0)


def test_what_is_watched_is_told_with_its_limits_and_can_be_switched_off(somebody: Person) -> None:
    page = somebody.log_in("/#/health")
    watchful = page.get_by_role("region", name="Watchdog", exact=True)
    expect(watchful).to_contain_text("It checks every 1 s")
    watchful.get_by_text("Checks and repairs").click()
    remedies = watchful.get_by_role("table", name="Remedies")
    expect(remedies.get_by_role("row").filter(has_text="Approval")).to_contain_text(
        "unanswered for 10 min"
    )
    assert serious(page) == []
    watchful.get_by_role("button", name="Off").click()
    expect(watchful).to_contain_text("Palyra checks nothing.")
    assert somebody.daemon.get("/v1/healing")["settings"]["mode"] == "disabled"
    watchful.get_by_role("button", name="Notify only").click()
    expect(watchful).to_contain_text("notifies you once")


def test_tasks_are_held_let_go_cancelled_and_tried_again(somebody: Person) -> None:
    daemon = somebody.daemon
    waiting = task(daemon, "queued", payload={"what": "rake the leaves"})
    broken = task(daemon, "failed", error="the rake is gone", attempts=3)
    page = somebody.log_in("/#/health")
    page.get_by_label("Kind", exact=True).select_option(NEVER_DONE)
    expect(tasks(page)).to_have_count(2)
    row = tasks(page).filter(has_text="Queued")
    row.get_by_text("Details").click()
    expect(row).to_contain_text("rake the leaves")
    assert serious(page) == []
    row.get_by_role("button", name="Pause").click()
    held = tasks(page).filter(has_text="Paused")
    expect(held).to_contain_text(waiting)
    held.get_by_role("button", name="Resume").click()
    row.get_by_role("button", name="Cancel…").click()
    row.get_by_role("button", name="Cancel task").click()
    expect(tasks(page).filter(has_text=waiting)).to_contain_text("Cancelled")
    assert daemon.get(f"/v1/tasks/{waiting}")["state"] == "cancelled"
    failed = tasks(page).filter(has_text="the rake is gone")
    expect(failed.locator("td[data-label='Attempts']")).to_have_text("3")
    failed.get_by_role("button", name="Retry").click()
    expect(tasks(page).filter(has_text=broken)).to_contain_text("Queued")
    page.get_by_label("State", exact=True).select_option("cancelled")
    expect(tasks(page)).to_have_count(1)
    assert recorded(daemon) == ["paused", "resumed", "cancelled", "retried"]


def recorded(daemon: DaemonProcess) -> list[str]:
    """What the journal says was done about tasks."""
    entries = [
        json.loads(line) for line in daemon.request("GET", "/v1/journal/export").body.splitlines()
    ]
    changes = [entry["event"] for entry in entries if entry["kind"] == "admin.changed"]
    return [change["action"] for change in changes if change["what"] == "task"]


def test_a_kind_of_task_is_held_and_begun_again(somebody: Person) -> None:
    daemon = somebody.daemon
    task(daemon, "queued", kind="test.another")
    page = somebody.log_in("/#/health")
    row = (
        page.get_by_role("table", name="Kinds of tasks")
        .get_by_role("row")
        .filter(has_text="test.another")
    )
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused")
    assert {
        each["kind"]: each.get("paused", False) for each in daemon.get("/v1/tasks/kinds")["kinds"]
    }["test.another"] is True
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_role("button", name="Pause")).to_be_visible()


def test_what_changes_elsewhere_shows_and_nothing_is_asked_for_until_then(somebody: Person) -> None:
    daemon = somebody.daemon
    waiting = task(daemon, "queued", kind="test.elsewhere")
    page = open_in_time(somebody, "/#/health")
    row = (
        page.get_by_role("table", name="Kinds of tasks")
        .get_by_role("row")
        .filter(has_text="test.elsewhere")
    )
    expect(row.locator("td[data-label='Queued']")).to_have_text("1")
    expect(page.get_by_role("list", name="Passed")).to_be_visible()
    # The load alone changes all the time.
    assert set(asks_by_itself(page)) <= {"/v1/load"}
    daemon.post(f"/v1/tasks/{waiting}", {"verb": "pause"})
    expect(row.locator("td[data-label='Paused']")).to_have_text("1")
    watchful = page.get_by_role("region", name="Watchdog", exact=True)
    daemon.request("PATCH", "/v1/config", {"changes": {"healing.mode": "disabled"}})
    expect(watchful).to_contain_text("Palyra checks nothing.")
    daemon.request("PATCH", "/v1/config", {"changes": {"healing.mode": "observe_only"}})
    expect(watchful).to_contain_text("notifies you once")
    left = spoil(daemon, "later.token")
    found = page.get_by_role("list", name="Incidents").locator("> li").filter(has_text="Machine")
    expect(found).to_have_count(1)
    left.unlink()
    # Gone by itself: it is over, and the page that was never touched knows it.
    expect(found).to_have_count(0)
    # What nobody could be told of is asked for by whoever is back.
    port = daemon.port
    daemon.kill()
    incident(daemon, "it rained in")
    daemon.restart(port=port)
    expect(page.get_by_role("list", name="Incidents")).to_contain_text("it rained in")


def test_everything_is_done_with_the_keyboard_alone(somebody: Person) -> None:
    waiting = task(somebody.daemon, "queued", kind="test.keys")
    page = somebody.log_in("/#/health")
    kinds = page.get_by_label("Kind", exact=True)
    # What is not there yet cannot be typed.
    expect(kinds.locator("option", has_text="test.keys")).to_be_attached()
    kinds.focus()
    choose(page, "test.keys")
    # On the way there, another kind with one task may have been shown.
    expect(tasks(page)).to_contain_text(["test.keys"])
    expect(tasks(page)).to_have_count(1)
    for name in ("Details", "Pause", "Cancel…"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Enter")
    expect(tasks(page).get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(tasks(page)).to_contain_text("Cancelled")
    assert somebody.daemon.get(f"/v1/tasks/{waiting}")["state"] == "cancelled"
    page.get_by_role("button", name="Notify only").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Auto-repair", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Notify only")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_fit_for_everyone_on_a_phone_with_something_in_it(
    browser: Browser, daemon: DaemonProcess, scheme: str
) -> None:
    task(daemon, "failed", error="x" * 300, kind=f"test.{scheme}")
    with person(
        browser, daemon, color_scheme=scheme, viewport={"width": 360, "height": 740}
    ) as somebody:
        page = somebody.log_in("/#/health")
        expect(tasks(page).first).to_be_visible()
        page.get_by_text("Checks and repairs").click()
        expect(page.get_by_role("list", name="Passed")).to_be_visible()
        assert serious(page) == []
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360


def test_the_load_is_drawn_and_is_that_of_the_daemon(somebody: Person) -> None:
    daemon = somebody.daemon
    page = somebody.log_in("/#/health")
    load = page.get_by_role("region", name="Load")
    for name in ("CPU", "Memory", "Disk free", "Queue", "Journal"):
        expect(load.get_by_role("img", name=re.compile(f"^{name}: "))).to_be_visible()
    samples = daemon.get("/v1/load")["samples"]
    assert samples == sorted(samples, key=lambda each: each["time_ms"])
    now = samples[-1]
    resident = int((Path("/proc") / str(daemon.pid) / "statm").read_text().split()[1])
    assert 0.5 < now["memory_bytes"] / (resident * os.sysconf("SC_PAGE_SIZE")) < 2
    assert 0 < now["disk_free_bytes"] <= now["disk_total_bytes"]
    assert now["journal_entries"] > 0
    assert now["journal_bytes"] >= (daemon.home / "journal.db").stat().st_size
    made = daemon.post("/v1/tokens", {"name": "guest", "scope": "operator"})["token"]
    assert daemon.request("GET", "/v1/load", token=made).code == "forbidden"


def test_incidents_stand_on_a_time_line_by_area(somebody: Person) -> None:
    now = int(time.time() * 1000)
    day_ms = 86_400_000
    incident(
        somebody.daemon,
        "it hailed",
        domain="worker",
        opened_ms=now - 2 * day_ms,
        closed_ms=now - day_ms,
    )
    incident(somebody.daemon, "long ago", domain="browser", opened_ms=1_000, closed_ms=2_000)
    page = somebody.log_in("/#/health")
    line = page.get_by_role("region", name="Incidents").get_by_role("img")
    expect(line).to_have_attribute("aria-label", re.compile("incidents in the last 7 days"))
    expect(line.locator("text", has_text="Worker")).to_be_attached()
    expect(line.locator("text", has_text="Browser")).to_have_count(0)
    expect(line.locator("rect title", has_text="it hailed")).to_be_attached()
