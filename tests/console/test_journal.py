"""The journal in the console: checked while one looks on, taken away as a file, backed up; and what
was tampered with is named.
"""

import json
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, serious
from tests.daemon import DaemonProcess, start


def test_every_entry_is_checked_while_one_looks_on(somebody: Person) -> None:
    somebody.daemon.run("hello")
    page = somebody.log_in("/#/journal")
    page.get_by_role("button", name="Check every entry").click()
    expect(page.get_by_text("Whole:")).to_contain_text("entries on")
    assert serious(page) == []


def test_the_first_entry_that_was_tampered_with_is_named(browser: Browser, tmp_path: Path) -> None:
    with (
        start(tmp_path, script={"*": [{"text": "Hello."}]}) as daemon,
        person(browser, daemon) as somebody,
    ):
        session, entries = daemon.run("hello")
        changed = next(entry for entry in entries if entry["kind"] == "model.replied")
        with sqlite3.connect(daemon.home / "journal.db") as raw:
            trigger = raw.execute(
                "SELECT sql FROM sqlite_master WHERE name = 'entries_are_never_changed'"
            ).fetchone()[0]
            raw.execute("DROP TRIGGER entries_are_never_changed")
            raw.execute(
                "UPDATE entries SET principal = 'user:mallory' WHERE position = ?",
                (changed["position"],),
            )
            raw.execute(trigger)
        page = somebody.log_in("/#/journal")
        page.get_by_role("button", name="Check every entry").click()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text(
            f"first bad entry is number {changed['seq']} of tape {session}"
        )
        expect(alert).to_contain_text("palyra journal restore")
        assert serious(page) == []
        alert.get_by_role("link", name="See that tape").click()
        expect(page.get_by_role("option").first).to_be_visible()


def test_the_journal_and_one_session_are_taken_away_as_files(
    somebody: Person, tmp_path: Path
) -> None:
    session, entries = somebody.daemon.run("hello")
    page = somebody.log_in("/#/journal")
    for what, least in (("", len(entries)), (session, len(entries))):
        page.get_by_label("What").select_option(what)
        with page.expect_download() as started:
            page.get_by_role("link", name="Download", exact=True).first.click()
        started.value.save_as(tmp_path / "taken.ndjson")
        lines = [json.loads(line) for line in (tmp_path / "taken.ndjson").read_text().splitlines()]
        assert len(lines) >= least
        assert not what or {line["tape"] for line in lines} == {session}


def test_a_backup_is_made_listed_and_taken_away(somebody: Person, tmp_path: Path) -> None:
    page = somebody.log_in("/#/journal")
    page.get_by_role("button", name="Make a backup").click()
    expect(page.get_by_text("entries are copied and checked")).to_be_visible()
    row = page.get_by_role("table", name="Backups").get_by_role("row").nth(1)
    with page.expect_download() as started:
        row.get_by_role("link", name="Download").click()
    started.value.save_as(tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT count(*) FROM entries").fetchone()[0] > 0
    page.get_by_label("Another folder").fill("relative")
    expect(page.get_by_text("Begin with a slash")).to_be_visible()
    expect(page.get_by_role("button", name="Make a backup")).to_be_disabled()
    page.get_by_label("Another folder").fill(str(tmp_path))
    page.get_by_role("button", name="Make a backup").click()
    expect(page.get_by_text(str(tmp_path))).to_be_visible()
    assert len(list(tmp_path.glob("journal-*.db"))) == 1


@pytest.mark.parametrize("name", ["..%2Fowner.token", "nothing.db", "link.db"])
def test_only_backups_are_handed_out(daemon: DaemonProcess, name: str) -> None:
    folder = daemon.home / "backups"
    folder.mkdir(exist_ok=True)
    (folder / "link.db").unlink(missing_ok=True)
    (folder / "link.db").symlink_to(daemon.home / "owner.token")
    assert daemon.request("GET", f"/v1/journal/backups/{name}").status in (400, 404)
    assert "link.db" not in [each["name"] for each in daemon.get("/v1/journal/backups")["backups"]]
