"""The journal moves to a server and back: every row arrives, and a session goes on where it was."""

import json
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from palyra.store import transfer
from palyra.store.postgres import Postgres
from palyra.store.sqlite import Sqlite
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess, configure, launch
from tests.postgres_server import server

_SCRIPT = {"*": [{"text": "noted"}] * 3}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    configure(tmp_path / "home", script=_SCRIPT)
    return tmp_path / "home"


def _talk(home: Path, text: str) -> list[str]:
    """Say something in the one session that there is; returns what was said in it so far."""
    daemon = launch(home, home.parent / "work")
    try:
        session = daemon.post("/v1/sessions", {"key": "moved"})["session_id"]
        _, entries = daemon.run(text, session)
        assert entries[-1]["kind"] == "run.completed", str(entries[-2:])
        return _messages(daemon, session)
    finally:
        daemon.stop()


def _messages(daemon: DaemonProcess, session: str) -> list[str]:
    found: list[Any] = daemon.get(f"/v1/sessions/{session}/entries")["entries"]
    return [each["event"]["text"] for each in found if each["kind"] == "input.received"]


def _verified(home: Path) -> Any:
    daemon = launch(home, home.parent / "work")
    try:
        return daemon.get("/v1/journal/verify?deep=true")
    finally:
        daemon.stop()


def test_a_journal_moves_to_a_server_and_back_and_every_session_goes_on(home: Path) -> None:
    there = server().database(home)
    assert _talk(home, "one") == ["one"]
    dry = json.loads(palyra(home, "--json", "migrate", "--to", there, "--dry-run").stdout)
    assert dry["tables"]["entries"] > 3
    assert "moved" not in dry

    moved = palyra(home, "migrate", "--to", there, "--yes")
    assert moved.returncode == 0, moved.stderr
    assert not (home / "journal.db").exists()
    assert _talk(home, "two") == ["one", "two"]
    assert not (home / "journal.db").exists()
    report = _verified(home)
    assert report["ok"], report
    # Where it is already, it does not go.
    again = palyra(home, "migrate", "--to", there, "--yes")
    assert again.returncode != 0
    assert "already" in again.stderr

    back = palyra(home, "--json", "migrate", "--to", "sqlite", "--yes")
    assert back.returncode == 0, back.stderr
    assert _talk(home, "three") == ["one", "two", "three"]
    assert (home / "journal.db").exists()
    assert _verified(home)["ok"]


def test_a_copy_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, home: Path) -> None:
    _talk(home, "one")
    journal, there = home / "journal.db", server().database(tmp_path)
    source, target = Sqlite(journal).open_reader(), Postgres(there, receives=True).open_writer()
    source.begin_read()
    portions = 0

    def breaks(table: str, rows: int) -> None:
        nonlocal portions
        portions += 1
        if portions == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        transfer.copy(source, target, breaks)
    target.close()
    source.close()
    # Half a journal is not taken for one.
    (home / "config.toml").write_text(
        (home / "config.toml").read_text() + f'\n[journal]\nstore = "{there}"\n'
    )
    journal.rename(home / "aside.db")
    with pytest.raises(AssertionError, match="beginning of a copy"):
        _talk(home, "no")
    (home / "aside.db").rename(journal)
    text = (home / "config.toml").read_text().replace(f'\n[journal]\nstore = "{there}"\n', "")
    (home / "config.toml").write_text(text)
    done = palyra(home, "migrate", "--to", there, "--yes")
    assert done.returncode == 0, done.stderr
    assert _talk(home, "two") == ["one", "two"]


def test_what_changed_after_a_broken_copy_is_noticed(tmp_path: Path, home: Path) -> None:
    _talk(home, "one")
    there = server().database(tmp_path)
    source, target = (
        Sqlite(home / "journal.db").open_reader(),
        Postgres(there, receives=True).open_writer(),
    )
    transfer.copy(source, target)
    target.close()
    source.close()
    raw = apsw.Connection(str(home / "journal.db"))
    raw.execute("UPDATE sessions SET title = 'otherwise'")
    raw.close()
    done = palyra(home, "migrate", "--to", there, "--yes")
    assert done.returncode != 0
    assert "differs" in done.stderr
    assert (home / "journal.db").exists()


def test_a_journal_that_does_not_verify_stays_where_it_is(tmp_path: Path, home: Path) -> None:
    _talk(home, "one")
    raw = apsw.Connection(str(home / "journal.db"))
    raw.execute("DROP TRIGGER entries_are_never_changed")
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    raw.close()
    there = server().database(tmp_path)
    done = palyra(home, "migrate", "--to", there, "--yes")
    assert done.returncode != 0
    assert "does not verify" in done.stderr
    with psycopg.connect(there) as other:
        row = other.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert row == (0,)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:secret@127.0.0.1/x", "must not hold a password"),
        ("mysql://127.0.0.1/x", "must be empty"),
        ("postgresql://me@127.0.0.1:9/x", "does not answer"),
        ("env:NOWHERE", "NOWHERE"),
    ],
)
def test_an_address_that_cannot_be_used_says_why(home: Path, address: str, said: str) -> None:
    _talk(home, "one")
    done = palyra(home, "migrate", "--to", address, "--yes")
    assert done.returncode != 0
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert (home / "journal.db").exists()


def test_a_restored_file_beside_a_server_is_never_passed_over(tmp_path: Path, home: Path) -> None:
    _talk(home, "one")
    there = server().database(tmp_path)
    assert palyra(home, "migrate", "--to", there, "--yes").returncode == 0
    _talk(home, "two")
    (kept,) = (home / "backups").glob("replaced-*.db")
    assert palyra(home, "journal", "restore", str(kept)).returncode == 0
    with pytest.raises(AssertionError, match="there are two journals"):
        _talk(home, "no")
    assert palyra(home, "config", "unset", "journal.store").returncode == 0
    assert _talk(home, "again") == ["one", "again"]
