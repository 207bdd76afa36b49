"""Every schema since the first is upgraded with nothing lost, and a verified copy is made before."""

import asyncio
from pathlib import Path

import apsw
import pytest

from palyra.core.errors import Unavailable
from palyra.features.backups import home_copy
from palyra.features.proof.service import JournalProof
from palyra.serve.wiring import upgrade
from palyra.store import sqlite_files, tokens, tree
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.tree import StoredCheckpoint
from tests.inprocess import daemon
from tests.proving import relink, retile, unguarded, verified
from tests.upgrading import older_home

SCHEMAS = [each.number for each in MIGRATIONS[:-1]]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_journal_of_every_schema_is_copied_upgraded_and_proven(
    schema: int, tmp_path: Path
) -> None:
    older_home(tmp_path / "home", schema)

    async def scenario() -> list[str]:
        async with daemon(tmp_path, []) as d:
            await d.get(JournalProof).checkpoint()
            return [token.name for _, token in await d.db.read(tokens.valid)]

    assert "old" in asyncio.run(scenario())
    report = verified(tmp_path / "home")
    assert report.ok
    assert report.vouched is not None
    assert report.vouched.size >= 3
    copy = tmp_path / "home" / "backups" / f"before-upgrade-from-schema-{schema}"
    kept = sqlite_files.inspect(copy / "journal.db")
    assert (kept.ok, kept.entries) == (True, 3)
    assert (copy / "keys" / "seal.key").exists()
    raw = apsw.Connection(str(copy / "journal.db"))
    assert raw.execute("SELECT max(number) FROM migrations").get == schema


@pytest.mark.parametrize("schema", [1, 27, SCHEMAS[-1]])
def test_what_a_migration_left_is_signed_for_at_once(schema: int, tmp_path: Path) -> None:
    older_home(tmp_path / "home", schema)

    async def scenario() -> StoredCheckpoint | None:
        async with daemon(tmp_path, []) as d:
            return await d.db.read(tree.newest_checkpoint)

    newest = asyncio.run(scenario())
    assert newest is not None
    assert newest.size >= 3


@pytest.mark.parametrize("schema", [1, 20, 27, SCHEMAS[-1]])
def test_what_a_killed_daemon_left_is_signed_for_before_its_schema_changes(
    schema: int, tmp_path: Path
) -> None:
    """The checkpoint is over the entries that were there before, not over what came after."""
    home = tmp_path / "home"
    journal = older_home(home, schema)
    before = journal.read_bytes()
    for _ in range(2):
        assert upgrade.copy_before_migration(home, origin="example.org/log") is not None
    mark = (home / "keys" / "journal.checkpoint").read_text()
    assert mark.splitlines()[:2] == ["example.org/log", "3"]
    assert journal.read_bytes() == before

    async def scenario() -> list[StoredCheckpoint]:
        async with daemon(tmp_path, [], '[journal]\norigin = "example.org/log"\n') as d:
            return await d.db.read(tree.checkpoints)

    found = asyncio.run(scenario())
    assert (found[0].size, found[0].note) == (3, mark)
    assert verified(home).ok
    # Who changes what was there before the upgrade is found by it.
    raw = unguarded(journal)
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    relink(raw)
    retile(raw)
    raw.execute("DELETE FROM checkpoints WHERE size > 3")
    raw.close()
    assert not verified(home).ok


def test_a_journal_that_does_not_verify_is_not_signed_for_before_an_upgrade(
    tmp_path: Path,
) -> None:
    raw = unguarded(older_home(tmp_path / "home", 20))
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    raw.close()
    assert upgrade.copy_before_migration(tmp_path / "home") is not None
    assert not (tmp_path / "home" / "keys" / "journal.checkpoint").exists()


def test_a_journal_of_this_version_is_not_copied(tmp_path: Path) -> None:
    async def twice() -> None:
        for _ in range(2):
            async with daemon(tmp_path, []):
                pass

    asyncio.run(twice())
    assert not (tmp_path / "home" / "backups").exists()


def test_without_room_for_the_copy_nothing_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = older_home(tmp_path / "home", 20)
    before = journal.read_bytes()
    monkeypatch.setattr(home_copy, "free", lambda folder: 1_000_000)
    with pytest.raises(Unavailable, match=r"needs \d+ MB in .*, and 1 MB are free") as refused:
        upgrade.copy_before_migration(tmp_path / "home")
    assert refused.value.details["needed_bytes"] > journal.stat().st_size
    assert journal.read_bytes() == before


def test_a_copy_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    older_home(tmp_path / "home", 20)
    partial = tmp_path / "home" / "backups" / "before-upgrade-from-schema-20.partial"
    partial.mkdir(parents=True)
    (partial / "journal.db").write_bytes(b"half")
    made = upgrade.copy_before_migration(tmp_path / "home")
    assert made is not None
    assert sqlite_files.inspect(made / "journal.db").ok
    assert not partial.exists()
    assert upgrade.copy_before_migration(tmp_path / "home") == made


def test_a_journal_that_does_not_verify_is_copied_as_it_is(tmp_path: Path) -> None:
    journal = older_home(tmp_path / "home", 20)
    raw = apsw.Connection(str(journal))
    raw.execute("DROP TRIGGER entries_are_never_changed")
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    raw.close()
    made = upgrade.copy_before_migration(tmp_path / "home")
    assert made is not None
    assert not sqlite_files.inspect(made / "journal.db").ok
