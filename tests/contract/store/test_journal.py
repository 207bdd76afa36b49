"""The journal's database: group commit, savepoints, order, durability, migrations, backup."""

import asyncio
import shutil
import stat
from pathlib import Path

import apsw
import msgspec
import psycopg
import pytest

from palyra.core.errors import (
    ChainBroken,
    ConfigInvalid,
    Conflict,
    IllegalTransition,
    NotFound,
    Unavailable,
)
from palyra.core.events import Entry, RunAccepted, RunCompleted, RunStarted
from palyra.store import migrations, sqlite_files, tape
from palyra.store.database import Database, Tx
from palyra.store.migrations import Migration
from palyra.store.sqlite import Sqlite
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.verify import verify
from tests.journals import FailingDisk, new_id, note, noting, opened, run

_REFUSALS = (apsw.ConstraintError, psycopg.IntegrityError)


def test_a_step_that_fails_leaves_no_trace_and_does_not_harm_its_neighbours(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            one, two = new_id(), new_id()

            def fails(tx: Tx) -> None:
                noting(one, "never")(tx)
                raise Conflict("no")

            results = await asyncio.gather(
                db.write(noting(one, "a")),
                db.write(fails),
                db.write(noting(two, "b")),
                return_exceptions=True,
            )
            assert isinstance(results[1], Conflict)
            texts = [bytes(entry.event) for t in (one, two) for entry in await _entries(db, t)]
            assert len(texts) == 2
            report = await db.read(verify)
            assert (report.ok, report.entries, report.tapes) == (True, 2, 2)

    run(scenario())


async def _entries(db: Database, tape_id: str) -> list[Entry]:
    stored = await db.read(lambda tx: tape.after(tx, tape_id, 0))
    return [msgspec.json.decode(entry.wire, type=Entry) for entry in stored]


@pytest.mark.sqlite
def test_entries_are_published_only_after_they_are_durable_and_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            seen: list[int] = []
            reader = Sqlite(tmp_path / "j.db").open_reader()

            def check(appended: list[tape.Appended]) -> None:
                for entry in appended:
                    assert reader.all(
                        "SELECT count(*) FROM entries WHERE position = :p", {"p": entry.position}
                    ) == [(1,)]
                    seen.append(entry.position)

            db.on_commit.connect(check)
            tapes = [new_id() for _ in range(5)]
            await asyncio.gather(*(db.write(noting(tapes[n % 5], f"{n}")) for n in range(200)))
            assert seen == list(range(1, 201))
            reader.close()

    run(scenario())


def test_a_cancelled_caller_does_not_wedge_the_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            future = db.write(noting("t", "a"))
            future.cancel()
            await db.write(noting("t", "b"))
            assert len(await _entries(db, "t")) == 2

    run(scenario())


def test_the_bytes_hashed_are_the_bytes_stored_and_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            sent: list[bytes] = []
            db.on_commit.connect(lambda appended: sent.extend(entry.wire for entry in appended))
            await db.write(noting("t", "héllo ☃"))
            stored = await db.read(lambda tx: tape.after(tx, "t", 0))
            assert [entry.wire for entry in stored] == sent
            body = await db.read(lambda tx: tx.one("SELECT body FROM entries"))
            assert body is not None
            assert bytes(body[0]) in sent[0]

    run(scenario())


def test_an_illegal_event_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            rid = new_id()
            await db.write(
                lambda tx: tape.append(
                    tx,
                    "t",
                    "user:owner",
                    [RunAccepted(), RunStarted(), RunCompleted(text="x")],
                    rid,
                )
            )
            with pytest.raises(IllegalTransition):
                await db.write(
                    lambda tx: tape.append(
                        tx, "t", "user:owner", [note("kept?"), RunCompleted(text="y")], rid
                    )
                )
            assert len(await _entries(db, "t")) == 3

    run(scenario())


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET body = x'00'", "DELETE FROM entries", "UPDATE entries SET seq = 9"]
)
def test_the_database_itself_refuses_to_change_history(tmp_path: Path, sql: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            await db.write(noting("t", "a"))
            with pytest.raises(_REFUSALS, match="append-only"):
                await db.write(lambda tx: tx.run(sql))
            assert (await db.read(verify)).ok

    run(scenario())


@pytest.mark.sqlite
def test_the_journal_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            await db.write(noting("t", "a"))
            for name in ("j.db", "j.db-wal"):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    run(scenario())


@pytest.mark.sqlite
def test_a_migration_that_was_changed_after_it_was_applied_is_refused(tmp_path: Path) -> None:
    connection = Sqlite(tmp_path / "j.db").open_writer()
    changed = (
        Migration(1, MIGRATIONS[0].name, (*MIGRATIONS[0].statements, "SELECT 1")),
        *MIGRATIONS[1:],
    )
    with pytest.raises(ConfigInvalid, match="migration 1"):
        migrations.apply(connection, changed)
    connection.close()


@pytest.mark.sqlite
def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    connection = Sqlite(tmp_path / "j.db").open_writer()
    with pytest.raises(ConfigInvalid, match="newer palyra"):
        migrations.apply(connection, ())
    connection.close()


@pytest.mark.sqlite
def test_migrations_are_applied_once_and_in_one_piece(tmp_path: Path) -> None:
    connection = Sqlite(tmp_path / "j.db").open_writer()
    assert migrations.apply(connection, MIGRATIONS) == []
    broken = (*MIGRATIONS, Migration(900, "broken", ("CREATE TABLE half (x)", "CREATE NONSENSE")))
    with pytest.raises(apsw.SQLError):
        migrations.apply(connection, broken)
    connection.rollback()
    assert connection.all("SELECT name FROM sqlite_master WHERE name = 'half'") == []
    connection.close()


_disks = iter(range(10**6))


@pytest.mark.sqlite
@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from-then-on"])
def test_a_failing_disk_never_loses_an_acknowledged_entry(
    tmp_path: Path, error: type[apsw.Error], sticky: bool
) -> None:
    """The disk fails at the n-th write or sync, for every n until a whole workload goes through
    without reaching it.
    """
    made = tmp_path / "made.db"
    run(_read_back(made))
    for fail_at in range(1, 400):
        path = tmp_path / f"{fail_at}.db"
        # Making its tables is no part of it.
        shutil.copyfile(made, path)
        disk = FailingDisk(f"failing-{next(_disks)}")
        acknowledged = run(_write_on(path, disk, fail_at, error, sticky=sticky))
        found = run(_read_back(path))
        missing = [text for text in acknowledged if text not in found]
        assert not missing, f"failing at call {fail_at} lost {missing}"
        if disk.calls < fail_at:
            assert fail_at > 20, "the workload is too small to mean anything"
            return
    pytest.fail("the workload never got through")


async def _write_on(
    path: Path, disk: FailingDisk, fail_at: int, error: type[apsw.Error], *, sticky: bool
) -> list[str]:
    acknowledged: list[str] = []
    refusals: list[str] = []
    async with opened(path, vfs=disk.name) as db:
        await db.write(noting("t", "first"))
        acknowledged.append("first")
        disk.arm(fail_at, error, sticky=sticky)
        for n in range(12):
            text = f"entry {n} " + "x" * 3000
            try:
                await db.write(noting("t", text))
                acknowledged.append(text)
            except Unavailable as refused:
                refusals.append(refused.message)
        disk.fail_at = 0
        assert all("nothing acknowledged was lost" in message for message in refusals)
        # The disk works again: so does the journal, without a restart.
        await db.write(noting("t", "last"))
        acknowledged.append("last")
        assert (await db.read(verify)).ok
    return acknowledged


async def _read_back(path: Path) -> set[str]:
    async with opened(path) as db:
        assert (await db.read(verify)).ok
        entries = await _entries(db, "t")
        return {msgspec.json.decode(entry.event)["title"] for entry in entries}


@pytest.mark.sqlite
def test_a_damaged_file_is_an_error_that_says_what_to_do_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(Unavailable, match="restore"):
        run(_read_back(path))
    assert path.read_bytes() == b"this is not a database" * 100


@pytest.mark.sqlite
def test_a_backup_of_a_journal_in_use_is_whole_and_can_be_restored(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal, copy = tmp_path / "j.db", tmp_path / "copy.db"
        async with opened(journal) as db:
            for n in range(50):
                await db.write(noting("t", f"{n}"))
            writing = asyncio.create_task(_keep_writing(db))
            report = await asyncio.to_thread(sqlite_files.backup, journal, copy)
            writing.cancel()
            assert report.ok
            assert report.entries >= 50
            with pytest.raises(Conflict):
                sqlite_files.backup(journal, copy)
        sqlite_files.restore(copy, journal, tmp_path / "aside.db")
        async with opened(journal) as db:
            assert (await db.read(verify)).entries == report.entries
            await db.write(noting("t", "after"))
            assert (await db.read(verify)).ok
        assert sqlite_files.inspect(tmp_path / "aside.db").entries >= report.entries

    run(scenario())


async def _keep_writing(db: Database) -> None:
    n = 0
    while True:
        await db.write(noting("t", f"more {n}"))
        n += 1


@pytest.mark.sqlite
def test_a_backup_that_does_not_verify_is_not_restored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "bad.db") as db:
            await db.write(noting("t", "a"))

    run(scenario())
    raw = apsw.Connection(str(tmp_path / "bad.db"))
    raw.execute(
        "DROP TRIGGER entries_are_never_changed; UPDATE entries SET principal = 'user:mallory'"
    )
    raw.close()
    (tmp_path / "j.db").write_bytes(b"present")
    with pytest.raises(ChainBroken):
        sqlite_files.restore(tmp_path / "bad.db", tmp_path / "j.db", tmp_path / "aside.db")
    assert (tmp_path / "j.db").read_bytes() == b"present"
    assert sqlite_files.missing_guards(tmp_path / "bad.db") == ["entries_are_never_changed"]


@pytest.mark.sqlite
def test_a_missing_backup_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        sqlite_files.restore(tmp_path / "none.db", tmp_path / "j.db", tmp_path / "aside.db")
