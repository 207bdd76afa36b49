"""Scenes of the daemon's own life in the garden: what it learned, what it does at its time, and
what it told. For pictures.
"""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.daemon import DaemonProcess

_SAID = (
    "Our compost lies behind the walnut tree.",
    "Our seed supplier is Reinsaat.",
    "I prefer organic seeds over the usual ones.",
    "Remember that our well is 8 meters deep.",
    "Our frost date is the 20th of April.",
)
_SCHEDULES: tuple[dict[str, Any], ...] = (
    {
        "name": "Morning round",
        "when": "weekdays at 8:30",
        "text": "Say what is due in the garden today, by plan.md",
    },
    {
        "name": "Frost watch",
        "when": "every 3h",
        "text": "Watch the frost",
        "quiet": {"from": "22:00", "to": "06:00"},
    },
    {"name": "Harvest notes", "when": "webhook", "text": "File the harvest that came in"},
)
FAILS = "Watch the frost"


def script() -> dict[str, Any]:
    return {
        FAILS: [
            {"fail": {"failure": "bad_request", "message": "the weather station does not answer"}}
        ]
    }


def fill(daemon: DaemonProcess) -> None:
    for text in _SAID:
        _, entries = daemon.run(text)
        daemon.post(f"/v1/runs/{entries[-1]['run_id']}/reflect")
    for each in _SCHEDULES:
        made = daemon.post("/v1/schedules", {"zone": "Europe/Vienna", **each})["schedule"][
            "schedule_id"
        ]
        daemon.post(f"/v1/schedules/{made}/run")


def _learning(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/learning")
    expect(page.get_by_role("article", name="Candidate")).to_be_visible()


def _schedules(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/schedules")
    expect(page.get_by_role("table", name="Schedules")).to_contain_text("Failed")


def _schedule(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/schedules")
    page.get_by_role("link", name="Morning round").click()
    expect(page.get_by_role("table", name="Runs")).to_contain_text("Done")


def _new(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/schedules/new")
    page.get_by_label("Prompt").fill(
        "Water beds 1 and 3 unless it has rained, and write down how much"
    )
    page.get_by_label("When", exact=True).fill("every saturday at 7pm")
    page.get_by_label("Time zone").fill("Europe/Vienna")
    expect(page.get_by_role("list", name="Next runs")).to_contain_text(re.compile("19:00 CES?T"))


def _notices(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/memory")
    expect(page.locator(".remembered").first).to_be_visible()
    page.get_by_role("button", name="Notices").click()
    expect(page.get_by_role("dialog", name="Notices").get_by_role("listitem").first).to_be_visible()


PAGES: dict[str, Callable[[Page, DaemonProcess, str], None]] = {
    "learning": _learning,
    "schedules": _schedules,
    "schedule": _schedule,
    "schedule-form": _new,
    "notices": _notices,
}
