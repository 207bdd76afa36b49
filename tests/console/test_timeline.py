"""The timeline, the memory and the inbox's way to the tape: what happened, why, whether it is
unchanged, and back.
"""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from palyra.features.proof import verify_bundle
from tests.console.conftest import script
from tests.console_world import Person, file_text, person, say, serious
from tests.daemon import start


def rows(page: Page, words: str | re.Pattern[str]) -> None:
    page.get_by_role("listbox").get_by_role("option").filter(has_text=words).first.click()


def tab(page: Page, words: str) -> None:
    page.get_by_role("tab", name=words).click()


def written(somebody: Person) -> tuple[Page, str]:
    """A session in which a file was written, with a yes."""
    page = somebody.log_in()
    say(page, "write")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    return page, page.url.rpartition("/")[2]


def test_an_entry_says_what_led_to_it_and_what_it_led_to(somebody: Person) -> None:
    page, session = written(somebody)
    page.goto(f"{somebody.daemon.url}/#/timeline/{session}/view=entries")
    rows(page, "Tool finished")
    entry = page.get_by_role("region", name=re.compile("^Entry"))
    tab(page, "Why")
    causes = entry.get_by_role("list", name="Causes")
    expect(causes).to_contain_text("“write”")
    expect(causes).to_contain_text("Answered by")
    expect(entry).to_contain_text("1 file created: plan.txt; can be undone")
    entry.get_by_role("button", name="Tool started").click()
    entry.get_by_role("button", name="Approval answered").click()
    entry.get_by_role("button", name="Approval requested").click()
    entry.get_by_role("button", name="Policy decision").click()
    entry.get_by_role("button", name="Check against current policy").click()
    expect(entry).to_contain_text("Now: ask")
    entry.get_by_role("button", name="Tool call").click()
    entry.get_by_role("button", name="Model reply").click()
    entry.get_by_role("button", name="Prompt sent").click()
    entry.get_by_role("button", name="Message").click()
    tab(page, "JSON")
    expect(entry).to_contain_text('"text": "write"')
    assert f"/timeline/{session}/" in page.url
    page.reload()
    expect(entry).to_contain_text('"text": "write"')
    assert serious(page) == []
    (somebody.daemon.workspace / "plan.txt").unlink()


def test_all_activity_shows_the_runs_of_every_session_as_they_come(somebody: Person) -> None:
    daemon = somebody.daemon
    session, _ = daemon.run("hello")
    page = somebody.log_in("/#/timeline")
    rows = page.get_by_role("table", name="All activity").locator("tbody tr")
    expect(rows.first).to_contain_text("Done")
    expect(rows.first).to_contain_text("you")
    before = rows.count()
    daemon.run("hello")
    expect(rows).to_have_count(before + 1)
    asking = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{asking}/messages", {"text": "write"})
    expect(rows.first).to_contain_text("Needs approval")
    daemon.post("/v1/stop")
    expect(rows.first).to_contain_text("Cancelled")
    page.get_by_role("button", name="Failed", exact=True).click()
    page.reload()
    expect(page.get_by_role("button", name="Failed", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("group", name="Runs").get_by_role("button", name="All").click()
    assert serious(page) == []
    found = daemon.get("/v1/runs?limit=2")
    older = daemon.get(f"/v1/runs?limit=2&before={found['next']}")
    ids = [each["run_id"] for each in (*found["runs"], *older["runs"])]
    assert ids == sorted(ids, reverse=True)
    assert session in [each["session_id"] for each in (*found["runs"], *older["runs"])]


def test_the_timeline_is_walked_with_the_keyboard(somebody: Person) -> None:
    session, entries = somebody.daemon.run("hello")
    page = somebody.log_in(f"/#/timeline/{session}/view=entries")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
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
    rows(page, re.compile(r"^fs\.write plan\.txt"))
    page.get_by_role("button", name="Replay run").click()
    expect(page.get_by_text("every step matches")).to_be_visible()
    page.get_by_role("button", name="Undo…").click()
    expect(page.locator(".tape-entry .diff .del").first).to_be_visible()
    assert plan.exists()
    page.get_by_role("button", name="Undo changes").click()
    expect(page.get_by_text("The undo is recorded as a new entry.")).to_be_visible()
    assert not plan.exists()
    page.get_by_role("button", name="Fork…").click()
    expect(page.get_by_text("A new session shares everything up to this entry.")).to_be_visible()
    page.get_by_role("button", name="Fork and run").click()
    expect(page.get_by_text("Branched from another session.")).to_be_visible()
    expect(page.locator(".item:not(.shared)").get_by_text("It is settled.")).to_be_visible()


def test_a_hash_is_made_anew_in_the_browser_and_a_change_is_seen(
    browser: Browser, tmp_path: Path
) -> None:
    with start(tmp_path, script=script(tmp_path)) as daemon:
        session, entries = daemon.run("a word with ümlauts, “quotes” and \\ more")
        said = next(each["seq"] for each in entries if each["kind"] == "input.received")
        with person(browser, daemon) as somebody:
            page = somebody.log_in(f"/#/timeline/{session}/{said}")
            tab(page, "Proof")
            page.get_by_role("button", name="Verify entry").click()
            expect(page.locator(".tape-entry .badge.good")).to_have_text("Verified")
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
            tab(page, "Proof")
            page.get_by_role("button", name="Verify entry").click()
            expect(page.locator(".tape-entry .badge.bad")).to_have_text("Changed")


def test_a_question_leads_to_its_moment_on_the_tape_and_can_be_edited_in_the_inbox(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    say(page, "write")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    page.goto(f"{somebody.daemon.url}/#/approvals")
    page.get_by_label("Tool").select_option(label="write a file")
    page.get_by_role("link", name="Show on timeline").click()
    expect(page.get_by_role("heading", name=re.compile("Approval requested"))).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("content").fill("edited\n")
    page.get_by_role("button", name="Approve edited").click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    page.get_by_role("link", name="Show on timeline").first.click()
    expect(page.get_by_role("heading", name=re.compile("Approval requested"))).to_be_visible()
    plan = somebody.daemon.workspace / "plan.txt"
    assert file_text(plan) == "edited\n"
    plan.unlink()


def test_what_is_remembered_says_why_it_was_found_and_why_it_is_believed(somebody: Person) -> None:
    page = somebody.log_in("/#/memory")
    page.get_by_label("New memory").fill("The office is in Brno")
    page.get_by_role("button", name="Add memory").click()
    item = page.locator(".remembered").filter(has_text="office")
    item.get_by_role("button", name="Edit").click()
    page.get_by_label("Edited text").fill("The office is in Ostrava")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("searchbox", name="Search memory").fill("where is the office")
    expect(item.get_by_role("list", name="Score details")).to_contain_text("keywords")
    item.get_by_text("Where does this come from?").click()
    expect(item).to_contain_text("from you")
    expect(item).to_contain_text("The office is in Brno")
    item.get_by_role("button", name="Forget").click()
    page.get_by_role("searchbox", name="Search memory").fill("")
    page.get_by_role("button", name="Forgotten").click()
    page.locator(".remembered").filter(has_text="Ostrava").get_by_role(
        "button", name="Restore"
    ).click()
    page.get_by_role("button", name="Active", exact=True).click()
    expect(page.locator(".remembered").filter(has_text="Ostrava")).to_be_visible()
    assert serious(page) == []
    somebody.daemon.post("/v1/memory/purge", {"everything": True})


def test_a_session_is_exported_with_its_proof(somebody: Person, tmp_path: Path) -> None:
    session, _ = somebody.daemon.run("hello")
    page = somebody.log_in(f"/#/timeline/{session}")
    with page.expect_download() as given:
        page.get_by_role("button", name="Export with proof").click()
    bundle = tmp_path / "bundle.json"
    given.value.save_as(bundle)
    checked = subprocess.run(
        [sys.executable, verify_bundle.__file__, str(bundle)], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
