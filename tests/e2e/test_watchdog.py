"""The watchdog: each fault is one incident of the right domain, left alone, reported or mended as the mode says."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from palyra.app import Daemon
from palyra.domain.events import InputReceived, RunAccepted
from palyra.domain.ids import OWNER
from palyra.domain.messages import ModelRequest
from palyra.domain.ports import CallContext
from palyra.domain.tools import Limits, Preview, Scope, Subject, ToolResult
from palyra.journal import approvals, sqlite_files, tape, tasks
from palyra.journal.database import Tx
from palyra.models.scripted import Hold, ScriptedModel, Turn
from palyra.tools.catalogue import Arguments, declare
from palyra.worker.worker import Worker
from tests import mcp_servers
from tests.browser_world import installed, resolver
from tests.crash.scenarios import call
from tests.faults import FullDisk, asked, eventually, on_full_disk, permit_all, reached, row
from tests.inprocess import finished, say, session, until
from tests.journals import run as run_loop
from tests.mcp_at_work import accepted, obedient, program, result_of
from tests.mcp_at_work import permit as permit_mcp
from tests.net_world import Site, html
from tests.watching_over import JumpingClock, incidents, kinds, passes, set_mode, through_the_modes, told, watched
from tests.worker_world import world

RUN_MS = 120_000


# --- runs -------------------------------------------------------------------------------------------------------------


def _hangs_once(hold: Hold) -> ScriptedModel:
    """A model that never answers the first time."""
    asked_before: list[ModelRequest] = []

    def turn(request: ModelRequest) -> Turn:
        asked_before.append(request)
        return Turn(hold="h") if len(asked_before) == 1 else Turn(text=("here I am",))

    return ScriptedModel(turn, holds={"h": hold})


def test_a_hung_provider_is_asked_again(tmp_path: Path) -> None:
    hold = Hold()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)
        run = await say(d, where, "hello")
        await reached(hold.reached)
        await until(d, where.session_id, "input.assembled")

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS)
        assert [each.remedy for each in incident.tried] == ["ask again"]
        failed = await until(d, where.session_id, "model.failed")
        assert b'"failure":"timeout"' in bytes(failed.event)

    watched(tmp_path, _hangs_once(hold), scenario)


def test_a_provider_that_hangs_every_time_is_one_incident_until_the_run_is_given_up(tmp_path: Path) -> None:
    hold = Hold()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        for _ in range(12):
            if (await row(d, run.run_id)).state != "in_progress":
                break
            hold.reached.clear()
            await passes(d, clock, RUN_MS)
            # The next try waits a moment before it asks.
            await eventually(lambda: hold.reached.is_set() or not d.runs.works_on(run.run_id), "it is asked again, or given up")
        assert (await row(d, run.run_id)).state in ("failed", "cancelled")
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert incident.closed_ms
        assert len(await told(d)) == 1

    watched(tmp_path, ScriptedModel([Turn(hold="h")], holds={"h": hold}), scenario)


class _NoArguments(Arguments, frozen=True, kw_only=True):
    pass


class _Stuck:
    """A tool that does not come back when its time is over, whatever it is told."""

    argument_type = _NoArguments
    spec = declare("test.stuck", "Does not come back.", _NoArguments, effect="pure", limits=Limits(time_ms=100))

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.overdue = asyncio.Event()

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope(workspace=workspace)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return ()

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", "stuck")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.overdue.set()
        return ToolResult(outcome="ok", text="at last")


def test_a_hung_tool_ends_its_run(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        stuck = _Stuck()
        d.catalogue.renew("stuck", (stuck,))
        where = await session(d)
        run = await say(d, where, "hello")
        await reached(stuck.overdue)

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "cancelled"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["cancel the run"]
        assert "test.stuck" in incident.summary
        stuck.released.set()

    watched(tmp_path, [Turn(calls=(call("test.stuck"),)), Turn(text=("done",))], scenario)


def test_a_run_that_nobody_works_on_goes_on(tmp_path: Path) -> None:
    hold = Hold()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        run = await say(d, await session(d), "hello")
        await reached(hold.reached)
        # The task is lost without a word, as a defect would lose it.
        task = d.runs._jobs[run.run_id].task
        assert task is not None
        task.cancel()
        await eventually(lambda: not d.runs.works_on(run.run_id), "nobody works on it")

        async def mended() -> bool:
            return (await row(d, run.run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["resume the run"]

    watched(tmp_path, _hangs_once(hold), scenario)


def test_a_message_that_nobody_begins_is_begun(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)

        def forgotten(tx: Tx) -> str:
            # Accepted, and whoever was to begin it is lost.
            run_id = d.clock.new_id()
            received = InputReceived(submission_id=run_id, text="hello")
            tape.append(tx, where.session_id, OWNER, [RunAccepted(), received], run_id)
            return run_id

        run_id = await d.db.write(forgotten)

        async def mended() -> bool:
            return (await row(d, run_id)).state == "done"

        incident = await through_the_modes(d, clock, "run", mended, window_ms=RUN_MS + 1_000)
        assert [each.remedy for each in incident.tried] == ["begin the run"]

    watched(tmp_path, [Turn(text=("hi",))], scenario)


def test_a_long_run_that_gets_on_is_never_flagged(tmp_path: Path) -> None:
    """Ten turns, each silent for a little less than the window: eighteen minutes in all."""
    holds = {str(number): Hold() for number in range(10)}
    turns = [Turn(text=(f"{number}",), hold=f"{number}", calls=(call("test.pure", text="x"),)) for number in range(10)]

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        run = await say(d, await session(d), "hello")
        for hold in holds.values():
            await reached(hold.reached)
            await passes(d, clock, RUN_MS - 10_000)
            hold.released.set()
        await finished(d, run)
        await passes(d, clock, RUN_MS)
        assert await incidents(d) == []

    watched(tmp_path, ScriptedModel([*turns, Turn(text=("done",))], holds=holds), scenario)


def test_a_tool_that_is_silent_within_its_time_is_never_flagged(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        await until(d, where.session_id, "tool.started")
        # The shell may take ten minutes; the clock goes nine further while it takes one second.
        await passes(d, clock, 9 * 60_000)
        await finished(d, run)
        await d.watchdog.look()
        assert await incidents(d) == []

    watched(tmp_path, [Turn(calls=(call("shell.run", command="sleep 1"),)), Turn(text=("done",))], scenario)


def test_a_run_that_waits_for_a_person_is_never_flagged_itself(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        await asked(d, where.session_id)
        await passes(d, clock, 60 * 60_000)
        assert [each.domain for each in await incidents(d)] == ["approval"]
        assert (await row(d, run.run_id)).state == "waiting"

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n"
    watched(tmp_path, [Turn(calls=(call("fs.write", path="a", content="b"),))], scenario, settings)


def test_a_machine_that_slept_does_not_make_a_run_look_stuck(tmp_path: Path) -> None:
    hold = Hold()

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        run = await say(d, await session(d), "hello")
        await reached(hold.reached)
        await d.watchdog.look()
        clock.jump(8 * 3_600_000)
        await d.watchdog.look()
        assert await incidents(d) == []
        hold.released.set()
        await finished(d, run)

    watched(tmp_path, ScriptedModel([Turn(text=("a",), hold="h")], holds={"h": hold}), scenario)


# --- approvals and tasks ----------------------------------------------------------------------------------------------


def test_a_forgotten_approval_expires_with_a_notice_where_the_settings_say_so(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        where = await session(d)
        run = await say(d, where, "hello")
        approval = await asked(d, where.session_id)
        set_mode(d, "observe_only")
        await passes(d, clock, 601_000)
        (seen,) = await incidents(d)
        assert (seen.domain, seen.closed_ms) == ("approval", 0)
        (notice,) = (await d.notices.listing("user:owner")).notices
        assert (notice.about, notice.link) == ("approval", "#/approvals")
        assert "fs.write" in notice.text
        set_mode(d, "auto")
        await d.watchdog.look()
        found = await d.db.read(lambda tx: approvals.find(tx, approval.approval_id))
        assert found is not None
        assert found.decision == "expired"
        assert len(await told(d)) == 2
        await finished(d, run)
        (over,) = await incidents(d)
        assert over.closed_ms

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n[healing]\nmode = 'disabled'\nforgotten = 'expire'\n"
    turns = [Turn(calls=(call("fs.write", path="a", content="b"),)), Turn(text=("well then",))]
    watched(tmp_path, turns, scenario, settings)


def test_a_reminder_is_given_once_and_the_incident_closes_with_the_answer(tmp_path: Path) -> None:
    from palyra.runtime.answers import Answer

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        where = await session(d)
        run = await say(d, where, "hello")
        approval = await asked(d, where.session_id)
        await passes(d, clock, 60 * 60_000)
        assert len(await told(d)) == 1
        await d.answers.answer("user:owner", approval.approval_id, Answer(decision="deny"), "test")
        await finished(d, run)
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert incident.closed_ms
        assert incident.severity == "warning"

    settings = "[approvals.timeout_ms]\ninteractive = 'never'\n"
    turns = [Turn(calls=(call("fs.write", path="a", content="b"),)), Turn(text=("well then",))]
    watched(tmp_path, turns, scenario, settings)


def test_a_silent_task_is_put_back(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        def taken(tx: Tx) -> str:
            task_id = tasks.enqueue(tx, "somebody_elses")
            assert tasks.claim(tx, "somebody_elses", "a dead worker", 60_000, 1, 1)
            return task_id

        task_id = await d.db.write(taken)

        async def mended() -> bool:
            return (await d.db.read(lambda tx: tasks.get(tx, task_id))).state == "queued"

        await through_the_modes(d, clock, "task", mended, window_ms=121_000)

    watched(tmp_path, [], scenario)


def test_a_task_that_slept_along_with_the_machine_is_left_alone(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(task: tasks.Task) -> None:
            begun.set()
            await go.wait()

        d.tasks.register("slow", slow, promise="at_most_once")
        task_id = await d.tasks.enqueue("slow")
        await asyncio.wait_for(begun.wait(), 20)
        set_mode(d, "auto")
        await d.watchdog.look()
        clock.jump(3_600_000)
        await d.watchdog.look()
        assert await incidents(d) == []
        # Its lease has run out while it slept: that is seen once, and not again and again.
        rounds = d.tasks.counts.rounds
        d.tasks.look(["slow"])
        for _ in range(100):
            await d.db.read(lambda tx: None)
        assert d.tasks.counts.rounds - rounds <= 3
        go.set()
        await asyncio.wait_for(d.tasks.settled(), 20)
        assert (await d.db.read(lambda tx: tasks.get(tx, task_id))).state == "done"

    watched(tmp_path, [], scenario)


def test_a_dead_worker_of_the_queue_is_started_anew(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        loop = d.tasks._loop
        assert loop is not None
        loop.cancel()
        await asyncio.wait([loop])

        async def mended() -> bool:
            return d.tasks.alive

        await through_the_modes(d, clock, "worker", mended)

    watched(tmp_path, [], scenario)


# --- helpers ----------------------------------------------------------------------------------------------------------


def test_an_mcp_server_that_does_not_come_back_is_restarted_and_then_given_up(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        await eventually(lambda: d.mcp.one("s").state == "waiting", "the server has ended")
        set_mode(d, "observe_only")
        await passes(d, clock, 180_000)
        (seen,) = await incidents(d)
        assert (seen.domain, seen.severity, seen.tried) == ("worker", "warning", ())
        set_mode(d, "auto")
        for _ in range(6):
            await eventually(lambda: d.mcp.one("s").state == "waiting", "the server has ended")
            await passes(d, clock, 180_000)
        (incident,) = await incidents(d)
        assert [each.remedy for each in incident.tried] == ["restart the server"] * 3 + ["escalate"]
        assert (incident.severity, incident.closed_ms) == ("error", 0)
        assert len(await told(d)) == 2

    watched(tmp_path, [], scenario, program("s", "/bin/false"))


def test_an_mcp_server_that_hangs_is_restarted(tmp_path: Path) -> None:
    permit_mcp(tmp_path)

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        await accepted(d)
        for _ in range(2):
            assert (await result_of(d, "mcp:s/act"))["outcome"] == "timeout"

        async def mended() -> bool:
            status = d.mcp.one("s")
            return (status.starts, status.state, status.late) == (2, "ready", 0)

        await through_the_modes(d, clock, "worker", mended)

    tests = os.path.dirname(mcp_servers.SCRIPT)
    hangs = program("s", sys.executable, mcp_servers.SCRIPT, "hostile", "stuck", readable=(tests,), timeout_ms=1_000)
    watched(tmp_path, obedient(), scenario, hangs)


def test_a_worker_that_vanished_is_told_of_and_one_that_said_goodbye_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = JumpingClock()
        async with world(tmp_path, [], clock=clock) as w:
            d = w.daemon
            calm, lost = await w.enrol("calm"), await w.enrol("lost")
            goes = Worker(calm, ("test.pure",), slots=1, say=lambda text: None, rehearsal=True)
            going = asyncio.create_task(goes.run())
            await w.connected("calm", going)
            goes.leave()
            await asyncio.wait_for(going, 20)
            await w.start(lost)
            station = d.workers.presence.station("lost")
            await passes(d, clock, RUN_MS)
            assert await incidents(d) == []
            w.proxy.closed = True
            w.proxy.cut()
            await eventually(lambda: station.link is None, "its line is cut")
            await passes(d, clock, RUN_MS + 60_000)
            (incident,) = await incidents(d)
            assert (incident.domain, incident.key, incident.closed_ms) == ("worker", "worker:lost", 0)
            assert len(await told(d)) == 1
            w.proxy.closed = False
            await eventually(lambda: station.link is not None, "it comes back")
            await d.watchdog.look()
            (incident,) = await incidents(d)
            assert incident.closed_ms

    run_loop(scenario())


def test_browsers_that_leak_or_die_are_closed(tmp_path: Path) -> None:
    """One whose run has ended, and one whose process was killed."""

    async def scenario(d: Daemon, clock: JumpingClock, site: Site) -> None:
        from palyra.runtime.watchdog_helpers import BrowsersWatched
        from palyra.tools.browser.browsers import Browsers
        from palyra.tools.net import urls
        from palyra.tools.sandbox.sandbox import Sandbox

        browsers = Browsers(Sandbox(), resolver(site.port), installed())
        d.watchdog.sources["browser"] = BrowsersWatched(d.db, browsers).look
        where = await session(d)
        run = await say(d, where, "hello")
        await finished(d, run)
        address = urls.parse(f"http://site.example:{site.port}/")
        try:
            await browsers.visit(where.session_id, run.run_id, address, frozenset({f"site.example:{site.port}"}))
            pid = browsers.in_use()[0].pid

            async def closed() -> bool:
                return browsers.open == 0

            incident = await through_the_modes(d, clock, "browser", closed)
            assert "its run has ended" in incident.summary
            assert not os.path.exists(f"/proc/{pid}")
            # The other one: its run is at work, and its process is killed.
            working = await say(d, where, "again")
            await reached(hold.reached)
            await browsers.visit(where.session_id, working.run_id, address, frozenset({f"site.example:{site.port}"}))
            os.kill(browsers.in_use()[0].pid, signal.SIGKILL)
            await eventually(lambda: not browsers.in_use()[0].running, "the browser is dead")
            await d.watchdog.look()
            newest = (await incidents(d))[0]
            assert "has died" in newest.summary
            assert (newest.domain, [each.result for each in newest.tried], bool(newest.closed_ms)) == ("browser", ["done"], True)
            assert browsers.open == 0
            hold.released.set()
            await finished(d, working)
        finally:
            await browsers.close()

    async def beside_a_site(d: Daemon, clock: JumpingClock) -> None:
        async with Site({"": html("<p>hello</p>")}) as site:
            await scenario(d, clock, site)

    hold = Hold()
    model = ScriptedModel([Turn(text=("hi",)), Turn(text=("well",), hold="h")], holds={"h": hold})
    watched(tmp_path, model, beside_a_site)


# --- resources --------------------------------------------------------------------------------------------------------


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
    stale = [home / "daemon.json", home / f".config.toml.{dead}.new", home / "keys" / f"seal.key.{dead}"]
    stale[0].write_text(f'{{"pid": {dead}, "url": "http://127.0.0.1:1", "started_ms": 0, "version": "1"}}')
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
    left, fresh = backups / "a.db.partial", backups / "b.db.partial"
    for path in (left, fresh):
        path.write_bytes(b"x")
    long_ago = time.time() - 7_200
    os.utime(left, (long_ago, long_ago))

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
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
def test_a_full_disk_is_one_incident_that_is_recorded_once_there_is_room(tmp_path: Path, mode: str) -> None:
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


def test_on_a_disk_that_is_really_full_the_remedy_helps_and_what_waited_goes_on_by_itself(tmp_path: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.full_disk", str(tmp_path)],
        cwd=Path(__file__).parents[2],
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


def test_a_damaged_file_is_an_incident_with_its_evidence_and_not_only_a_failed_look(tmp_path: Path) -> None:
    async def lived(d: Daemon, clock: JumpingClock) -> None:
        await finished(d, await say(d, await session(d), "hello"))

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        set_mode(d, "auto")
        await passes(d, clock, 120_000)
        (incident,) = await incidents(d)
        assert (incident.domain, incident.severity, incident.closed_ms) == ("journal", "critical", 0)
        assert "is damaged" in incident.summary
        assert [each.result for each in incident.tried] == ["done"]
        (evidence,) = (tmp_path / "home/backups").glob("broken-*.db")
        assert mark in evidence.read_bytes()
        assert len(await told(d)) == 1

    mark = b"DAMAGED BY A DISK"
    watched(tmp_path, [Turn(text=(" ".join(f"needle{number}" for number in range(20_000)),))], lived)
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
        damaged = apsw.Connection(str(d.journal_path))
        damaged.set_busy_timeout(5_000)
        damaged.execute("DROP TRIGGER entries_are_never_changed; UPDATE entries SET principal = 'user:m' WHERE position = 3")
        damaged.close()
        await d.watchdog.look()
        assert await incidents(d) == [], "what was looked at is looked at again a day later"
        clock.jump(25 * 3_600_000)
        await d.watchdog.look()
        await d.watchdog.look()
        (incident,) = await incidents(d)
        assert (incident.domain, incident.severity, incident.closed_ms) == ("journal", "critical", 0)
        assert "position 3" in incident.summary
        assert "restore" in incident.fix
        await passes(d, clock, 180_000)
        assert await kinds(d) == ["incident.opened"]
        assert [path.name for path in backups.iterdir()] == ["monday.db"]
        # What is safe to do: the evidence is kept as it was found, and the way back is named. Going it is for a person.
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
