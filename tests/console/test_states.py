"""Pages in the states that people meet them in: nothing that axe knows of keeps anybody out, in
either theme, and nothing jumps while a page is loaded.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console_world import AXE, Person, person, settled
from tests.daemon import DaemonProcess

# What moves things that somebody looks at, and was not asked for, adds up to so much at most.
MOST_SHIFT = 0.02
# The best counts: a machine that is busy with something else may show a page before it is complete.
ROUNDS = 2
_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
  }).observe({type: "layout-shift", buffered: true});
}"""
Act = Callable[[Page], object]


def menu(page: Page) -> None:
    page.get_by_role("button", name="Session actions").click()


def button(words: str) -> Act:
    return lambda page: page.get_by_role("button", name=words, exact=True).first.click()


def written(text: str) -> Act:
    return lambda page: page.get_by_role("textbox", name="Message").fill(text)


def entry(tab: str) -> Act:
    def act(page: Page) -> None:
        page.get_by_role("listbox").get_by_role("option").nth(2).click()
        page.get_by_role("tab", name=tab).click()

    return act


def edited(page: Page) -> None:
    page.get_by_role("button", name="Edit", exact=True).first.click()


STATES: tuple[tuple[str, Act | None], ...] = (
    ("chat", None),
    ("chat", written("/")),
    ("chat", lambda page: page.keyboard.press("Control+k")),
    ("chat", lambda page: page.get_by_role("button", name="Notices").click()),
    ("chat/{talk}", None),
    ("chat/{talk}", menu),
    ("chat/{talk}", lambda page: (menu(page), button("Delete…")(page))),
    ("chat/{asks}", None),
    ("chat/{asks}", edited),
    ("chat/{together}", None),
    ("chat/{together}", button("Answer alone")),
    ("approvals", None),
    ("approvals", lambda page: page.get_by_role("checkbox", name="Select").first.check()),
    ("approvals?tab=answered", None),
    ("schedules", None),
    ("schedules/new", None),
    ("memory", None),
    ("learning", None),
    ("skills", None),
    ("skills/mcp", None),
    ("skills/mcp", button("Address")),
    ("skills/notes", None),
    ("policies", None),
    ("policies/presets", None),
    ("policies/files", None),
    ("policies/files", button("New file…")),
    ("policies/suggestions", None),
    ("policies/shadow", None),
    ("security", None),
    ("timeline", None),
    ("timeline/{talk}", None),
    ("timeline/{talk}", entry("Why")),
    ("timeline/{talk}", entry("Proof")),
    ("timeline/{talk}/view=entries", None),
    ("timeline/{talk}/view=table", None),
    ("journal", None),
    ("channels", None),
    ("connections", None),
    ("connections/listening", None),
    ("connections/workers", None),
    ("usage", None),
    ("health", None),
    ("settings", None),
    ("settings", button("Add secret")),
    ("tour", None),
)


@pytest.fixture(scope="module")
def sessions(daemon: DaemonProcess) -> Iterator[dict[str, str]]:
    talk, _ = daemon.run("code")
    asks = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{asks}/messages", {"text": "patch three"})
    together = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{together}/messages", {"text": "two"})
    yield {"talk": talk, "asks": asks, "together": together}
    daemon.post("/v1/stop")


def findings(page: Page) -> list[str]:
    """Everything that axe finds, however small."""
    page.evaluate(AXE.read_text() + "\n;0")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_fit_for_everyone(
    browser: Browser, daemon: DaemonProcess, sessions: dict[str, str], scheme: str
) -> None:
    wrong: dict[str, list[str]] = {}
    with person(browser, daemon, color_scheme=scheme) as somebody:
        page = somebody.log_in()
        for number, (path, act) in enumerate(STATES):
            show(page, somebody, path.format(**sessions))
            if act is not None:
                act(page)
                settled(page)
            if found := findings(page):
                wrong[f"{number} {path}"] = found
    assert not wrong, "\n".join(
        f"{where}: {what}" for where, found in wrong.items() for what in found
    )


def test_nothing_jumps_while_a_page_is_loaded(
    browser: Browser, daemon: DaemonProcess, sessions: dict[str, str]
) -> None:
    jumped = {}
    with person(browser, daemon) as somebody:
        page = somebody.log_in()
        for path in dict.fromkeys(each for each, _ in STATES):
            show(page, somebody, path.format(**sessions))
            shifted = min(shift(page) for _ in range(ROUNDS))
            if shifted > MOST_SHIFT:
                jumped[path] = round(shifted, 3)
    assert not jumped, str(jumped)


def shift(page: Page) -> float:
    page.reload()
    settled(page)
    page.evaluate(_SHIFTS)
    # Told at once of all that was before; two frames are enough for it to arrive.
    settled(page)
    return float(page.evaluate("window.shifted"))


def show(page: Page, somebody: Person, path: str) -> None:
    page.goto("about:blank")
    page.goto(f"{somebody.daemon.url}/#/{path}")
    expect(page.get_by_role("heading", level=1).first).to_be_attached()
    settled(page)
