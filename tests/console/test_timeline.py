"""The timeline, the memory and the inbox's way to the tape: what happened, why, whether it is
unchanged, and back.
"""

import re
import sqlite3
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import script
from tests.console_world import Person, person, say, serious
from tests.daemon import start


def rows(page: Page, words: str) -> None:
    page.get_by_role("option").filter(has_text=words).first.click()


def written(somebody: Person) -> tuple[Page, str]:
    """A session in which a file was written, with a yes."""
    page = somebody.log_in()
    say(page, "write")
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    return page, page.url.rpartition("/")[2]


def test_an_entry_says_what_led_to_it_and_what_it_led_to(somebody: Person) -> None:
    page, session = written(somebody)
    page.get_by_role("link", name="Timeline").last.click()
    rows(page, "the step ended")
    entry = page.get_by_role("region", name=re.compile("^Entry"))
    entry.get_by_role("button", name="the step began").click()
    entry.get_by_role("button", name="the question was answered").click()
    entry.get_by_role("button", name="you were asked").click()
    entry.get_by_role("button", name="the step was decided").click()
    entry.get_by_role("button", name="How would this be decided now?").click()
    expect(entry).to_contain_text("Now: ask")
    entry.get_by_role("button", name="a step was proposed").click()
    entry.get_by_role("button", name="the model answered").click()
    expect(entry).to_contain_text("I write.")
    entry.get_by_role("button", name="the model was shown this").click()
    entry.get_by_role("button", name="a message came").click()
    expect(entry).to_contain_text('"text": "write"')
    assert f"/timeline/{session}/" in page.url
    page.reload()
    expect(entry).to_contain_text('"text": "write"')
    assert serious(page) == []
    (somebody.daemon.workspace / "plan.txt").unlink()


def test_the_timeline_is_walked_with_the_keyboard(somebody: Person) -> None:
    session, entries = somebody.daemon.run("hello")
    page = somebody.log_in(f"/#/timeline/{session}")
    expect(page.get_by_role("option").first).to_be_visible()
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("region", name=f"Entry {entries[-1]['seq']}")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("region", name=f"Entry {entries[-1]['seq'] - 1}")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.get_by_role("region", name="Entry 1", exact=True)).to_be_visible()


def test_a_step_is_undone_a_run_replayed_and_taken_up_again_from_the_timeline(
    somebody: Person,
) -> None:
    page, session = written(somebody)
    plan = somebody.daemon.workspace / "plan.txt"
    assert plan.exists()
    page.goto(f"{somebody.daemon.url}/#/timeline/{session}")
    rows(page, "the step ended")
    page.get_by_role("button", name="Replay this run").click()
    expect(page.get_by_text("and did the same")).to_be_visible()
    page.get_by_role("button", name="Undo this step…").click()
    expect(page.locator(".tape-entry .diff .del").first).to_be_visible()
    assert plan.exists()
    page.get_by_role("button", name="Undo this now").click()
    expect(page.get_by_text("The undo is an entry of its own")).to_be_visible()
    assert not plan.exists()
    page.get_by_role("button", name="Run again from here…").click()
    expect(page.get_by_text("A branch begins that shares everything")).to_be_visible()
    page.get_by_role("button", name="Run it again now").click()
    expect(page.get_by_text("This continues another session.")).to_be_visible()
    expect(page.locator(".item:not(.shared)").get_by_text("It is settled.")).to_be_visible()


def test_a_hash_is_made_anew_in_the_browser_and_a_change_is_seen(
    browser: Browser, tmp_path: Path
) -> None:
    with start(tmp_path, script=script(tmp_path)) as daemon:
        session, entries = daemon.run("a word with ümlauts, “quotes” and \\ more")
        said = next(each["seq"] for each in entries if each["kind"] == "input.received")
        with person(browser, daemon) as somebody:
            page = somebody.log_in(f"/#/timeline/{session}/{said}")
            page.get_by_role("button", name="Check that it is unchanged").click()
            expect(page.locator(".tape-entry .badge.good")).to_have_text("unchanged")
        daemon.stop()
        with sqlite3.connect(daemon.home / "journal.db") as journal:
            for (name,) in journal.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                journal.execute(f'DROP TRIGGER "{name}"')
            body = journal.execute(
                "SELECT body FROM entries WHERE tape = ? AND seq = ?", (session, said)
            ).fetchone()[0]
            changed = body.replace(b"word", b"lie!")
            assert changed != body
            journal.execute(
                "UPDATE entries SET body = ? WHERE tape = ? AND seq = ?", (changed, session, said)
            )
        daemon.restart()
        with person(browser, daemon) as somebody:
            page = somebody.log_in(f"/#/timeline/{session}/{said}")
            page.get_by_role("button", name="Check that it is unchanged").click()
            expect(page.locator(".tape-entry .badge.bad")).to_have_text("changed")


def test_a_question_leads_to_its_moment_on_the_tape_and_can_be_edited_in_the_inbox(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    say(page, "write")
    expect(page.get_by_role("button", name="Allow once")).to_be_enabled()
    page.goto(f"{somebody.daemon.url}/#/approvals")
    page.get_by_label("Kind of step").select_option(label="write a file")
    page.get_by_role("link", name="See the moment on the timeline").click()
    expect(page.get_by_role("heading", name=re.compile("you were asked"))).to_be_visible()
    page.go_back()
    page.get_by_text("More ways to answer").click()
    page.get_by_role("button", name="Edit arguments").click()
    page.get_by_label("Arguments").fill('{"path": "plan.txt", "content": "edited\\n"}')
    page.get_by_role("button", name="Allow as edited").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    page.get_by_role("link", name="See the moment on the timeline").first.click()
    expect(page.get_by_role("heading", name=re.compile("you were asked"))).to_be_visible()
    plan = somebody.daemon.workspace / "plan.txt"
    assert plan.read_text() == "edited\n"
    plan.unlink()


def test_what_is_remembered_says_why_it_was_found_and_why_it_is_believed(somebody: Person) -> None:
    page = somebody.log_in("/#/memory")
    page.get_by_label("Something to remember").fill("The office is in Brno")
    page.get_by_role("button", name="Remember", exact=True).click()
    item = page.locator(".remembered").filter(has_text="office")
    item.get_by_role("button", name="Correct").click()
    page.get_by_label("Corrected text").fill("The office is in Ostrava")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("searchbox", name="Search memory").fill("where is the office")
    expect(item.get_by_role("list", name="Why it was found")).to_contain_text("the same words")
    item.get_by_text("Why do you believe this?").click()
    expect(item).to_contain_text("you said so")
    expect(item).to_contain_text("The office is in Brno")
    item.get_by_role("button", name="Forget").click()
    page.get_by_role("searchbox", name="Search memory").fill("")
    page.get_by_role("button", name="Forgotten").click()
    page.locator(".remembered").filter(has_text="Ostrava").get_by_role(
        "button", name="Remember it again"
    ).click()
    page.get_by_role("button", name="Remembered", exact=True).click()
    expect(page.locator(".remembered").filter(has_text="Ostrava")).to_be_visible()
    assert serious(page) == []
    somebody.daemon.post("/v1/memory/purge", {"everything": True})
