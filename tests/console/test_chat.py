"""Chatting in the console as a person does: asking, watching, stopping, attaching, finding
again.
"""

import io
import re
import time
from collections.abc import Callable

from PIL import Image
from playwright.sync_api import Page, expect

from tests.console_world import Person, click_and_see, say, serious

DROP = """(name) => {
  const data = new DataTransfer();
  data.items.add(new File(["some notes"], name, {type: "text/plain"}));
  const box = document.querySelector("form.composer");
  box.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: data}));
}"""
PASTE = """() => {
  const data = new DataTransfer();
  data.items.add(new File(["pasted"], "pasted.txt", {type: "text/plain"}));
  const box = document.querySelector("textarea");
  box.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData: data}));
}"""


def ended(page: Page) -> None:
    expect(page.locator(".meter .badge")).to_have_text("Done")


def test_what_is_asked_is_answered_with_the_thinking_folded(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "hello")
    reply = page.get_by_role("article", name="Palyra")
    expect(reply.locator("strong")).to_have_text("the script")
    expect(page.get_by_text("They greet me.")).to_be_hidden()
    page.get_by_text("Reasoning").click()
    expect(page.get_by_text("They greet me.")).to_be_visible()
    ended(page)
    page.get_by_role("button", name="Details").click()
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("tokens")
    expect(page).to_have_title("hello · Palyra")


def test_words_are_shown_as_they_come(somebody: Person, release: Callable[[str], None]) -> None:
    page = somebody.log_in()
    say(page, "slow")
    expect(page.get_by_text("The beginning is")).to_be_visible()
    expect(page.get_by_text("The beginning follows")).to_have_count(0)
    expect(page.locator(".meter .badge")).to_have_text("Working")
    release("slow")
    expect(page.get_by_text("The beginning is here, and the end.")).to_be_visible()
    ended(page)


def test_a_page_that_is_loaded_again_in_mid_run_goes_on(
    somebody: Person, release: Callable[[str], None]
) -> None:
    page = somebody.log_in()
    say(page, "long")
    expect(page.get_by_text("It starts with")).to_be_visible()
    page.reload()
    # What was said before the page was there, also what it thought.
    expect(page.get_by_text("It starts with")).to_be_visible()
    expect(page.get_by_text("One word after the")).to_be_attached()
    expect(page.locator(".meter .badge")).to_have_text("Working")
    release("long")
    expect(page.get_by_text("It starts with this, and it stops.")).to_be_visible()
    expect(page.get_by_role("article", name="Palyra")).to_have_count(1)
    expect(page.get_by_role("article", name="You")).to_have_count(1)


def test_stop_ends_what_runs_and_it_can_be_tried_again(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "never")
    expect(page.get_by_text("Never will")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: cancelled by the user")).to_be_visible()
    expect(page.locator(".meter .badge")).to_have_text("Stopped")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("article", name="You")).to_have_count(2)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".meter .badge")).to_have_text("Stopped")


def test_what_was_said_before_stop_is_there_after_a_reload_and_marked(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "never")
    expect(page.get_by_text("Never will")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Incomplete", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text("Never will")).to_be_visible()
    expect(page.get_by_text("Incomplete", exact=True)).to_have_count(1)


def test_while_it_works_one_can_say_how_a_message_joins(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "never")
    expect(page.get_by_text("Never will")).to_be_visible()
    page.get_by_label("While Palyra works").select_option("interrupt")
    say(page, "hello")
    expect(page.get_by_role("article", name="Palyra").last.locator("strong")).to_have_text(
        "the script"
    )
    ended(page)


def test_a_word_joins_what_it_is_doing(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "never")
    expect(page.get_by_text("Never will")).to_be_visible()
    page.get_by_label("While Palyra works").select_option("steer")
    say(page, "and hurry")
    joined = page.get_by_role("article", name="You").last
    expect(joined).to_contain_text("and hurry")
    expect(joined).to_contain_text("Steered")


def test_a_step_is_a_card_with_what_it_does_while_it_does_it(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "shell")
    page.get_by_role("button", name="Approve", exact=True).click()
    step = page.get_by_role("article", name="Tool call: run a command")
    expect(step.locator(".output")).to_contain_text("first line")
    expect(step.locator("summary .badge")).to_have_text("Running")
    (somebody.daemon.workspace / "go").touch()
    expect(step.locator("summary .badge")).to_have_text("Done")
    expect(step.locator(".output")).to_contain_text("second line")
    facts = step.locator(".facts")
    expect(facts).to_contain_text("shell.run")
    expect(facts).to_contain_text(re.compile(r"\d ms|\d s"))
    expect(facts).to_contain_text("sandbox")
    expect(facts).to_contain_text(re.compile(r"\d in, \d+ out"))
    expect(facts).to_contain_text("private")
    expect(facts).to_contain_text("Approved by you")
    expect(step.locator(".code").first).to_contain_text("echo first line")
    (somebody.daemon.workspace / "go").unlink()


def test_code_can_be_copied(somebody: Person) -> None:
    somebody.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = somebody.log_in()
    say(page, "code")
    click_and_see(page.locator(".code").get_by_role("button", name="Copy"), "Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "print('hi')"


def test_files_come_by_drag_and_by_paste(somebody: Person) -> None:
    page = somebody.log_in()
    page.evaluate(DROP, "notes.txt")
    expect(page.locator(".composer .attached")).to_contain_text("notes.txt")
    page.evaluate(PASTE)
    expect(page.locator(".composer .attached li")).to_have_count(2)
    page.get_by_role("button", name="Remove pasted.txt").click()
    say(page, "hello")
    sent = page.get_by_role("article", name="You")
    expect(sent.get_by_role("link", name="notes.txt")).to_be_visible()
    expect(sent.locator(".attached li")).to_have_count(1)


def test_names_are_completed_and_what_they_bring_is_shown_before(somebody: Person) -> None:
    (somebody.daemon.workspace / "facts.md").write_text("the sky is blue\n")
    page = somebody.log_in()
    say(page, "hello")
    ended(page)
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("look at @fi")
    expect(page.get_by_role("option", name="@file:")).to_be_visible()
    box.press("Tab")
    box.press_sequentially("facts.md please")
    expect(page.locator(".references")).to_contain_text(re.compile(r"@file:facts\.md \d+ tokens"))
    box.fill("look at @file:nothing.md please")
    expect(page.locator(".references .bad")).to_contain_text("nothing.md")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing.md")


def test_paths_are_completed_inside_the_workspace(somebody: Person) -> None:
    notes = somebody.daemon.workspace / "my notes"
    notes.mkdir(exist_ok=True)
    (notes / "first day.md").write_text("it rained\n")
    (somebody.daemon.workspace / ".env").write_text("TOKEN=x\n")
    page = somebody.log_in()
    say(page, "hello")
    ended(page)
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("@file:")
    expect(page.get_by_role("option", name="my notes/")).to_be_visible()
    expect(page.get_by_role("listbox", name="Suggestions")).not_to_contain_text(".env")
    box.press_sequentially("my")
    offered = page.get_by_role("listbox", name="Suggestions")
    expect(offered.get_by_role("option")).to_have_count(1)
    box.press("Tab")
    expect(page.get_by_role("option", name="first day.md")).to_be_visible()
    box.press("Enter")
    expect(box).to_have_value('@file:"my notes/first day.md" ')
    expect(page.locator(".references")).to_contain_text("tokens")
    box.press_sequentially("what was it like?")
    box.press("Enter")
    expect(page.get_by_role("article", name="You").last).to_contain_text(
        "@file:my notes/first day.md"
    )


def test_commands_are_offered_and_done(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "hello")
    ended(page)
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("/ti")
    box.press("Enter")
    box.press_sequentially("A better name")
    box.press("Enter")
    expect(page.get_by_role("textbox", name="Session name")).to_have_value("A better name")
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("A better name")
    box.fill("/help")
    box.press("Enter")
    expect(page.locator(".help")).to_contain_text("/stop")


def test_an_earlier_message_is_edited_in_a_branch_and_the_session_stays(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "hello")
    ended(page)
    before = page.url
    say(page, "code")
    expect(page.get_by_role("article", name="You")).to_have_count(2)
    ended(page)
    page.get_by_role("article", name="You").last.get_by_role(
        "button", name="Edit in new branch"
    ).click()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("code")
    say(page, "hello")
    page.wait_for_url(lambda url: url != before)
    expect(page.get_by_text("Branched from another session.")).to_be_visible()
    # What it shares with the other session is shown before, and belongs to that one.
    expect(page.locator(".item.shared").get_by_role("article", name="You")).to_have_text(
        re.compile("^hello")
    )
    expect(page.locator(".item:not(.shared)").get_by_role("article", name="You")).to_have_count(1)
    expect(
        page.locator(".item.shared").get_by_role("button", name="Edit in new branch")
    ).to_have_count(0)
    page.get_by_role("link", name="Open session").click()
    expect(page.get_by_role("article", name="You")).to_have_text(
        [re.compile("^hello"), re.compile("^code")]
    )


def test_sessions_are_found_by_what_was_said_and_saved_as_a_file(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "what about the zebra crossing")
    ended(page)
    page.get_by_role("link", name="New session").click()
    page.get_by_role("searchbox", name="Search sessions").fill("zebra")
    page.get_by_role("navigation", name="Sessions").get_by_role(
        "link", name=re.compile("zebra")
    ).first.click()
    expect(page.get_by_role("article", name="You")).to_contain_text("zebra crossing")
    with page.expect_download() as download:
        page.get_by_role("button", name="Session actions").click()
        page.get_by_role("button", name="Export").click()
    assert "zebra crossing" in download.value.path().read_text()


def test_what_happens_elsewhere_shows_up_by_itself(somebody: Person) -> None:
    page = somebody.log_in()
    session = somebody.daemon.post("/v1/sessions")["session_id"]
    somebody.daemon.run("a word from a terminal", session)
    page.get_by_role("navigation", name="Sessions").get_by_role(
        "link", name=re.compile("a word from a terminal")
    ).click()
    expect(page.get_by_text("Hello.")).to_be_visible()
    somebody.daemon.run("hello", session)
    expect(page.get_by_role("article", name="Palyra").last.locator("strong")).to_have_text(
        "the script"
    )
    assert serious(page) == []


def test_what_waits_its_turn_is_taken_back(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "never")
    expect(page.get_by_text("Never will")).to_be_visible()
    say(page, "hello")
    waiting = page.get_by_role("article", name="You").last
    expect(waiting).to_contain_text("Queued")
    waiting.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Queued")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


def test_a_long_session_shows_its_end_first_and_its_beginning_when_looked_for(
    somebody: Person,
) -> None:
    session = somebody.daemon.post("/v1/sessions")["session_id"]
    somebody.daemon.run("code", session)
    while somebody.daemon.get(f"/v1/sessions/{session}")["head_seq"] <= 520:
        somebody.daemon.run("hello", session)
    page = somebody.log_in(f"/#/chat/{session}")
    messages = page.get_by_role("article", name="You")
    expect(messages.last).to_contain_text("hello")
    expect(messages.last).to_be_in_viewport()
    assert messages.count() < 40, "only what is looked at is drawn"
    log = page.get_by_role("log")
    log.focus()
    # What is looked at stays in view while more comes before it: so the beginning is reached by
    # going on.
    deadline = time.monotonic() + 60
    while not messages.first.inner_text().startswith("code"):
        assert time.monotonic() < deadline, "the beginning never came"
        log.press("Home")
        page.wait_for_timeout(200)
    expect(messages.first).to_contain_text("code")
    expect(page.get_by_role("button", name="Load earlier")).to_have_count(0)
    log.press("Home")
    expect(messages.first).to_be_in_viewport()
    # Whoever says something is taken to where it is said.
    say(page, "good evening")
    expect(messages.last).to_contain_text("good evening")
    expect(messages.last).to_be_in_viewport()
    expect(page.locator(".meter .badge")).not_to_have_text("Working")


def test_a_picture_is_seen_where_it_is_attached_and_downloaded_by_its_name(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    data = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(data, "PNG")
    page.locator("input[type=file]").set_input_files(
        {"name": "sea shore.png", "mimeType": "image/png", "buffer": data.getvalue()}
    )
    composer = page.get_by_role("form", name="Write a message")
    drawn = "it => it.complete && it.naturalWidth === 64"
    expect(composer.get_by_role("img", name="sea shore.png")).to_be_visible()
    page.wait_for_function(f"() => ({drawn})(document.querySelector('.composer .thumb img'))")
    say(page, "hello")
    message = page.get_by_role("article", name="You").last
    expect(message.get_by_role("img", name="sea shore.png")).to_be_visible()
    page.wait_for_function(f"() => ({drawn})(document.querySelector('.user .thumb img'))")
    message.get_by_role("button", name="Show sea shore.png").click()
    expect(page.get_by_role("dialog", name="sea shore.png")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="sea shore.png")).not_to_be_visible()
    with page.expect_download() as download:
        message.get_by_role("link", name="sea shore.png").click()
    assert download.value.suggested_filename == "sea shore.png"
