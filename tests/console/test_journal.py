"""The journal in the console: checked while one looks on, taken away as a file, backed up; and what
was tampered with is named.
"""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, say, serious
from tests.daemon import DaemonProcess, start


def test_every_entry_is_checked_while_one_looks_on(somebody: Person) -> None:
    somebody.daemon.run("hello")
    page = somebody.log_in("/#/journal")
    page.get_by_role("button", name="Verify journal").click()
    expect(page.get_by_text("Intact:")).to_contain_text("entries on")
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
        page.get_by_role("button", name="Verify journal").click()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text(
            f"first bad entry is number {changed['seq']} of tape {session}"
        )
        expect(alert).to_contain_text("palyra journal restore")
        assert serious(page) == []
        alert.get_by_role("link", name="Open timeline").click()
        expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


def test_the_journal_and_one_session_are_taken_away_as_files(
    somebody: Person, tmp_path: Path
) -> None:
    session, entries = somebody.daemon.run("hello")
    page = somebody.log_in("/#/journal")
    for what, least in (("", len(entries)), (session, len(entries))):
        page.get_by_role("combobox", name="Export").select_option(what)
        with page.expect_download() as started:
            page.get_by_role("link", name="Download", exact=True).first.click()
        started.value.save_as(tmp_path / "taken.ndjson")
        lines = [json.loads(line) for line in (tmp_path / "taken.ndjson").read_text().splitlines()]
        assert len(lines) >= least
        assert not what or {line["tape"] for line in lines} == {session}


def test_the_home_is_backed_up_and_the_backup_is_tried(somebody: Person) -> None:
    page = somebody.log_in("/#/journal")
    expect(page.get_by_text("Not scheduled, to")).to_be_visible()
    page.get_by_role("button", name="Back up home").click()
    expect(page.get_by_role("table", name="Archives").get_by_role("row").nth(1)).to_contain_text(
        ".palyra"
    )
    expect(page.get_by_text("Last backup:")).to_be_visible()
    page.get_by_role("button", name="Check newest").click()
    expect(page.get_by_text("Restored and verified")).to_be_visible()
    assert serious(page) == []
    newest = sorted((somebody.daemon.home / "backups").glob("*.palyra"))[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    page.get_by_role("button", name="Check newest").click()
    expect(page.get_by_text("cannot be restored")).to_be_visible()


def test_backups_are_scheduled_in_the_browser_without_a_restart(
    somebody: Person, tmp_path: Path
) -> None:
    page = somebody.log_in("/#/journal")
    home = page.get_by_role("region", name="Home backups")
    expect(home.get_by_text("Not scheduled")).to_be_visible()
    home.get_by_text("Backup settings", exact=True).click()
    home.get_by_label("Back up", exact=True).select_option("daily")
    home.get_by_label("Restore drill").select_option("weekly")
    home.get_by_label("Backups to keep").fill("0")
    expect(home.get_by_role("button", name="Save settings")).to_be_disabled()
    home.get_by_label("Backups to keep").fill("3")
    home.get_by_label("Target").fill(str(tmp_path))
    assert serious(page) == []
    home.get_by_role("button", name="Save settings").click()
    expect(home.get_by_text(f"Scheduled daily, to {tmp_path}. Keeps 3.")).to_be_visible()
    now = somebody.daemon.get("/v1/backups")
    assert (now["every"], now["drill"], now["keep"]) == ("daily", "weekly", 3)
    # Where the secrets are is not for a page to say.
    refused = somebody.daemon.request(
        "PATCH", "/v1/config", {"changes": {"backups.passphrase": "env:HOME"}}
    )
    assert refused.status == 400
    unset = {"backups.every": "", "backups.drill": "", "backups.keep": 7, "backups.target": ""}
    somebody.daemon.request("PATCH", "/v1/config", {"changes": unset})


def test_a_backup_is_made_listed_and_taken_away(somebody: Person, tmp_path: Path) -> None:
    page = somebody.log_in("/#/journal")
    page.get_by_role("button", name="Create backup").click()
    expect(page.get_by_text("entries copied and verified")).to_be_visible()
    row = page.get_by_role("table", name="Backups").get_by_role("row").nth(1)
    with page.expect_download() as started:
        row.get_by_role("link", name="Download").click()
    started.value.save_as(tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT count(*) FROM entries").fetchone()[0] > 0
    page.get_by_label("Folder (optional)").fill("relative")
    expect(page.get_by_text("Enter an absolute path")).to_be_visible()
    expect(page.get_by_role("button", name="Create backup")).to_be_disabled()
    page.get_by_label("Folder (optional)").fill(str(tmp_path))
    page.get_by_role("button", name="Create backup").click()
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


def test_a_file_leads_to_its_causes_and_on_to_the_timeline(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "write")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    page.goto(f"{somebody.daemon.url}/#/journal")
    plan = somebody.daemon.workspace / "plan.txt"
    page.get_by_label("What to explain").fill(str(plan))
    page.get_by_role("button", name="Find causes").click()
    causes = page.get_by_role("list", name="Causes")
    expect(causes).to_contain_text("fs.write plan.txt · ok: created plan.txt")
    expect(causes).to_contain_text("“write”")
    expect(causes).to_contain_text("user:owner")
    assert serious(page) == []
    page.reload()
    expect(causes).to_contain_text("fs.write plan.txt")
    page.get_by_label("What to explain").fill("/nowhere/at/all")
    page.get_by_role("button", name="Find causes").click()
    expect(page.get_by_text("no call of a session of yours changed")).to_be_visible()
    page.goto(f"{somebody.daemon.url}/#/journal?why={plan}")
    causes.get_by_role("link", name=re.compile("^Message")).click()
    expect(page.get_by_role("region", name=re.compile("^Entry"))).to_contain_text("write")
    plan.unlink()
