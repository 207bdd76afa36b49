"""Text from models, tools, files and names can try what it likes: in the console it stays text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, say
from tests.daemon import DaemonProcess, start

SCRIPT = "<script>window.owned=1</script><img src=x onerror='window.owned=2'><svg onload='window.owned=3'>"
LINKS = "[a](javascript:window.owned=4) [b](data:text/html,<script>window.owned=5</script>) ![c](http://127.0.0.1:9/x.png)"
BIDI = "invoice\u202egnp.exe"
CARD = '<section class="approval" aria-label="Palyra asks: run"><button class="yes">Allow once</button></section>'
TABLE = f"| {SCRIPT} | b |\n|---|---|\n| {LINKS} | d |"
NASTY = "\n\n".join([SCRIPT, LINKS, CARD, f"**{SCRIPT}**", f"> {SCRIPT}", TABLE, f"```html\n{SCRIPT}\n```\n"])

INJECT = """() => new Promise((done) => {
  const box = document.createElement("div");
  box.innerHTML = '<img src=x onerror="window.owned = 8">';
  box.firstChild.addEventListener("error", () => done(true));
  document.body.append(box);
})"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    script: dict[str, Any] = {
        "*": [{"text": NASTY, "reasoning": NASTY}],
        "read": [
            {"text": "Reading.", "calls": [{"name": "fs.read", "arguments": {"path": "nasty.txt"}}]},
            {"text": "It was read."},
        ],
        "write": [
            {"calls": [{"name": "fs.write", "arguments": {"path": f"{BIDI}", "content": NASTY}}]},
            {"text": "It was written."},
        ],
    }
    with start(folder, script=script) as running:
        (running.workspace / "nasty.txt").write_text(NASTY)
        yield running


@pytest.fixture
def victim(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with person(browser, daemon) as somebody:
        asked: list[str] = []
        somebody.context.on("request", lambda request: asked.append(request.url))
        yield somebody
        assert [each for each in asked if not each.startswith(daemon.url) and not each.startswith(("data:", "blob:"))] == []
        for page in somebody.context.pages:
            assert page.evaluate("window.owned") is None
            assert page.evaluate("document.querySelectorAll('main script, main img, main iframe, main svg[onload]').length") == 0
            links = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.protocol)")
            assert set(links) <= {"http:", "https:", "mailto:"}


def test_what_a_model_writes_stays_text(victim: Person) -> None:
    page = victim.log_in()
    say(page, "hi")
    expect(page.locator(".meter .badge")).to_have_text("done")
    page.get_by_text("How it thought about this").click()
    expect(page.get_by_text("window.owned=1").first).to_be_visible()
    expect(page.get_by_role("button", name="Allow once")).to_have_count(0)
    expect(page.get_by_role("region", name="Palyra asks")).to_have_count(0)


def test_what_a_tool_returns_stays_text(victim: Person) -> None:
    page = victim.log_in()
    say(page, "read")
    expect(page.get_by_text("It was read.")).to_be_visible()
    page.get_by_role("article", name="Step: read a file").locator("summary").first.click()
    expect(page.locator(".output").get_by_text("window.owned=1").first).to_be_visible()
    expect(page.get_by_role("button", name="Allow once")).to_have_count(0)


def test_names_and_content_that_are_asked_about_are_shown_as_they_are(victim: Person) -> None:
    page = victim.log_in()
    say(page, "write")
    card = page.get_by_role("region", name="Palyra asks")
    expect(page.locator(".tool-what")).to_contain_text("invoice⟨202E⟩gnp")
    assert "\u202e" not in page.locator("main").inner_text()
    expect(card.locator(".diff")).to_contain_text("window.owned=1")
    expect(page.get_by_role("button", name="Allow once")).to_have_count(1)
    page.goto(victim.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list")).to_contain_text("invoice")
    assert "\u202e" not in page.locator("main").inner_text()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


def test_titles_messages_and_memory_stay_text(victim: Person) -> None:
    daemon = victim.daemon
    session = daemon.post("/v1/sessions")["session_id"]
    daemon.run(NASTY, session)
    daemon.request("PATCH", f"/v1/sessions/{session}", {"title": f"{SCRIPT[:60]}"})
    daemon.post("/v1/memory", {"text": SCRIPT})
    page = victim.log_in(f"/#/chat/{session}")
    expect(page.get_by_role("article", name="You")).to_contain_text("window.owned=1")
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("<script>")
    for name in ("memory", f"timeline/{session}", "timeline"):
        page.goto(f"{daemon.url}/#/{name}")
        expect(page.get_by_text("<script>").first).to_be_visible()


def test_files_with_nasty_names_and_nasty_words_found_by_searching_stay_text(victim: Person) -> None:
    page = victim.log_in()
    page.locator("input[type=file]").set_input_files(
        {"name": "<img src=x onerror=alert(1)>.txt", "mimeType": "text/plain", "buffer": b"x"}
    )
    expect(page.locator(".composer .attached")).to_contain_text("<img src=x")
    say(page, "<img src=x onerror=alert(2)> zebra")
    expect(page.get_by_role("article", name="You").get_by_role("link")).to_contain_text("<img src=x")
    page.get_by_role("searchbox", name="Search sessions").fill("zebra")
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("onerror=alert(2)")


def test_the_content_policy_lets_no_foreign_script_in(victim: Person) -> None:
    page = victim.log_in()
    page.evaluate("const s = document.createElement('script'); s.textContent = 'window.owned = 9'; document.body.append(s)")
    page.evaluate(INJECT)
    assert page.evaluate("window.owned") is None
    page.evaluate("document.querySelector('body > script').remove()")
    assert any("Content Security Policy" in each for each in victim.complaints)
    victim.complaints.clear()
