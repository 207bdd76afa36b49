"""The watchdog and the machine: processes, leftover files, the disk, and the journal on it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from palyra.store.database import Tx
from tests.faults import FullDisk, eventually, on_full_disk
from tests.inprocess import finished, say, session
from tests.proving import raw_file
from tests.watching_over import (
    JumpingClock,
    incidents,
    kinds,
    passes,
    set_mode,
    through_the_modes,
    told,
    watched,
)


def _dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_an_orphan_process_of_a_dead_daemon_is_ended_and_nobody_elses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    dead = _dead_pid()
    ours, foreign = f"palyra-sandbox-{dead}-0123456789ab", f"palyra-sandbox-{dead}-ba9876543210"
    (home / "sandboxes").write_text(f"{ours}\n")
    orphan = subprocess.Popen([ours, "60"], executable="/bin/sleep")
    # Also of a dead daemon, but of none of this home's.
    stranger = subprocess.Popen([foreign, "60"], executable="/bin/sleep")

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        async def mended() -> bool:
            return orphan.poll() is not None

        incident = await through_the_modes(d, clock, "resource", mended)
        assert str(orphan.pid) in incident.summary
        assert orphan.returncode == -signal.SIGKILL
        assert stranger.poll() is None
        # Nothing of it can come any more, so it is forgotten; what runs now is known.
        await d.watchdog.look()
        assert ours not in (home / "sandboxes").read_text()
        assert f"palyra-sandbox-{os.getpid()}-" in (home / "sandboxes").read_text()

    try:
        watched(tmp_path, [], scenario)
    finally:
        for process in (orphan, stranger):
            process.kill()
            process.wait()


def test_stale_pid_files_are_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "keys").mkdir(parents=True)
    dead = _dead_pid()
    stale = [
        home / "daemon.json",
        home / f".config.toml.{dead}.new",
        home / "keys" / f"seal.key.{dead}",
    ]
    stale[0].write_text(
        f'{{"pid": {dead}, "url": "http://127.0.0.1:1", "started_ms": 0, "version": "1"}}'
    )
    for path in stale[1:]:
        path.write_text("x")
    kept = home / f".config.toml.{os.getpid()}.new"
    kept.write_text("somebody is writing this")

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        async def mended() -> bool:
            return not any(path.exists() for path in stale)

        await through_the_modes(d, clock, "resource", mended)
        assert kept.exists()

    watched(tmp_path, [], scenario)


def test_a_file_that_nobody_goes_on_writing_is_removed(tmp_path: Path) -> None:
    backups = tmp_path / "home" / "backups"
    backups.mkdir(parents=True)
    left, fresh, killed = (
        backups / "a.db.partial",
        backups / "b.db.partial",
        backups / "c.db.partial",
    )
    killed.write_bytes(b"x")

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        # Of a daemon that was killed in the middle of a backup nothing is left once the next one
        # has started.
        assert not killed.exists()
        for path in (left, fresh):
            path.write_bytes(b"x")
        long_ago = time.time() - 7_200
        os.utime(left, (long_ago, long_ago))

        async def mended() -> bool:
            return not left.exists()

        await through_the_modes(d, clock, "artifact", mended)
        assert fresh.exists()

    watched(tmp_path, [], scenario)


def test_a_log_that_grows_is_folded(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        log = d.journal_path.with_name("journal.db-wal")

        def write(tx: Tx) -> None:
            tx.run("CREATE TABLE IF NOT EXISTS filling (x BLOB)")
            tx.run("INSERT INTO filling (x) VALUES (zeroblob(2000000))")

        await d.db.write(write)
        assert log.stat().st_size > 1 << 20

        async def mended() -> bool:
            return log.stat().st_size < 1 << 20

        await through_the_modes(d, clock, "journal", mended)

    watched(tmp_path, [], scenario, "[healing]\nmode = 'disabled'\nlog_mb = 1\n")


def test_little_room_on_the_disk_is_reported_and_what_can_go_goes(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        for _ in range(5):
            await d.watchdog.look()
        (incident,) = await incidents(d)
        assert (incident.domain, incident.key) == ("resource", "resource:disk")
        # What was cleared away did not help: the disk belongs to others too.
        assert [each.remedy for each in incident.tried] == ["make room"] * 3 + ["escalate"]
        assert (incident.severity, len(await told(d))) == ("critical", 2)

    watched(tmp_path, [], scenario, f"[healing]\nmode = 'disabled'\nfree_mb = {1 << 40}\n")


@pytest.mark.parametrize("mode", ["auto", "observe_only"])
def test_a_full_disk_is_one_incident_that_is_recorded_once_there_is_room(
    tmp_path: Path, mode: str
) -> None:
    async def scenario(d: Daemon, disk: FullDisk) -> None:
        disk.fill()
        for _ in range(4):
            d.db.write(lambda tx: tx.run("INSERT INTO task_kinds (kind, paused) VALUES ('x', 0)"))
            await eventually(lambda: d.db.trouble is not None, "the disk is full")
            await d.watchdog.look()
        disk.full = False
        await d.watchdog.look()
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert (incident.domain, incident.severity) == ("resource", "critical")
        assert incident.closed_ms
        assert len(await told(d)) == 1

    on_full_disk(tmp_path, [], scenario, f"[healing]\nmode = '{mode}'\nevery_ms = 3600000\n")


def test_on_a_disk_that_is_really_full_the_remedy_helps_and_what_waited_goes_on_by_itself(
    tmp_path: Path,
) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.full_disk", str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_full_disk_is_left_alone_where_healing_is_disabled(tmp_path: Path) -> None:
    async def scenario(d: Daemon, disk: FullDisk) -> None:
        disk.fill()
        d.db.write(lambda tx: tx.run("INSERT INTO task_kinds (kind, paused) VALUES ('x', 0)"))
        await eventually(lambda: d.db.trouble is not None, "the disk is full")
        await d.watchdog.look()
        disk.full = False
        await d.watchdog.look()
        assert await incidents(d) == []

    on_full_disk(tmp_path, [], scenario, "[healing]\nmode = 'disabled'\n")


def test_a_damaged_file_is_an_incident_with_its_evidence_and_not_only_a_failed_look(
    tmp_path: Path,
) -> None:
    async def lived(d: Daemon, clock: JumpingClock) -> None:
        await finished(d, await say(d, await session(d), "hello"))

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        await passes(d, clock, 120_000)
        (incident,) = await incidents(d)
        assert (incident.domain, incident.severity, incident.closed_ms) == (
            "journal",
            "critical",
            0,
        )
        assert "is damaged" in incident.summary
        assert [each.result for each in incident.tried] == ["done"]
        (evidence,) = (tmp_path / "home/backups").glob("broken-*.db")
        assert mark in evidence.read_bytes()
        assert len(await told(d)) == 1

    mark = b"DAMAGED BY A DISK"
    watched(
        tmp_path, [Turn(text=(" ".join(f"needle{number}" for number in range(20_000)),))], lived
    )
    # A page in the middle of a long reply, which nothing reads again by itself.
    with (tmp_path / "home/journal.db").open("r+b") as file:
        page = file.read().index(b"needle9000 ") // 4096 * 4096
        file.seek(page)
        file.write(mark * 200)
    watched(tmp_path, [], scenario)


def test_a_broken_chain_is_found_in_the_background_and_named(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        run = await say(d, await session(d), "hello")
        await finished(d, run)
        backups = d.journal_path.parent / "backups"
        backups.mkdir()
        sqlite_files.backup(d.journal_path, backups / "monday.db")
        set_mode(d, "observe_only")
        await d.watchdog.look()
        assert await incidents(d) == []
        damaged = raw_file(d.journal_path)
        damaged.execute(
            "DROP TRIGGER entries_are_never_changed; UPDATE entries SET principal = 'user:m' WHERE position = 3"
        )
        damaged.close()
        await d.watchdog.look()
        assert await incidents(d) == [], "what was looked at is looked at again a day later"
        clock.jump(25 * 3_600_000)
        await d.watchdog.look()
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert (incident.domain, incident.severity, incident.closed_ms) == (
            "journal",
            "critical",
            0,
        )
        assert "position 3" in incident.summary
        assert "restore" in incident.fix
        await passes(d, clock, 180_000)
        assert await kinds(d) == ["incident.opened"]
        assert [path.name for path in backups.iterdir()] == ["monday.db"]
        # What is safe to do: the evidence is kept as it was found, and the way back is named. Going
        # it is for a person.
        set_mode(d, "auto")
        await passes(d, clock, 180_000)
        assert await kinds(d) == ["incident.opened", "incident.tried", "incident.tried"]
        (incident,) = await incidents(d)
        assert (incident.closed_ms, [each.result for each in incident.tried]) == (0, ["done"])
        assert "monday.db" in incident.tried[0].detail
        (evidence,) = backups.glob("broken-*.db")
        assert evidence.stat().st_mode & 0o077 == 0
        found = sqlite_files.inspect(evidence).bad
        assert found is not None
        assert found.position == 3
        assert len(await told(d)) == 1

    watched(tmp_path, [Turn(text=("hi",))], scenario)
