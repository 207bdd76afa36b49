"""The watchdog and those who help the daemon: MCP servers, remote workers, browsers."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from palyra.features.workers.node.worker import Worker
from palyra.models.scripted import ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from tests import mcp_servers
from tests.browser_world import installed, resolver
from tests.faults import eventually, reached
from tests.inprocess import finished, say, session
from tests.journals import run as run_loop
from tests.mcp_at_work import accepted, obedient, program, result_of
from tests.mcp_at_work import permit as permit_mcp
from tests.net_world import Site, html
from tests.watching_over import (
    JumpingClock,
    incidents,
    passes,
    set_mode,
    through_the_modes,
    told,
    watched,
)
from tests.worker_world import world

RUN_MS = 120_000


def test_an_mcp_server_that_does_not_come_back_is_restarted_and_then_given_up(
    tmp_path: Path,
) -> None:
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
    hangs = program(
        "s",
        sys.executable,
        mcp_servers.SCRIPT,
        "hostile",
        "stuck",
        readable=(tests,),
        timeout_ms=1_000,
    )
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
            assert (incident.domain, incident.key, incident.closed_ms) == (
                "worker",
                "worker:lost",
                0,
            )
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
        from palyra.features.health.daemon_checks import BrowsersWatched
        from palyra.tools.browser.pool import Browsers
        from palyra.tools.net import urls
        from palyra.tools.sandbox.sandbox import Sandbox

        browsers = Browsers(Sandbox(), resolver(site.port), installed())
        d.watchdog.sources["browser"] = BrowsersWatched(d.db, browsers).look
        where = await session(d)
        run = await say(d, where, "hello")
        await finished(d, run)
        address = urls.parse(f"http://site.example:{site.port}/")
        try:
            await browsers.visit(
                where.session_id, run.run_id, address, frozenset({f"site.example:{site.port}"})
            )
            pid = browsers.in_use()[0].pid

            async def closed() -> bool:
                return browsers.open == 0

            incident = await through_the_modes(d, clock, "browser", closed)
            assert "its run has ended" in incident.summary
            assert not os.path.exists(f"/proc/{pid}")
            # The other one: its run is at work, and its process is killed.
            working = await say(d, where, "again")
            await reached(hold.reached)
            await browsers.visit(
                where.session_id, working.run_id, address, frozenset({f"site.example:{site.port}"})
            )
            os.kill(browsers.in_use()[0].pid, signal.SIGKILL)
            await eventually(lambda: not browsers.in_use()[0].running, "the browser is dead")
            await d.watchdog.look()
            newest = (await incidents(d))[0]
            assert "has died" in newest.summary
            assert (
                newest.domain,
                [each.result for each in newest.tried],
                bool(newest.closed_ms),
            ) == ("browser", ["done"], True)
            assert browsers.open == 0
            hold.released.set()
            await finished(d, working)
        finally:
            await browsers.close()

    async def beside_a_site(d: Daemon, clock: JumpingClock) -> None:
        async with Site({"": html("<p>hello</p>")}) as site:
            await scenario(d, clock, site)

    hold = StreamPause()
    model = ScriptedModel([Turn(text=("hi",)), Turn(text=("well",), hold="h")], holds={"h": hold})
    watched(tmp_path, model, beside_a_site)
