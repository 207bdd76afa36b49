"""Everyday tasks, counted in clicks as somebody new does them: every press of a pointer counts,
choosing from a list counts twice, and typing does not.
"""

import re
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.console_world import person, settled
from tests.daemon import DaemonProcess, start
from tests.model_servers import host_of, ollama, serving


class Counted:
    """Somebody new, from the start page on, with the clicks of the task they are at."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def begin(self) -> None:
        self.clicks = 0

    def click(self, what: Locator) -> None:
        what.click()
        self.clicks += 1

    def write(self, where: Locator, text: str) -> None:
        """Click into a field and type."""
        self.click(where)
        where.fill(text)

    def choose(self, where: Locator, value: str) -> None:
        where.select_option(value)
        self.clicks += 2


def test_everyday_tasks_take_few_clicks(browser: Browser, tmp_path: Path) -> None:
    with (
        serving(ollama()) as server,
        start(
            tmp_path,
            config="[limits]\nrequests_per_second = 1000\n",
            env={"OLLAMA_HOST": host_of(server)},
        ) as daemon,
        person(browser, daemon, viewport={"width": 1440, "height": 900}) as somebody,
    ):
        (daemon.workspace / "README.md").write_text("# A folder\n")
        new = Counted(somebody.log_in())
        found = {
            "first answer": first_answer(new),
            "approve with an edit": edited_approval(new, daemon),
            "find why a file was changed": why(new, daemon),
            "undo it": undone(new, daemon),
            "add an Ollama provider": with_ollama(new, daemon),
            "change the model": another_model(new),
            "make a schedule": scheduled(new, daemon),
        }
    most = {
        "first answer": 2,
        "approve with an edit": 4,
        "find why a file was changed": 4,
        "undo it": 2,
        "add an Ollama provider": 4,
        "change the model": 2,
        "make a schedule": 6,
    }
    assert {task: clicks for task, clicks in found.items() if clicks > most[task]} == {}


def first_answer(new: Counted) -> int:
    new.begin()
    new.click(new.page.get_by_role("button", name="What is in this folder?"))
    expect(new.page.get_by_role("article", name="Palyra").last).to_contain_text("README.md")
    return new.clicks


def edited_approval(new: Counted, daemon: DaemonProcess) -> int:
    page = new.page
    page.get_by_role("link", name="New session").click()
    page.get_by_role("button", name="Create hello.txt").click()
    card = page.get_by_role("region", name="Approval:")
    new.begin()
    new.click(card.get_by_role("button", name="Edit", exact=True))
    new.write(card.get_by_label("content"), "good day\n")
    expect(card.get_by_label("As edited").locator(".diff")).to_contain_text("good day")
    new.click(card.get_by_role("button", name="Approve edited"))
    expect(page.locator(".meter .badge")).to_have_text("Done")
    assert (daemon.workspace / "hello.txt").read_text() == "good day\n"
    return new.clicks


def why(new: Counted, daemon: DaemonProcess) -> int:
    """From the start page: the session, the step that wrote the file, and why."""
    page = new.page
    page.goto(daemon.url + "/#/chat")
    settled(page)
    new.begin()
    new.click(page.get_by_role("link", name=re.compile("^Create hello.txt")))
    new.click(page.get_by_role("complementary", name="Details").get_by_text("hello.txt").last)
    new.click(page.get_by_role("tab", name="Why"))
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Create hello.txt")
    expect(panel).to_contain_text("user:owner allowed once")
    return new.clicks


def undone(new: Counted, daemon: DaemonProcess) -> int:
    new.begin()
    new.click(new.page.get_by_role("button", name="Undo…"))
    new.click(new.page.get_by_role("button", name="Undo changes"))
    expect(new.page.get_by_text("Undone. The undo is recorded as a new entry.")).to_be_visible()
    assert not (daemon.workspace / "hello.txt").exists()
    return new.clicks


def with_ollama(new: Counted, daemon: DaemonProcess) -> int:
    page = new.page
    page.goto(daemon.url + "/#/chat")
    settled(page)
    new.begin()
    new.click(page.get_by_role("link", name="Settings"))
    new.click(page.get_by_role("button", name="Use Ollama"))
    cards = page.get_by_role("list", name="Providers").locator(".card")
    expect(cards.filter(has_text="ollama")).to_contain_text("Default")
    return new.clicks


def another_model(new: Counted) -> int:
    page = new.page
    page.get_by_role("link", name="Chat").click()
    picker = page.get_by_label("Model", exact=True)
    expect(picker).to_have_value("ollama/qwen3:8b")
    new.begin()
    new.choose(picker, "ollama/llama3.2:latest")
    expect(picker).to_have_value("ollama/llama3.2:latest")
    return new.clicks


def scheduled(new: Counted, daemon: DaemonProcess) -> int:
    page = new.page
    new.begin()
    new.click(page.get_by_role("link", name="Schedules"))
    new.click(page.get_by_role("link", name="New schedule").first)
    form = page.get_by_role("form", name="New schedule")
    new.write(form.get_by_label("Prompt"), "say what is new")
    new.write(form.get_by_label("When", exact=True), "weekdays at 8:30")
    expect(form.get_by_role("button", name="Save schedule")).to_be_enabled()
    new.click(form.get_by_role("button", name="Save schedule"))
    # The form shows the next runs before it is saved, too.
    expect(form).to_have_count(0)
    expect(page.get_by_role("list", name="Next runs").get_by_role("listitem")).to_have_count(5)
    assert len(daemon.get("/v1/schedules")["schedules"]) == 1
    return new.clicks
