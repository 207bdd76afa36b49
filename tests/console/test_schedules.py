"""Schedules in the console: made with a form that says beforehand when they fire, held, fired,
removed, and what came of them.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests import console_world
from tests.console_world import Person, read, serious
from tests.daemon import DaemonProcess, start


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("schedules")
    script: dict[str, Any] = {
        "*": [{"text": "Done.", "usage": {"input_tokens": 900, "output_tokens": 100}}],
        "break": [{"fail": {"failure": "bad_request", "message": "no such thing"}}],
    }
    with start(folder, config="[limits]\nrequests_per_second = 1000\n", script=script) as running:
        yield running


@pytest.fixture
def planner(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon, timezone_id="Europe/Vienna") as somebody:
        yield somebody
    for each in daemon.get("/v1/schedules")["schedules"]:
        daemon.request("DELETE", f"/v1/schedules/{each['schedule']['schedule_id']}")


def form_of(page: Page) -> Locator:
    page.get_by_role("link", name="New schedule").first.click()
    return page.get_by_role("form", name="New schedule")


def only(daemon: DaemonProcess) -> dict[str, Any]:
    (found,) = daemon.get("/v1/schedules")["schedules"]
    return dict(daemon.get(f"/v1/schedules/{found['schedule']['schedule_id']}"))


def test_while_a_time_is_typed_its_next_firings_are_shown_and_nothing_is_saved(
    planner: Person,
) -> None:
    page = planner.log_in("/#/schedules")
    expect(page.get_by_text("No schedules yet")).to_be_visible()
    form = form_of(page)
    coming = form.get_by_role("region", name="Preview").get_by_role("listitem")
    when = form.get_by_label("When", exact=True)
    expect(form.get_by_label("Time zone")).to_have_value("Europe/Vienna")
    when.fill("every monday at 6pm")
    expect(coming).to_have_count(5)
    for each in coming.all():
        expect(each).to_contain_text("Mon ")
        expect(each).to_contain_text("18:00 CE")
    when.fill("0 9 29 2 *")
    expect(coming.first).to_contain_text("2028-02-29 09:00 CET")
    expect(form).to_contain_text("0 times in the next 30 days")
    when.fill("every second")
    expect(form.get_by_text("once a minute is the most")).to_be_visible()
    expect(when).to_have_attribute("aria-invalid", "true")
    expect(coming).to_have_count(0)
    form.get_by_label("Prompt").fill("look around")
    expect(form.get_by_role("button", name="Save schedule")).to_be_disabled()
    assert serious(page) == []
    when.fill("daily at 9")
    form.get_by_label("Time zone").fill("Mars/Olympus")
    expect(form.get_by_text("is not a time zone")).to_be_visible()
    expect(form.get_by_label("Time zone")).to_have_attribute("aria-invalid", "true")
    expect(when).not_to_have_attribute("aria-invalid", "true")
    assert planner.daemon.get("/v1/schedules")["schedules"] == []


def test_one_is_made_paused_resumed_fired_and_removed(planner: Person) -> None:
    page = planner.log_in("/#/schedules")
    form = form_of(page)
    form.get_by_label("Prompt").fill("say what is new")
    form.get_by_label("When", exact=True).fill("weekdays at 8:30")
    form.get_by_label("Name").fill("morning")
    form.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_role("heading", name="morning", level=1)).to_be_visible()
    expect(page.get_by_role("list", name="Next runs").get_by_role("listitem")).to_have_count(5)
    expect(page.get_by_text("The cost is known after the first run.")).to_be_visible()
    expect(page.get_by_text("No runs yet.")).to_be_visible()
    assert serious(page) == []

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("no runs until you resume it")).to_be_visible()
    assert only(planner.daemon)["schedule"]["state"] == "paused"
    expect(page.get_by_role("button", name="Run now")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("list", name="Next runs").get_by_role("listitem")).to_have_count(5)

    page.get_by_role("button", name="Run now").click()
    firings = page.get_by_role("table", name="Runs")
    expect(firings).to_contain_text("Done")
    expect(page.get_by_text("From its last run: 1,000 tokens")).to_be_visible()
    firings.get_by_role("link", name="Open session").click()
    expect(page.get_by_role("article", name="Palyra").last).to_contain_text("Done.")

    page.goto(f"{planner.daemon.url}/#/schedules")
    table = page.get_by_role("table", name="Schedules")
    expect(table.get_by_role("row").nth(1)).to_contain_text("Done")
    assert serious(page) == []
    table.get_by_role("link", name="morning").click()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No schedules yet")).to_be_visible()
    assert planner.daemon.get("/v1/schedules")["schedules"] == []


def test_one_is_run_paused_and_resumed_from_the_list(planner: Person) -> None:
    daemon = planner.daemon
    daemon.post("/v1/schedules", {"text": "look around", "when": "every 3h", "name": "rounds"})
    page = planner.log_in("/#/schedules")
    row = page.get_by_role("table", name="Schedules").get_by_role("row").filter(has_text="rounds")
    expect(row).to_contain_text("in 3 h")
    expect(row.get_by_role("cell").filter(has_text="in 3 h").locator("time")).to_have_attribute(
        "title", re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
    )
    row.get_by_role("button", name="Run now: rounds").click()
    expect(row).to_contain_text("Done")
    row.get_by_role("button", name="Pause: rounds").click()
    expect(row).to_contain_text("Paused")
    assert serious(page) == []
    row.get_by_role("button", name="Resume: rounds").click()
    expect(row).to_contain_text("Active")
    assert page.url.endswith("/#/schedules")


def test_one_is_changed_and_stays_the_same_schedule(planner: Person) -> None:
    made = planner.daemon.post(
        "/v1/schedules",
        {
            "text": "look around",
            "when": "every 3h",
            "zone": "Europe/Vienna",
            "quiet": {"from": "22:00", "to": "07:00", "then": "skip"},
            "ask": "deny",
        },
    )["schedule"]
    page = planner.log_in(f"/#/schedules/{made['schedule_id']}")
    page.get_by_role("link", name="Edit", exact=True).click()
    form = page.get_by_role("form", name="Edit schedule")
    expect(form.get_by_label("Every", exact=True)).to_have_value("3")
    expect(form.get_by_label("Unit")).to_have_value("h")
    form.get_by_role("button", name="Daily or weekly").click()
    form.get_by_label("When", exact=True).fill("weekdays at 7")
    form.get_by_label("Prompt").fill("look around again")
    expect(form.get_by_role("region", name="Preview").get_by_role("listitem")).to_have_count(5)
    assert serious(page) == []
    form.get_by_role("button", name="Save schedule").click()
    expect(form).to_have_count(0)
    expect(page.get_by_text("on weekdays at 07:00 (Europe/Vienna)")).to_be_visible()
    now = only(planner.daemon)["schedule"]
    changed = {"text", "trigger", "next_ms", "updated_ms"}
    assert {name: value for name, value in now.items() if name not in changed} == {
        name: value for name, value in made.items() if name not in changed
    }
    assert (now["text"], now["trigger"]) == (
        "look around again",
        {"on": "cron", "expression": "0 7 * * 1-5"},
    )


def test_every_setting_of_the_form_reaches_the_schedule(planner: Person) -> None:
    page = planner.log_in("/#/schedules/new")
    form = page.get_by_role("form", name="New schedule")
    form.get_by_label("Prompt").fill("tidy up")
    form.get_by_role("button", name="Every…").click()
    form.get_by_label("Every", exact=True).fill("90")
    form.get_by_label("Unit").select_option("minutes")
    form.get_by_text("Advanced").click()
    form.get_by_label("Overlapping runs").select_option("queue")
    form.get_by_label("Missed runs").select_option("catch_up")
    form.get_by_label("Calls that need approval").select_option("deny")
    form.get_by_label("From", exact=True).fill("22:00")
    expect(form.get_by_text("Enter both or neither.")).to_be_visible()
    form.get_by_label("To", exact=True).fill("07:00")
    form.get_by_label("Runs in quiet hours").select_option("skip")
    form.get_by_label("Tool").select_option("shell.run")
    form.get_by_label("Limited to").select_option("program")
    form.get_by_label("Value", exact=True).fill("git")
    form.get_by_role("button", name="Add grant").click()
    form.get_by_label("Tool").select_option("fs.write")
    form.get_by_role("button", name="Add grant").click()
    form.get_by_role("button", name="Remove: write a file").click()
    form.get_by_label("Folder", exact=True).fill(str(planner.daemon.workspace))
    form.get_by_label("New session for each run").check()
    expect(form.get_by_role("region", name="Preview")).to_contain_text("every 90m")
    assert serious(page) == []
    form.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_text("run a command, the program git")).to_be_visible()
    expect(page.get_by_text("22:00 to 07:00; runs are skipped")).to_be_visible()
    made = only(planner.daemon)["schedule"]
    assert made["trigger"]["every_ms"] == 90 * 60_000
    assert made["scopes"] == [{"tool": "shell.run", "kind": "program", "value": "git"}]
    assert made["quiet"] == {"from": "22:00", "to": "07:00", "then": "skip"}
    wanted = {
        "overlap": "queue",
        "missed": "catch_up",
        "ask": "deny",
        "fresh": True,
        "zone": "Europe/Vienna",
    }
    assert wanted.items() <= made.items()
    assert made["workspace"] == str(planner.daemon.workspace)


def test_what_is_to_happen_once_is_named_by_day_and_time(planner: Person) -> None:
    page = planner.log_in("/#/schedules/new")
    form = page.get_by_role("form", name="New schedule")
    form.get_by_label("Prompt").fill("wish a happy new year")
    form.get_by_role("button", name="Once").click()
    form.get_by_label("Date and time").fill("2020-01-01T00:00")
    expect(form.get_by_text("name a time that lies ahead")).to_be_visible()
    form.get_by_label("Date and time").fill("2031-01-01T00:00")
    expect(form.get_by_role("list", name="Next runs").get_by_role("listitem")).to_have_text(
        ["Wed 2031-01-01 00:00 CET"]
    )
    form.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_role("heading", name="wish a happy new year")).to_be_visible()
    assert only(planner.daemon)["schedule"]["missed"] == "catch_up"


def test_a_change_of_a_file_fires_and_is_seen_without_a_reload(
    planner: Person, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    page = planner.log_in("/#/schedules/new")
    form = page.get_by_role("form", name="New schedule")
    form.get_by_label("Prompt").fill("file what came")
    form.get_by_role("button", name="File change").click()
    form.get_by_label("File or folder").fill(str(inbox))
    expect(form.get_by_text("name an existing file or folder")).to_be_visible()
    inbox.mkdir()
    form.get_by_label("File or folder").fill(f"{inbox}/")
    form.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_text("No runs yet.")).to_be_visible()
    (inbox / "letter.txt").write_text("Dear all")
    expect(page.get_by_role("table", name="Runs")).to_contain_text("Done")


def test_a_webhook_shows_its_secret_once_and_is_called_with_it(planner: Person) -> None:
    page = planner.log_in("/#/schedules/new")
    form = page.get_by_role("form", name="New schedule")
    form.get_by_label("Prompt").fill("look at what came")
    form.get_by_role("button", name="Webhook").click()
    form.get_by_role("button", name="Save schedule").click()
    secret = read(page.locator(".once code").first)
    schedule_id = only(planner.daemon)["schedule"]["schedule_id"]
    expect(page.get_by_text(f"/v1/hooks/{schedule_id}")).to_be_visible()
    assert serious(page) == []
    stamp, sent = str(int(time.time())), b'{"order": 7}'
    signature = hmac.new(secret.encode(), f"{stamp}.".encode() + sent, hashlib.sha256).hexdigest()
    headers = {"x-palyra-timestamp": stamp, "x-palyra-signature": f"sha256={signature}"}
    assert (
        planner.daemon.request(
            "POST", f"/v1/hooks/{schedule_id}", sent, token="", headers=headers
        ).status
        == 202
    )
    expect(page.get_by_role("table", name="Runs")).to_contain_text("Done")
    page.get_by_role("button", name="Done", exact=True).click()
    expect(page.locator(".once")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("when its webhook is called")).to_be_visible()
    assert secret not in page.content()


def test_a_firing_that_failed_says_so_and_why(planner: Person) -> None:
    planner.daemon.post("/v1/schedules", {"when": "every 5h", "text": "break", "name": "fragile"})
    page = planner.log_in("/#/schedules")
    page.get_by_role("link", name="fragile").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("table", name="Runs")).to_contain_text("Failed")
    page.goto(f"{planner.daemon.url}/#/schedules")
    expect(page.get_by_role("table", name="Schedules").get_by_role("row").nth(1)).to_contain_text(
        "Failed"
    )
