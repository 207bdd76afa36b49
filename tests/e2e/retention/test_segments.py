"""Putting old sessions away: everything can still be proved, searched and brought back, and nothing
that is in use is touched.
"""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.agent.message_inputs import Attaching
from palyra.core.errors import Conflict, NotFound
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.retention import rows as retention_rows
from palyra.features.retention.service import ARCHIVE, CLEAN, DAY_MS, MAINTAIN, Archived
from palyra.features.schedules import rows as schedule_rows
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import artifacts, sqlite_files
from palyra.store.segments import folder_of
from palyra.store.sessions import Session
from palyra.store.verify import VerifyReport
from tests.crash.scenarios import call
from tests.faults import in_daemon, permit_all
from tests.inprocess import entries, finished, kinds, say, session, until

LONG = "one of many lines\n" * 900
TALK = [
    Turn(calls=(call("test.pure", text=LONG), call("fs.write", path="a.txt", content="x"))),
    Turn(text=("the lighthouse keeper answered",)),
]
TALKING = {"begin": TALK, "again": [Turn(text=("and so on",))]}


async def talked(d: Daemon, **wanted: Any) -> Session:
    where = await session(d, **wanted)
    await finished(d, await say(d, where, "begin"))
    return where


async def grown_old(d: Daemon, *which: Session, days: int = 40) -> None:
    at = d.clock.now_ms() - days * DAY_MS
    for each in which:
        await d.db.write(
            lambda tx, each=each: tx.run(  # type: ignore[misc]
                "UPDATE sessions SET updated_ms = :at WHERE session_id = :id",
                at=at,
                id=each.session_id,
            )
        )


async def put_away(d: Daemon, *which: Session) -> Archived:
    await grown_old(d, *which)
    return await d.retention.archive_old(30)


async def count(d: Daemon, table: str, key: str, value: str) -> int:
    return int(
        (
            await d.db.read(
                lambda tx: tx.all(f"SELECT count(*) FROM {table} WHERE {key} = :value", value=value)
            )
        )[0][0]
    )


def verified(folder: Path) -> VerifyReport:
    return sqlite_files.inspect(folder / "home/journal.db")


def test_a_session_that_was_put_away_and_brought_back_reads_the_same(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await talked(d, key="old")
        before = await entries(d, where.session_id)
        whole = verified(tmp_path)
        report = await put_away(d, where)
        assert [each.session_id for each in report.sessions] == [where.session_id]
        assert (report.entries, len(report.segments)) == (len(before), 1)
        assert report.sealed_bytes < report.bytes
        for table, key in (
            ("entries", "tape"),
            ("artifacts", "session_id"),
            ("effects", "session_id"),
        ):
            assert await count(d, table, key, where.session_id) == 0
        after = verified(tmp_path)
        assert after.ok, after.bad
        # Nothing is missing: only what tells of it has been added, and two checkpoints.
        assert (after.entries, after.tapes, after.segments) == (
            whole.entries + 3,
            whole.tapes + 1,
            1,
        )

        back = await d.retention.restore(OWNER, where.session_id)
        assert (back.segment_id, back.archived) == ("", False)
        assert await entries(d, where.session_id) == before
        (large,) = [
            entry
            for entry in before
            if entry.kind == "tool.finished" and b'"artifact"' in bytes(entry.event)
        ]
        assert LONG.encode() in [
            row[0]
            for row in await d.db.read(
                lambda tx: tx.all(
                    "SELECT body FROM artifacts WHERE session_id = :id", id=where.session_id
                )
            )
        ], large
        # It goes on, and what it did can be undone.
        await finished(d, await say(d, where, "again"))
        assert (await d.undoing.undo(OWNER, where.session_id, Undo())).changes
        assert verified(tmp_path).ok

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def test_what_was_put_away_is_hidden_can_be_searched_and_says_how_to_get_it_back(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await talked(d)
        assert (await d.transcripts.search(OWNER, "lighthouse", 5, semantic=False)).found
        await put_away(d, where)
        assert await d.sessions.listing(OWNER, archived=False, before="", limit=10) == []
        (shown,) = await d.sessions.listing(OWNER, archived=True, before="", limit=10)
        assert shown.segment_id == (await d.retention.listing())[0].segment_id
        (found,) = (await d.transcripts.search(OWNER, "lighthouse", 5, semantic=False)).found
        assert (found.session_id, found.snippet) == (
            where.session_id,
            "the lighthouse keeper answered",
        )
        with pytest.raises(Conflict, match="sessions restore"):
            await say(d, where, "again")
        with pytest.raises(Conflict, match="sessions restore"):
            await d.sessions.change(OWNER, where.session_id, title=None, archived=False)
        assert (await d.sessions.get(OWNER, where.session_id)).title == "begin"

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario, "[memory]\nembeddings = false\n")


def test_what_is_young_kept_working_or_branched_from_stays(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        young, kept, parent = await talked(d), await talked(d), await talked(d)
        branch = await d.sessions.branch(OWNER, parent.session_id, None, "")
        await d.sessions.change(OWNER, kept.session_id, title=None, archived=None, kept=True)
        asking = await session(d)
        await say(d, asking, "ask")
        await until(d, asking.session_id, "run.started")
        await grown_old(d, kept, parent, asking)
        dry = await d.retention.archive_old(30, dry_run=True)
        assert (dry.sessions, dry.entries, dry.segments) == ([], 0, [])
        assert (await d.retention.archive_old(30)).sessions == []
        # When its branch goes, so can it; and it comes back with its branch.
        await grown_old(d, branch)
        assert [
            each.session_id for each in (await d.retention.archive_old(30, dry_run=True)).sessions
        ] == [branch.session_id]
        report = await d.retention.archive_old(30)
        assert {each.session_id for each in report.sessions} == {
            branch.session_id,
            parent.session_id,
        }
        assert verified(tmp_path).ok
        await d.retention.restore(OWNER, branch.session_id)
        assert (await d.sessions.get(OWNER, parent.session_id)).segment_id == ""
        await finished(d, await say(d, branch, "again"))
        assert await d.retention.listing()
        assert (await d.sessions.get(OWNER, young.session_id)).segment_id == ""

    script = {**TALKING, "ask": [Turn(text=("wait",), hold=str(tmp_path / "hold"))]}
    policies = tmp_path / "home/policies"
    policies.mkdir(parents=True)
    (policies / "all.cedar").write_text('@id("all")\npermit (principal, action, resource);\n')
    in_daemon(tmp_path, script, scenario)


def test_putting_away_again_what_was_brought_back_and_continued_makes_another_segment(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        where, other = await talked(d), await talked(d)
        await put_away(d, where, other)
        await d.retention.restore(OWNER, where.session_id)
        await finished(d, await say(d, where, "again"))
        before = await entries(d, where.session_id)
        assert verified(tmp_path).ok
        await put_away(d, where)
        assert [each.tapes for each in await d.retention.listing()] == [1, 1]
        assert verified(tmp_path).ok
        await d.retention.restore(OWNER, where.session_id)
        assert await entries(d, where.session_id) == before

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def archived(folder: Path) -> tuple[Path, Path]:
    """A journal with one session in a segment, and that segment."""

    async def scenario(d: Daemon) -> None:
        await put_away(d, await talked(d), await talked(d))
        await talked(d)

    permit_all(folder)
    in_daemon(folder, TALKING, scenario)
    journal = folder / "home/journal.db"
    (segment,) = folder_of(journal).glob("*.segment")
    return journal, segment


@pytest.mark.parametrize("at", [0, 20, 0.5, -1])
def test_a_flipped_byte_in_a_segment_is_found(at: float, tmp_path: Path) -> None:
    journal, segment = archived(tmp_path)
    body = bytearray(segment.read_bytes())
    place = int(len(body) * at) if isinstance(at, float) else int(at)
    body[place] ^= 1
    segment.chmod(0o600)
    segment.write_bytes(body)
    bad = sqlite_files.inspect(journal).bad
    assert bad is not None
    assert "not as it was sealed" in bad.problem


def test_a_missing_segment_is_found_and_named(tmp_path: Path) -> None:
    journal, segment = archived(tmp_path)
    segment.unlink()
    bad = sqlite_files.inspect(journal).bad
    assert bad is not None
    assert str(segment) in bad.problem


def _run(journal: Path, *statements: str) -> None:
    connection = apsw.Connection(str(journal))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statements",
    [
        # The record of a tape in a segment is dropped: its entries are nowhere.
        ("DELETE FROM segment_tapes WHERE tape = (SELECT min(tape) FROM segment_tapes)",),
        # A tape that is in the database is said to lie in the segment, and removed.
        (
            "DROP TRIGGER entries_are_never_deleted",
            f"""INSERT INTO segment_tapes SELECT t.tape, s.segment_id, t.head_seq, t.head_hash, 0, 0 FROM tapes t, segments s
                WHERE t.tape NOT IN (SELECT tape FROM segment_tapes) AND t.tape <> '{SYSTEM_TAPE}'""",
            f"DELETE FROM entries WHERE tape <> '{SYSTEM_TAPE}'",
        ),
        # An entry that is in the segment is put back as another one.
        (
            """INSERT INTO entries SELECT 3, tape, 3, 0, '', 'user:owner', 'session.reset', '{"kind":"session.reset"}', x'00', 2
                FROM segment_tapes ORDER BY tape LIMIT 1""",
        ),
        ("DROP TRIGGER segments_are_never_deleted", "DELETE FROM segments"),
    ],
)
def test_what_the_tables_say_of_segments_is_held_against_the_tape(
    statements: tuple[str, ...], tmp_path: Path
) -> None:
    journal, _ = archived(tmp_path)
    assert sqlite_files.inspect(journal).ok
    _run(journal, *statements)
    assert not sqlite_files.inspect(journal).ok


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries WHERE position = (SELECT max(position) FROM entries)",
        f"DELETE FROM entries WHERE tape = '{SYSTEM_TAPE}'",
        # Of a tape that lies in a segment, once all of it has been removed.
        "DELETE FROM entries WHERE position = 1",
        "UPDATE segments SET bytes = 0",
        "DELETE FROM segments",
    ],
)
def test_entries_that_no_segment_holds_cannot_be_deleted_and_segments_not_forgotten(
    statement: str, tmp_path: Path
) -> None:
    journal, _ = archived(tmp_path)
    _run(
        journal,
        "INSERT INTO entries SELECT 1, tape, 1, 0, '', '', '', '', '', 2 FROM segment_tapes LIMIT 1",
    )
    with pytest.raises(apsw.ConstraintError):
        _run(journal, statement)


def test_a_backup_carries_the_segments_and_a_restored_one_brings_sessions_back(
    tmp_path: Path,
) -> None:
    journal, segment = archived(tmp_path)
    copy = tmp_path / "backup.db"
    assert sqlite_files.backup(journal, copy).segments == 1
    segment.unlink()
    assert not sqlite_files.inspect(journal).ok
    sqlite_files.restore(copy, journal, tmp_path / "aside.db")
    assert sqlite_files.inspect(journal).ok

    async def scenario(d: Daemon) -> None:
        away = await d.sessions.listing(OWNER, archived=True, before="", limit=10)
        for each in away:
            await d.retention.restore(OWNER, each.session_id)
            assert (await kinds(d, each.session_id))[-1] == "run.completed"
        assert len(away) == 2

    in_daemon(tmp_path, TALKING, scenario)


def test_only_stored_files_that_nothing_names_are_removed_and_only_old_ones(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await talked(d)
        keep = d.enclosures.attachments.keep
        attached = await keep(OWNER, where.session_id, "attached.txt", b"attached" * 100)
        forgotten = await keep(OWNER, where.session_id, "forgotten.txt", b"forgotten" * 100)
        again = await keep(OWNER, where.session_id, "again.txt", b"again" * 100)
        run = await say(
            d,
            where,
            "again",
            attachments=(Attaching(artifact=attached.artifact, name="attached.txt"),),
        )
        await finished(d, run)
        before = await count(d, "artifacts", "session_id", where.session_id)
        assert (await d.retention.clean()).artifacts == 0
        await d.db.write(lambda tx: tx.run("UPDATE artifacts SET created_ms = 1"))
        # Sent once more: it is as if it were new.
        await keep(OWNER, where.session_id, "again.txt", b"again" * 100)
        dry = await d.retention.clean(dry_run=True)
        assert (dry.artifacts, dry.bytes) == (1, len(b"forgotten" * 100))
        assert await count(d, "artifacts", "session_id", where.session_id) == before
        assert (await d.retention.clean()).artifacts == 1
        assert await count(d, "artifacts", "session_id", where.session_id) == before - 1
        with pytest.raises(NotFound):
            await say(
                d, where, "again", attachments=(Attaching(artifact=forgotten.artifact, name="f"),)
            )
        await finished(
            d,
            await say(
                d, where, "again", attachments=(Attaching(artifact=again.artifact, name="a"),)
            ),
        )

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def test_what_is_named_while_it_is_looked_at_is_not_removed(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await talked(d)
        sent = await d.enclosures.attachments.keep(OWNER, where.session_id, "f.txt", b"file" * 100)
        await d.db.write(lambda tx: tx.run("UPDATE artifacts SET created_ms = 1"))
        now = d.clock.now_ms()
        found = await d.db.read(lambda tx: retention_rows.unused(tx, where.session_id, now))
        assert list(found.artifacts) == [sent.artifact]
        await finished(
            d,
            await say(
                d, where, "again", attachments=(Attaching(artifact=sent.artifact, name="f.txt"),)
            ),
        )
        assert await d.db.write(lambda tx: retention_rows.forget(tx, found, now)) == 0
        assert (
            await d.db.read(lambda tx: artifacts.artifact(tx, where.session_id, sent.artifact))
            is not None
        )

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def test_what_a_branch_in_a_segment_names_or_a_firing_waits_for_is_not_removed(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        parent = await talked(d)
        keep = d.enclosures.attachments.keep
        named = await keep(OWNER, parent.session_id, "named.txt", b"named" * 100)
        branch = await d.sessions.branch(OWNER, parent.session_id, None, "")
        attaching = Attaching(artifact=named.artifact, name="named.txt")
        await finished(d, await say(d, branch, "again", attachments=(attaching,)))
        await put_away(d, branch)
        other = await talked(d)
        awaited = await keep(OWNER, other.session_id, "webhook", b"awaited" * 100)
        await d.db.write(
            lambda tx: schedule_rows.add_firing(
                tx,
                d.clock.new_id(),
                1,
                "due",
                "",
                artifact=awaited.artifact,
                session_id=other.session_id,
            )
        )
        await d.db.write(lambda tx: tx.run("UPDATE artifacts SET created_ms = 1"))
        assert (await d.retention.clean()).artifacts == 0
        await d.retention.restore(OWNER, branch.session_id)
        await finished(d, await say(d, branch, "again", attachments=(attaching,)))

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def test_room_that_became_free_goes_back_to_the_disk_while_runs_go_on(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        for number in range(40):
            await d.enclosures.attachments.keep(
                OWNER, where.session_id, f"{number}.txt", (f"{number} " * 50_000).encode()
            )
        await d.db.write(lambda tx: tx.run("UPDATE artifacts SET created_ms = 1"))
        assert (await d.retention.clean()).artifacts == 40
        maintaining = asyncio.ensure_future(d.retention.maintain())
        await talked(d)
        done = await maintaining
        assert done.released_bytes > 2 << 20
        assert done.free_bytes < 4 << 20

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)


def test_each_kind_is_a_daily_task_and_archiving_only_where_it_is_configured(
    tmp_path: Path,
) -> None:
    async def queued(d: Daemon) -> dict[str, int]:
        rows = await d.db.read(
            lambda tx: tx.all(
                "SELECT kind, ready_ms FROM tasks WHERE state = 'queued' AND key = 'daily'"
            )
        )
        return {str(kind): int(ready_ms) for kind, ready_ms in rows}

    async def off(d: Daemon) -> None:
        assert set(await queued(d)) == {CLEAN, MAINTAIN}

    async def on(d: Daemon) -> None:
        where = await talked(d)
        await grown_old(d, where)
        await d.db.write(lambda tx: tx.run("UPDATE tasks SET ready_ms = 0"))
        d.tasks.look([ARCHIVE, CLEAN, MAINTAIN])
        await asyncio.wait_for(d.tasks.settled(), 20)
        assert (await d.sessions.get(OWNER, where.session_id)).segment_id
        later = await queued(d)
        assert set(later) == {ARCHIVE, CLEAN, MAINTAIN}
        assert min(later.values()) > d.clock.now_ms() + DAY_MS // 2

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, off)
    in_daemon(tmp_path, TALKING, on, "[retention]\nsessions_after_days = 30\n")
