"""The pages of the daemon's own life for everybody: without a mouse, on a phone, in the dark,
whatever text is in them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import console_world
from tests.console.test_keyboard import press, reach
from tests.console_world import Person, read, serious, settled
from tests.daemon import DaemonProcess, start
from tests.learning_at_work import approved, learned

DRAWN = "<img src=x onerror='window.owned=1'><script>window.owned=2</script>"
BIDI = "stage\u202e7"
YES = "<button class=yes>Accept</button> [a](javascript:window.owned=3)"
NASTY = f"{DRAWN} {YES} {BIDI}"


def script() -> dict[str, Any]:
    def release(version: str) -> list[dict[str, Any]]:
        name = f"{version}.txt"
        edit = {"path": name, "search": "#", "replace": "y"}
        return [
            {"calls": [{"name": "fs.write", "arguments": {"path": name, "content": f"{NASTY} #"}}]},
            {"calls": [{"name": "fs.patch", "arguments": {"edits": [edit]}}]},
            {"text": "released"},
        ]

    broken = [{"fail": {"failure": "bad_request", "message": NASTY}}]
    return {
        "*": [{"text": "Fine."}],
        "break": broken,
        **{f"Release {each}": release(each) for each in ("one", "two")},
    }


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("life")
    # What is said is read when the test says so, and not in between by itself: who reads it second
    # finds nothing new.
    config = "[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"
    with start(folder, config=config, script=script()) as running:
        yield running


@pytest.fixture
def somebody(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon) as person:
        yield person


def unharmed(page: Page) -> None:
    assert page.evaluate("window.owned") is None
    assert (
        page.evaluate(
            "document.querySelectorAll('#app script, #app img, #app iframe, #app a[href^=javascript]').length"
        )
        == 0
    )
    assert "\u202e" not in read(page.locator("#app"))


def test_what_was_learned_stays_text_with_its_evidence(somebody: Person) -> None:
    (candidate, *_) = learned(somebody.daemon, f"Our staging host is {NASTY}.")
    page = somebody.log_in(f"/#/learning/{candidate['candidate_id']}")
    shown = page.get_by_role("article", name="Candidate")
    expect(shown.get_by_role("heading", level=2)).to_contain_text("⟨202E⟩")
    expect(shown.get_by_role("list", name="Evidence")).to_contain_text("⟨202E⟩")
    expect(shown.get_by_role("button", name="Accept")).to_have_count(1)
    unharmed(page)


def test_steps_of_a_procedure_and_the_skill_they_become_stay_text(somebody: Person) -> None:
    for version in ("one", "two"):
        _, run_id = approved(somebody.daemon, f"Release {version}")
        found = somebody.daemon.post(f"/v1/runs/{run_id}/reflect")["candidates"]
    (candidate,) = [each for each in found if each["kind"] == "procedure"]
    page = somebody.log_in(f"/#/learning/{candidate['candidate_id']}")
    shown = page.get_by_role("article", name="Candidate")
    expect(shown.get_by_role("list", name="Steps")).to_contain_text("⟨202E⟩")
    expect(shown.locator(".diff")).to_contain_text("fs.patch")
    unharmed(page)


def test_schedules_their_failures_and_the_notices_of_them_stay_text(somebody: Person) -> None:
    made = somebody.daemon.post(
        "/v1/schedules", {"when": "every 5h", "text": f"break {NASTY}", "name": f"tidy {NASTY}"}
    )
    failing = somebody.daemon.post(
        "/v1/schedules", {"when": "every 5h", "text": "break", "name": f"fails {NASTY}"}
    )
    page = somebody.log_in("/#/schedules")
    table = page.get_by_role("table", name="Schedules")
    expect(table.get_by_role("link", name="tidy")).to_contain_text("⟨202E⟩")
    unharmed(page)
    page.goto(f"{somebody.daemon.url}/#/schedules/{made['schedule']['schedule_id']}")
    expect(page.locator(".says")).to_contain_text("⟨202E⟩")
    expect(page.get_by_role("heading", level=1)).to_contain_text(YES[:20])
    unharmed(page)
    somebody.daemon.post(f"/v1/schedules/{failing['schedule']['schedule_id']}/run")
    expect(page.get_by_role("button", name="unread")).to_be_visible()
    page.get_by_role("button", name="Notices").click()
    expect(page.get_by_role("dialog", name="Notices")).to_contain_text("⟨202E⟩")
    unharmed(page)
    page.get_by_role("dialog", name="Notices").get_by_role(
        "link", name="Open", exact=True
    ).first.click()
    expect(page.get_by_role("table", name="Runs")).to_contain_text("Failed")
    unharmed(page)


def test_a_schedule_is_made_and_held_without_a_mouse(somebody: Person) -> None:
    page = somebody.log_in("/#/schedules")
    press(page, "New schedule")
    reach(page, "Prompt")
    page.keyboard.type("look around")
    press(page, "Every…")
    reach(page, "Every")
    page.keyboard.press("Control+A")
    page.keyboard.type("3")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("every 3h")
    reach(page, "Name")
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by keys")).to_be_visible()
    press(page, "Pause")
    expect(page.get_by_text("no runs until you resume it")).to_be_visible()
    press(page, "Delete…")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Schedules", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="by keys")).to_have_count(0)


def test_what_was_learned_is_answered_without_a_mouse(somebody: Person) -> None:
    (candidate,) = learned(somebody.daemon, "Our backup host is backup9.example.")
    page = somebody.log_in("/#/learning")
    row = (
        page.get_by_role("list", name="Candidates").get_by_role("button").filter(has_text="backup9")
    )
    row.focus()
    page.keyboard.press("Enter")
    shown = page.get_by_role("article", name="Candidate")
    expect(shown.get_by_role("heading", level=2)).to_contain_text("backup9")
    press(page, "Accept")
    expect(shown).to_contain_text("Saved to memory")
    press(page, "Roll back…")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(shown).to_contain_text("Rolled back")
    assert (
        somebody.daemon.get(f"/v1/candidates/{candidate['candidate_id']}")["candidate"]["state"]
        == "rolled_back"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone_and_can_be_read_in_light_and_dark(
    browser: Browser, daemon: DaemonProcess, scheme: str
) -> None:
    (candidate,) = learned(daemon, f"Our {scheme} host is " + "a-very-long-name." * 12 + "example.")
    made = daemon.post(
        "/v1/schedules",
        {"when": "weekdays at 8:30", "text": "look " + "x" * 300, "name": "n" * 150},
    )
    places = (
        "learning",
        f"learning/{candidate['candidate_id']}",
        "learning/settings",
        "schedules",
        "schedules/new",
    )
    narrow = {"width": 360, "height": 740}
    with console_world.person(
        browser, daemon, viewport=narrow, color_scheme=scheme, reduced_motion="reduce"
    ) as person:
        page = person.log_in()
        for place in (*places, f"schedules/{made['schedule']['schedule_id']}"):
            page.goto(f"{daemon.url}/#/{place}")
            settled(page)
            for each in page.locator("main details summary").all():
                each.click()
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360, place
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
            assert serious(page) == [], place
        page.get_by_role("button", name="Notices").click()
        expect(page.get_by_role("dialog", name="Notices").get_by_text("Notify me")).to_be_visible()
        box = page.get_by_role("dialog", name="Notices").bounding_box()
        assert box is not None
        assert min(box["x"], box["y"]) >= 0
        assert box["x"] + box["width"] <= 360
        assert serious(page) == []
    daemon.request("DELETE", f"/v1/schedules/{made['schedule']['schedule_id']}")
