"""Verifying a journal that is in use: a sound one is never called broken, a changed one always
is.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from palyra.features.retention.service import DAY_MS
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from palyra.store.database import Tx
from palyra.store.verify import VerifyReport
from tests.faults import in_daemon
from tests.inprocess import session
from tests.journals import new_id, noting
from tests.proving import raw_file
from tests.watching_over import JumpingClock, incidents, kinds, set_mode, watched

WRITERS = 8
WALKS = 25
LONG = ["a word"] * 2_600
QUIET = "[healing]\nmode = 'disabled'\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"


async def an_old_session(d: Daemon, entries: int) -> str:
    """A session with so many entries that nobody has used for a long time."""
    where = (await session(d, key=new_id())).session_id
    await d.db.write(noting(where, *["said"] * entries))

    def age(tx: Tx) -> None:
        tx.run(
            "UPDATE sessions SET updated_ms = :at WHERE session_id = :id",
            at=tx.now_ms - 40 * DAY_MS,
            id=where,
        )

    await d.db.write(age)
    return where


async def walk(d: Daemon, progress: Callable[[int], None] = lambda entries: None) -> VerifyReport:
    return await asyncio.to_thread(sqlite_files.inspect, d.journal_path, progress)


def test_entries_that_come_during_a_walk_are_not_missed_at_its_end(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = (await session(d)).session_id
        await d.db.write(noting(where, *LONG))
        loop = asyncio.get_running_loop()

        async def meanwhile() -> None:
            await d.db.write(noting(where, "one more"))
            await d.retention.archive_old(30)

        def progress(entries: int) -> None:
            asyncio.run_coroutine_threadsafe(meanwhile(), loop).result(30)

        await an_old_session(d, 700)
        report = await walk(d, progress)
        assert report.ok, report.bad

    in_daemon(tmp_path, [], scenario, QUIET)


def test_a_journal_that_many_write_to_is_never_called_broken(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = (await session(d)).session_id
        await d.db.write(noting(where, *LONG))
        over = asyncio.Event()

        async def write(tape: str) -> None:
            while not over.is_set():
                await d.db.write(noting(tape, "a", "b"))

        async def put_away() -> None:
            while not over.is_set():
                name = await an_old_session(d, 600)
                await d.retention.archive_old(30)
                await d.retention.restore("user:owner", name)

        busy = [
            asyncio.create_task(write((await session(d, key=str(at))).session_id))
            for at in range(WRITERS)
        ]
        busy.append(asyncio.create_task(put_away()))
        try:
            reports = [await walk(d) for _ in range(WALKS)]
        finally:
            over.set()
            await asyncio.gather(*busy)
        assert [report.bad for report in reports if not report.ok] == []
        counts = [report.entries for report in reports]
        assert counts == sorted(counts), "each walk saw all that was there before"
        await d.db.write(partial(_change, position=counts[0]))
        bad = (await walk(d)).bad
        assert bad is not None
        assert bad.position == counts[0]
        await d.db.write(partial(_change, position=counts[0]))

    in_daemon(tmp_path, [], scenario, QUIET)


def _change(tx: Tx, position: int) -> None:
    """Exchange two letters of an entry's principal; a second time, change them back."""
    tx.run("DROP TRIGGER IF EXISTS entries_are_never_changed")
    swap = "CASE principal WHEN 'user:owner' THEN 'user:ownre' ELSE 'user:owner' END"
    tx.run(f"UPDATE entries SET principal = {swap} WHERE position = :position", position=position)


def by_hand(journal: Path, sql: str) -> None:
    """What somebody does to the file beside the daemon."""
    connection = raw_file(journal)
    connection.execute(sql)
    connection.close()


def test_an_incident_about_the_chain_closes_when_a_later_walk_is_clean(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = (await session(d)).session_id
        await d.db.write(noting(where, "a", "b"))
        by_hand(
            d.journal_path,
            "DROP TRIGGER entries_are_never_changed; UPDATE entries SET time_ms = time_ms + 1 WHERE position = 2",
        )
        set_mode(d, "observe_only")
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert "position 2" in incident.summary
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened"]
        by_hand(d.journal_path, "UPDATE entries SET time_ms = time_ms - 1 WHERE position = 2")
        clock.jump(2 * 3_600_000)
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened", "incident.closed"]

    watched(tmp_path, [Turn(text=("hi",))], scenario)


def test_an_incident_about_the_chain_stays_open_over_a_restart(tmp_path: Path) -> None:
    async def broken(d: Daemon, clock: JumpingClock) -> None:
        where = (await session(d)).session_id
        await d.db.write(noting(where, *LONG))
        by_hand(
            d.journal_path,
            "DROP TRIGGER entries_are_never_changed; UPDATE entries SET time_ms = time_ms + 1 WHERE position = 2000",
        )
        set_mode(d, "observe_only")
        for _ in range(10):
            await d.watchdog.look()
        assert await kinds(d) == ["incident.opened"]

    async def after(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "observe_only")
        await d.watchdog.look()
        assert await kinds(d) == ["incident.opened"]

    watched(tmp_path, [], broken)
    watched(tmp_path, [], after)
