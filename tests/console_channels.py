"""A channel for the console's pictures: one that goes round inside the daemon, and the form for a
new one.
"""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.daemon import DaemonProcess

Scene = Callable[[Page, DaemonProcess, str], None]


def fill(daemon: DaemonProcess) -> None:
    daemon.post("/v1/channels", {"name": "garden-club", "kind": "loopback"})
    daemon.request("PATCH", "/v1/channels/garden-club/rules", {"changes": {"per_minute": 12}})


def _one(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/channels/at/garden-club")
    expect(page.locator(".badge", has_text="Connected")).to_be_visible()


def _form(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/channels/new")
    page.get_by_label("Platform").select_option("matrix")
    form = page.get_by_role("form", name="New channel")
    expect(form.get_by_role("list", name="Permissions")).to_be_visible()
    form.get_by_label("Name").fill("garden-rooms")


PAGES: dict[str, Scene] = {"channels": _one, "channel-form": _form}
