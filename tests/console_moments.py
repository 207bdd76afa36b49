"""What pages of the console look like in the middle of something, for pictures: a new session, a
search, an approval that is edited, several at once, two runs side by side.
"""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.daemon import DaemonProcess

Scene = Callable[[Page, DaemonProcess, str], None]
_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PATCH = """--- a/notes/2019/april.md
+++ b/notes/2019/april.md
@@ -1 +1 @@
-Frost until the 20th.
+Frost until the 20th, so nothing tender before.
--- /dev/null
+++ b/calendar.md
@@ -0,0 +1,3 @@
+# Calendar
+
+- 20 April: last frost
"""

_TOGETHER = "Get everything ready for sowing"
_SOWING = "# Sowing\n\n- tomatoes, indoors\n- lettuce, bed 1\n- beans, bed 2, after the frost\n"


def script() -> dict[str, Any]:
    return {
        "Write the frost date down wherever it belongs": [
            {
                "text": "I put it into the notes and a calendar.",
                "calls": [{"name": "fs.patch", "arguments": {"diff": _PATCH}}],
            },
            {"text": "Written down."},
        ],
        _TOGETHER: [
            {
                "text": "Three small things, then: a list, a reminder and the old plan out of the way.",
                "calls": [
                    {
                        "name": "fs.write",
                        "arguments": {"path": "sowing.md", "content": _SOWING},
                    },
                    {
                        "name": "schedule.create",
                        "arguments": {
                            "name": "Water the seedlings",
                            "when": "every day at 07:00",
                            "text": "Remind me to water the seedlings.",
                        },
                    },
                    {
                        "name": "shell.run",
                        "arguments": {"command": "mv plan.md notes/2019/plan.md"},
                    },
                ],
            },
            {"text": "All three are done."},
        ],
    }


def fill(daemon: DaemonProcess) -> None:
    _asks(daemon, _TOGETHER, 3)
    _asks(daemon, "Write the frost date down wherever it belongs", 1)


def _asks(daemon: DaemonProcess, text: str, questions: int) -> None:
    """Say something, and wait until the run waits for so many answers."""
    session = daemon.post("/v1/sessions")["session_id"]
    sent = daemon.post(f"/v1/sessions/{session}/messages", {"text": text})
    path = f"/v1/sessions/{session}/events?after={sent['seq']}&until={sent['run_id']}"
    for _, kind, entry in daemon.events(path):
        questions -= kind == "entry" and entry["kind"] == "approval.requested"
        if not questions:
            return


def _start(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/chat")
    expect(page.get_by_role("group", name="Suggestions")).to_be_visible()


def _palette(page: Page, daemon: DaemonProcess, session: str) -> None:
    _start(page, daemon, session)
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("frost")
    expect(page.get_by_role("dialog").get_by_role("option").nth(3)).to_be_visible()
    expect(page.get_by_role("dialog").locator("mark").first).to_be_visible()


def _edited(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/chat/{session}")
    card = page.get_by_role("region", name="Approval:")
    card.get_by_role("button", name="Edit", exact=True).click()
    content = card.get_by_label("content")
    content.fill(content.input_value().replace('"tomatoes"', '"peppers"'))
    expect(card.get_by_label("As edited").locator(".diff")).to_contain_text("peppers")
    expect(card.get_by_role("button", name="Approve edited")).to_be_enabled()
    card.get_by_role("button", name="Approve edited").scroll_into_view_if_needed()
    page.evaluate(_FRAMES)


def _several(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/approvals")
    page.get_by_role("button", name=re.compile("^Select all")).click()
    expect(page.get_by_role("region", name="Selected:").first).to_be_visible()
    page.evaluate(_FRAMES)


def _together(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/approvals")
    page.get_by_role("listitem").filter(has_text="3 tool calls").get_by_role("button").click()
    expect(page.get_by_role("button", name="Approve all 3")).to_be_enabled()


def _together_in_chat(page: Page, daemon: DaemonProcess, session: str) -> None:
    _together(page, daemon, session)
    page.get_by_role("link", name=_TOGETHER).click()
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    expect(page.get_by_role("button", name="Approve all 3")).to_be_enabled()
    page.evaluate(_FRAMES)


def _compare(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/timeline")
    runs = page.get_by_role("list", name="Sessions").get_by_role("link")
    runs.filter(has_text="Is the rotation of my beds right?").first.click()
    page.get_by_role("button", name="Compare…").click()
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.get_by_role("table", name="Figures of both runs")).to_be_visible()


def _activity(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/timeline")
    expect(page.get_by_role("table", name="All activity")).to_be_visible()


PAGES: dict[str, Scene] = {
    "start": _start,
    "palette": _palette,
    "approval-edited": _edited,
    "approval-together": _together_in_chat,
    "approvals-together": _together,
    "approvals-selected": _several,
    "compare": _compare,
    "activity": _activity,
}
