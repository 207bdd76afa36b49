"""Servers that mean harm or are broken: whatever one sends costs its own calls and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.mcp.accepted_tools import MOST_TOOLS
from palyra.features.mcp.connection import RetryPace
from palyra.features.mcp.settings import ServerConfig
from tests import mcp_servers
from tests.contract.mcp.test_servers import At, opened, run, until


@asynccontextmanager
async def hostile(tmp_path: Path, kind: str, **settings: Any) -> AsyncIterator[At]:
    config = ServerConfig(
        name="s", command=sys.executable, args=(mcp_servers.SCRIPT, "hostile", kind), **settings
    )
    async with opened(tmp_path, config) as servers:
        at = At(servers, tmp_path / "work" / "s")
        await until(lambda: bool(servers.pending() or servers.tools()))
        await at.accept_all()
        yield at


def test_nonsense_between_messages_is_passed_over(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "nonsense") as at:
            result = await at.call("act")
            assert (result.outcome, result.text) == ("ok", "still here")
            assert at.said == ["working"]
            assert at.servers.status()[0].server == "hostile[2J 0"

    run(work)


def test_what_a_server_asks_of_us_is_declined_but_a_ping_is_answered(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "asks") as at:
            heard = json.loads((await at.call("act")).text)
            assert heard == [["s0", -32601], ["s1", -32601], ["s2", -32601], ["s3", {}]]

    run(work)


def test_what_a_server_says_of_its_tools_does_not_pass_on_what_it_was_given_in_confidence(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        config = ServerConfig(
            name="s",
            command=sys.executable,
            args=(mcp_servers.SCRIPT, "hostile", "telling"),
            env={"API_KEY": "abcdef123456"},
        )
        async with opened(tmp_path, config) as servers:
            await until(lambda: bool(servers.pending()))
            assert [each.tool for each in servers.pending()] == ["act"]
            assert "abcdef123456" not in str(servers.status())
            at = At(servers, tmp_path / "work" / "s")
            await at.accept_all()
            (offered,) = servers.tools()
            assert offered.spec.description == "Act with [hidden]."
            assert "abcdef123456" not in str(offered.spec)
            assert not [
                file
                for file in tmp_path.rglob("*")
                if file.is_file() and b"abcdef123456" in file.read_bytes()
            ]
            assert (await at.call("act")).text == "done"

    run(work)


@pytest.mark.parametrize("kind", ["giant", "endless"])
def test_a_message_without_measure_ends_the_connection_and_a_new_one_begins(
    tmp_path: Path, kind: str
) -> None:
    async def work() -> None:
        async with hostile(tmp_path, kind) as at:
            result = await at.call("act")
            assert result.outcome == "unknown"
            assert "more than 8,388,608 bytes" in result.text
            await until(lambda: at.servers.status()[0].starts == 2)

    run(work)


def test_a_server_that_asks_without_end_and_never_listens_costs_only_its_call(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "chatter", timeout_ms=1500) as at:
            before = _memory()
            result = await at.call("act")
            assert result.outcome == "timeout"
            assert _memory() - before < 64 << 20

    run(work)


def test_a_flood_of_progress_and_changes_is_thinned_out(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "flood") as at:
            result = await at.call("act")
            assert result.text == "flooded"
            assert 1 <= len(at.said) < 400
            assert max(map(len, at.said)) < 600
            assert len(at.servers.status()[0].log) <= 4000

    run(work)


def test_a_server_that_never_greets_is_given_up(tmp_path: Path) -> None:
    async def work() -> None:
        config = ServerConfig(
            name="s", command=sys.executable, args=(mcp_servers.SCRIPT, "hostile", "silent")
        )
        async with opened(tmp_path, config, pace=RetryPace(greeting_s=0.5)) as servers:
            await until(lambda: bool(servers.status()[0].detail))
            assert "did not begin to speak" in servers.status()[0].detail

    run(work)


def test_a_server_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    async def work() -> None:
        config = ServerConfig(
            name="s", command=sys.executable, args=(mcp_servers.SCRIPT, "hostile", "old")
        )
        async with opened(tmp_path, config) as servers:
            await until(lambda: "1999-01-01" in servers.status()[0].detail)

    run(work)


def test_a_result_without_measure_is_cut_and_described(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "large_result") as at:
            result = await at.call("act")
            assert result.outcome == "ok"
            assert len(result.text) < (256 << 10) + 100
            assert result.text.endswith("characters in all]")
            assert result.data is None
            assert result.images == ()

    run(work)


def test_tools_are_cleaned_bounded_and_refused_with_a_reason(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "odd_tools") as at:
            tools = {tool.declared.called: tool for tool in at.servers.tools()}
            odd, long = tools["read file/näme"], tools["x" * 200]
            assert odd.spec.name.startswith("mcp:s/read_file_n_me_")
            assert len(long.declared.name) == 64
            # The server is called by its own name for it.
            assert (await at.call(odd.declared.name)).text == "read file/näme"
            described = tools["described"].spec.description
            assert described.startswith("]0;titleLook here. long")
            assert len(described) == 1000
            words = tools["schema_words"].spec.parameters["properties"]["a"]["description"]
            assert words == "invisible"
            assert tools["twice"].spec.description == "The first."
            assert sorted(
                problem.partition(":")[0] for problem in at.servers.status()[0].problems
            ) == [
                "a tool without a proper name",
                "a tool without a proper name",
                "array",
                "deep",
                "large",
                "twice",
                "without_schema",
            ]
            for name in ("broken", "remote"):
                with pytest.raises(InvalidInput) as refusal:
                    tools[name].parse({"a": "x"})
                assert "cannot be used" in refusal.value.message
            began = time.process_time()
            with pytest.raises(InvalidInput):
                tools["slow_pattern"].parse({"a": "a" * 5000 + "!"})
            assert time.process_time() - began < 1

    run(work)


def test_a_list_without_end_is_read_to_a_limit(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "endless_pages") as at:
            assert len(at.servers.tools()) == MOST_TOOLS
            assert "a server can offer 128 tools" in at.servers.status()[0].problems[0]

    run(work)


def test_a_server_that_knows_only_the_revision_without_a_handshake_is_understood(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "modern") as at:
            assert at.servers.status()[0].protocol == "2026-07-28"
            prefix = "io.modelcontextprotocol/"
            expected = [
                f"{prefix}clientCapabilities",
                f"{prefix}clientInfo",
                f"{prefix}protocolVersion",
                "progressToken",
            ]
            assert json.loads((await at.call("act")).text) == expected
            wants = await at.call("wants")
            assert wants.outcome == "error"
            assert "wants to ask" in wants.text

    run(work)


def test_a_server_that_will_not_leave_is_killed_with_its_children(tmp_path: Path) -> None:
    async def work() -> None:
        async with hostile(tmp_path, "stuck") as at:
            await until((at.traces / "survivor").exists)
            await until(lambda: bool((at.traces / "survivor").read_text()))
            survivor = int((at.traces / "survivor").read_text())
            assert _alive(survivor)
        await until(lambda: not _alive(survivor))

    run(work)


_DAEMON = """
import asyncio, sys
from pathlib import Path
from palyra.features.mcp.settings import ServerConfig
from palyra.features.mcp.acceptances import KnownFiles
from palyra.features.mcp.servers import Servers

async def main():
    folder = Path(sys.argv[1])
    program = "import os, sys, signal; print(os.getpid(), file=sys.stderr, flush=True); signal.pause()"
    config = ServerConfig(name="s", command=sys.executable, args=("-c", program))
    servers = Servers([config], KnownFiles(folder), folder)
    await servers.start()
    while not servers.status()[0].log:
        await asyncio.sleep(0.01)
    print(servers.status()[0].log.strip(), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_server_dies_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-c", _DAEMON, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert daemon.stdout is not None
        server = int(daemon.stdout.readline())
        assert _alive(server)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait(10)
        assert daemon.stdout is not None
        daemon.stdout.close()
    run(lambda: until(lambda: not _alive(server)))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
