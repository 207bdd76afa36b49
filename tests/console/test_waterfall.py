"""A run as a picture: the waterfall of the timeline, its window in time, its filters, two runs side
by side, and the folded one on other pages.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console_scenes import asked
from tests.console_world import Person, person, serious
from tests.daemon import DaemonProcess, start


@pytest.fixture
def session(daemon: DaemonProcess) -> Iterator[str]:
    """One run that writes a file with approval, one that was denied it, and one that only talks."""
    made: str = daemon.post("/v1/sessions")["session_id"]
    asked(daemon, "write", "allow", made)
    # A write that changes nothing does not ask.
    (daemon.workspace / "plan.txt").unlink()
    asked(daemon, "write", "deny", made)
    daemon.run("hello", made)
    yield made
    (daemon.workspace / "plan.txt").unlink(missing_ok=True)


def steps(page: Page) -> Locator:
    return page.get_by_role("listbox").get_by_role("option")


def entries_of(daemon: DaemonProcess, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get(f"/v1/sessions/{session}/entries?limit=500")["entries"]
    return found


def test_a_run_is_drawn_step_by_step_and_a_step_opens_its_entry(
    somebody: Person, session: str
) -> None:
    found = entries_of(somebody.daemon, session)
    first = next(each["seq"] for each in found if each["kind"] == "tool.finished")
    page = somebody.log_in(f"/#/timeline/{session}/{first}")
    expect(steps(page).first).to_contain_text("Run 1")
    names = page.locator(".step-row .wf-label").all_inner_texts()
    assert [name.partition(" · ")[0] for name in names][:4] == [
        "Message",
        "Prompt",
        "Model",
        "Waiting for you",
    ]
    write = steps(page).filter(has_text=re.compile(r"^fs\.write plan\.txt"))
    expect(write).to_have_attribute("aria-selected", "true")
    expect(write).to_contain_text("Tool, approved")
    page.get_by_role("listbox").press("ArrowUp")
    expect(page.get_by_role("heading", name=re.compile("Approval requested"))).to_be_visible()
    write.hover()
    expect(page.locator(".step-tip")).to_contain_text("starts at")
    page.get_by_role("button", name="Next run").click()
    expect(steps(page).first).to_contain_text("Run 2")
    denied = steps(page).filter(has_text=re.compile(r"^fs\.write plan\.txt"))
    expect(denied).to_contain_text("Error, denied")


def test_filters_narrow_every_view_and_stay_in_the_address(somebody: Person, session: str) -> None:
    page = somebody.log_in(f"/#/timeline/{session}")
    page.get_by_role("button", name="All runs", exact=True).click()
    expect(steps(page).filter(has_text=re.compile("^Run"))).to_have_count(3)
    page.get_by_label("Decision", exact=True).select_option("denied")
    expect(steps(page).filter(has_text=re.compile("^Run"))).to_have_text(re.compile("Run 2"))
    page.get_by_label("Decision", exact=True).select_option("")
    page.get_by_label("Tool", exact=True).select_option("fs.write")
    expect(steps(page).filter(has_text="Message")).to_have_count(0)
    page.get_by_label("Kind", exact=True).select_option("wait")
    expect(steps(page).filter(has_text="Waiting for you")).to_have_count(2)
    expect(steps(page)).to_have_count(4)
    # The address follows a moment after the window was chosen.
    expect(page).to_have_url(re.compile("/from="))
    page.reload()
    expect(steps(page)).to_have_count(4)
    page.get_by_role("button", name="Table").click()
    expect(page.get_by_role("table", name="Steps").locator("tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Entries", exact=True).click()
    expect(steps(page)).to_have_count(4)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("searchbox", name="Search entries").fill("from **the script**")
    expect(steps(page)).to_have_text([re.compile("Model reply"), re.compile("Answer")])
    assert "text=" in page.url
    page.get_by_role("searchbox", name="Search entries").fill("nothing says this")
    page.get_by_role("button", name="Waterfall").click()
    expect(page.get_by_text("No steps match these filters")).to_be_visible()


def test_the_window_is_moved_by_keys_and_by_dragging_and_stays_in_the_address(
    somebody: Person, session: str
) -> None:
    page = somebody.log_in(f"/#/timeline/{session}")
    runs = steps(page).filter(has_text=re.compile("^Run"))
    expect(runs).to_have_text(re.compile("Run 3"))
    page.get_by_role("button", name="All runs", exact=True).click()
    expect(runs).to_have_count(3)
    page.wait_for_url(re.compile("/from=\\d+/to=\\d+"))
    everything = page.url
    end = page.get_by_role("slider", name="End of selection")
    end.focus()
    page.keyboard.press("Home")
    expect(runs).to_have_count(1)
    expect(runs).to_have_text(re.compile("Run 1"))
    expect(page).not_to_have_url(everything)
    page.reload()
    expect(runs).to_have_text(re.compile("Run 1"))
    box = page.locator(".overview").bounding_box()
    assert box is not None
    page.locator(".overview").dblclick(position={"x": box["width"] / 2, "y": 20})
    expect(runs).to_have_count(3)
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20, steps=4)
    page.mouse.up()
    expect(runs).not_to_have_count(3)
    page.get_by_role("button", name="All runs", exact=True).click()
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    for _ in range(12):
        page.mouse.wheel(0, -400)
    expect(runs).not_to_have_count(3)


def test_a_time_is_jumped_to(somebody: Person, session: str) -> None:
    page = somebody.log_in(f"/#/timeline/{session}")
    expect(steps(page).first).to_be_visible()
    page.get_by_label("Jump to").fill("2020-01-01T00:00:00")
    page.get_by_label("Jump to").blur()
    expect(page.get_by_role("region", name="Entry 1", exact=True)).to_be_visible()


def test_a_fork_and_its_origin_stand_side_by_side(somebody: Person, session: str) -> None:
    daemon = somebody.daemon
    found = entries_of(daemon, session)
    said = next(each for each in found if each["kind"] == "input.assembled")
    fork = daemon.post(f"/v1/runs/{said['run_id']}/fork", {"at": said["seq"]})["session_id"]
    page = somebody.log_in(f"/#/timeline/{fork}")
    page.get_by_role("button", name="Compare…").click()
    page.get_by_label("Compare with").select_option(label="Origin of this fork")
    for side in ("This run", "Origin"):
        rows = page.get_by_role("region", name=side).get_by_role("listitem")
        expect(rows.filter(has_text="Model · s1").first).to_be_visible()
    expect(page.get_by_role("table", name="Figures of both runs")).to_contain_text("Tool calls")
    expect(page.get_by_role("status").filter(has_text="The steps differ")).to_be_visible()
    page.reload()
    expect(page.get_by_role("region", name="Origin")).to_be_visible()
    assert serious(page) == []


def test_the_tabs_of_an_entry_are_walked_with_the_arrow_keys(
    somebody: Person, session: str
) -> None:
    page = somebody.log_in(f"/#/timeline/{session}/3")
    page.get_by_role("tab", name="Overview").focus()
    for name in ("Why", "Proof", "JSON", "Overview"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()


def test_the_run_of_a_schedule_is_drawn_where_its_firings_are(somebody: Person) -> None:
    daemon = somebody.daemon
    made = daemon.post("/v1/schedules", {"when": "every day at 9", "text": "hello", "name": "hi"})
    schedule = made["schedule"]["schedule_id"]
    daemon.post(f"/v1/schedules/{schedule}/run")
    page = somebody.log_in(f"/#/schedules/{schedule}")
    page.get_by_text("Show run").click()
    run = page.get_by_role("list", name=re.compile("^Run: "))
    expect(run.get_by_role("link").filter(has_text="Model · s1")).to_be_visible()
    run.get_by_role("link").filter(has_text="Answer").click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    daemon.request("DELETE", f"/v1/schedules/{schedule}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_fit_for_everyone_also_on_a_phone(
    browser: Browser, daemon: DaemonProcess, session: str, scheme: str
) -> None:
    with person(
        browser, daemon, color_scheme=scheme, viewport={"width": 360, "height": 740}
    ) as somebody:
        page = somebody.log_in(f"/#/timeline/{session}/3")
        for view in ("Waterfall", "Table", "Entries"):
            page.get_by_role("button", name=view, exact=True).click()
            expect(page.get_by_role("region", name=view)).to_be_visible()
            assert serious(page) == []
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360


def test_the_run_of_a_subagent_is_drawn_where_it_was_waited_for(
    browser: Browser, tmp_path: Path
) -> None:
    spawn = {"name": "agent.spawn", "arguments": {"task": "count the beans"}}
    script = {
        "*": [{"text": "Twelve beans."}],
        "delegate": [{"text": "I delegate.", "calls": [spawn]}, {"text": "There are twelve."}],
    }
    with start(tmp_path, script=script) as daemon, person(browser, daemon) as somebody:
        session: str = daemon.post("/v1/sessions")["session_id"]
        asked(daemon, "delegate", "allow", session)
        page = somebody.log_in(f"/#/timeline/{session}")
        steps(page).filter(has_text=re.compile("^Waiting for subagent")).click()
        child = page.locator(".tape-entry").get_by_role("list", name=re.compile("^Run: "))
        expect(child.get_by_role("link").filter(has_text="Answer")).to_be_visible()
        child.get_by_role("link").filter(has_text="Answer").click()
        expect(page.locator(".tape-entry")).to_contain_text("Twelve beans.")
