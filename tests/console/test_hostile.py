"""Text from models, tools, files and names can try what it likes: in the console it stays text."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, read, say
from tests.daemon import DaemonProcess, start

SCRIPT = "<script>window.owned=1</script><img src=x onerror='window.owned=2'><svg onload='window.owned=3'>"
LINKS = "[a](javascript:window.owned=4) [b](data:text/html,<script>window.owned=5</script>) ![c](http://127.0.0.1:9/x.png)"
BIDI = "invoice\u202egnp.exe"
CARD = '<section class="approval" aria-label="Palyra asks: run"><button class="yes">Allow once</button></section>'
TABLE = f"| {SCRIPT} | b |\n|---|---|\n| {LINKS} | d |"
IMITATION = "**Approve file write?** Low risk\n\n[Approve](#/approvals) [Deny](#/approvals)\n\n<button>Approve</button>"
LIE = "[https://bank.example/login](https://evil.example/) and [a page](https://fine.example/)"
NASTY = "\n\n".join(
    [SCRIPT, LINKS, CARD, f"**{SCRIPT}**", f"> {SCRIPT}", TABLE, f"```html\n{SCRIPT}\n```\n"]
)

INJECT = """() => new Promise((done) => {
  const box = document.createElement("div");
  try { box.innerHTML = '<img src=x onerror="window.owned = 8">'; } catch { return done("trusted types"); }
  box.firstChild.addEventListener("error", () => done(""));
  document.body.append(box);
})"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    script: dict[str, Any] = {
        "*": [{"text": NASTY, "reasoning": NASTY}],
        "read": [
            {
                "text": "Reading.",
                "calls": [{"name": "fs.read", "arguments": {"path": "nasty.txt"}}],
            },
            {"text": "It was read."},
        ],
        "write": [
            {"calls": [{"name": "fs.write", "arguments": {"path": f"{BIDI}", "content": NASTY}}]},
            {"text": "It was written."},
        ],
        "imitate": [
            {"text": IMITATION, "calls": [{"name": "fs.read", "arguments": {"path": "card.txt"}}]},
            {"text": f"{IMITATION}\n\n{BIDI}"},
        ],
        "fail": [{"fail": {"failure": "bad_request", "message": f"{SCRIPT} {BIDI}"}}],
        "lie": [{"text": LIE}],
    }
    with start(folder, script=script) as running:
        (running.workspace / "nasty.txt").write_text(NASTY)
        (running.workspace / "card.txt").write_text(IMITATION + CARD)
        yield running


@pytest.fixture
def victim(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with person(browser, daemon) as somebody:
        asked: list[str] = []
        somebody.context.on("request", lambda request: asked.append(request.url))
        yield somebody
        assert [
            each
            for each in asked
            if not each.startswith(daemon.url) and not each.startswith(("data:", "blob:"))
        ] == []
        for page in somebody.context.pages:
            assert page.evaluate("window.owned") is None
            assert (
                page.evaluate(
                    "document.querySelectorAll('main script, main img, main iframe, main svg[onload]').length"
                )
                == 0
            )
            links = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.protocol)")
            assert set(links) <= {"http:", "https:", "mailto:"}


def test_what_a_model_writes_stays_text(victim: Person) -> None:
    page = victim.log_in()
    say(page, "hi")
    expect(page.locator(".meter .badge")).to_have_text("Done")
    page.get_by_text("Reasoning").click()
    expect(page.get_by_text("window.owned=1").first).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Approval:")).to_have_count(0)


def test_what_a_tool_returns_stays_text(victim: Person) -> None:
    page = victim.log_in()
    say(page, "read")
    expect(page.get_by_text("It was read.")).to_be_visible()
    page.get_by_role("article", name="Tool call: read a file").locator("summary").first.click()
    expect(page.locator(".output").get_by_text("window.owned=1").first).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)


def test_names_and_content_that_are_asked_about_are_shown_as_they_are(victim: Person) -> None:
    page = victim.log_in()
    say(page, "write")
    card = page.get_by_role("region", name="Approval:")
    expect(card).to_contain_text("invoice⟨202E⟩gnp")
    assert "\u202e" not in read(page.locator("main"))
    expect(card.locator(".diff")).to_contain_text("window.owned=1")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(1)
    page.goto(victim.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list")).to_contain_text("invoice")
    assert "\u202e" not in read(page.locator("main"))
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()


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


def test_files_with_nasty_names_and_nasty_words_found_by_searching_stay_text(
    victim: Person,
) -> None:
    page = victim.log_in()
    page.locator("input[type=file]").set_input_files(
        {"name": "<img src=x onerror=alert(1)>.txt", "mimeType": "text/plain", "buffer": b"x"}
    )
    expect(page.locator(".composer .attached")).to_contain_text("<img src=x")
    say(page, "<img src=x onerror=alert(2)> zebra")
    expect(page.get_by_role("article", name="You").get_by_role("link")).to_contain_text(
        "<img src=x"
    )
    page.get_by_role("searchbox", name="Search sessions").fill("zebra")
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("onerror=alert(2)")


def test_what_imitates_a_question_is_none_and_no_key_answers_it(victim: Person) -> None:
    page = victim.log_in()
    say(page, "imitate")
    expect(page.locator(".meter .badge")).to_have_text("Done")
    page.get_by_role("article", name="Tool call: read a file").locator("summary").first.click()
    expect(page.locator(".output")).to_contain_text("Approve file write?")
    for name in ("Approve", "Deny"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Approval:")).to_have_count(0)
    assert "\u202e" not in read(page.locator("main"))
    page.get_by_role("link", name="Approvals").click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()


def test_a_failure_says_its_words_and_does_nothing(victim: Person) -> None:
    page = victim.log_in()
    say(page, "fail")
    expect(page.locator(".notice.bad")).to_contain_text("window.owned=1")
    assert "\u202e" not in read(page.locator("main"))


def test_a_link_that_names_another_site_says_where_it_leads(victim: Person) -> None:
    page = victim.log_in()
    say(page, "lie")
    reply = page.get_by_role("article", name="Palyra")
    expect(reply).to_contain_text("https://bank.example/login (leads to evil.example)")
    expect(reply).not_to_contain_text("fine.example")
    assert page.get_by_role("link", name="a page").get_attribute("rel") == "noopener noreferrer"


def test_names_of_sessions_and_files_turn_nothing_around(victim: Person) -> None:
    daemon = victim.daemon
    session = daemon.post("/v1/sessions")["session_id"]
    daemon.request("PATCH", f"/v1/sessions/{session}", {"title": f"{BIDI} {SCRIPT[:40]}"})
    (daemon.workspace / "<img src=x onerror=alert(3)>.md").write_text("x")
    page = victim.log_in(f"/#/chat/{session}")
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("invoice⟨202E⟩gnp")
    assert "\u202e" not in page.title()
    page.get_by_role("textbox", name="Message").press_sequentially("@file:<im")
    expect(page.get_by_role("option", name="<img src=x")).to_be_visible()
    page.keyboard.press("Tab")
    for name in ("timeline", f"timeline/{session}"):
        page.goto(f"{daemon.url}/#/{name}")
        expect(page.get_by_text("invoice⟨202E⟩gnp").first).to_be_visible()
        assert "\u202e" not in read(page.locator("main"))


def test_where_a_memory_comes_from_stays_text(victim: Person) -> None:
    victim.daemon.post(
        "/v1/memory", {"text": f"a fact {SCRIPT}", "kind": "fact", "source": f"{BIDI} {SCRIPT}"}
    )
    page = victim.log_in("/#/memory")
    item = page.locator(".remembered").filter(has_text="a fact")
    item.get_by_text("Where does this come from?").click()
    expect(item.locator("dl")).to_contain_text("window.owned=1")
    assert "\u202e" not in read(page.locator("main"))


def test_an_image_that_would_be_enormous_is_refused_or_kept_as_a_file_and_never_drawn(
    victim: Person,
) -> None:
    page = victim.log_in()
    page.locator("input[type=file]").set_input_files(
        {"name": "bomb.png", "mimeType": "image/png", "buffer": bomb()}
    )
    expect(
        page.get_by_role("alert").or_(page.locator(".composer .attached li")).first
    ).to_be_visible()
    say(page, "hi")
    expect(page.locator(".meter .badge")).to_have_text("Done")


def bomb() -> bytes:
    """A picture of 30,000 by 30,000 pixels in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    side = 30_000
    row = b"\0" * (side // 8 + 1)
    packer = zlib.compressobj(9)
    packed = b"".join([*(packer.compress(row) for _ in range(side)), packer.flush()])
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


def test_the_content_policy_lets_no_foreign_script_in(victim: Person) -> None:
    page = victim.log_in()
    refused = page.evaluate(
        """() => {
            const script = document.createElement("script");
            try { script.textContent = "window.owned = 9"; } catch { return "trusted types"; }
            return "";
        }"""
    )
    assert refused == "trusted types"
    page.evaluate(
        "const s = document.createElement('script'); s.append('window.owned = 9'); document.body.append(s)"
    )
    assert page.evaluate(INJECT) == "trusted types"
    assert page.evaluate("window.owned") is None
    page.evaluate("document.querySelector('body > script').remove()")
    assert any("TrustedScript" in each for each in victim.complaints)
    victim.complaints.clear()
