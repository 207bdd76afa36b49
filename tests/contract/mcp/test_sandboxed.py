"""An MCP server's program inside the sandbox. Needs a kernel and rights that give tier C or B, and
says so where they do not.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from palyra.features.mcp import process
from palyra.features.mcp.settings import ServerConfig
from palyra.tools.sandbox.sandbox import Sandbox
from tests.contract.mcp.test_servers import At, opened, run, until

_LOOK = """
import json, os, socket, sys
def tried(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "inside", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "try_out", "inputSchema": {"type": "object"}}]}
    elif request["method"] == "tools/call":
        outside, port = sys.argv[1], int(sys.argv[2])
        found = {
            "own folder": tried(lambda: open("mine", "w").close()),
            "read outside": tried(lambda: open(outside).close()),
            "write outside": tried(lambda: open(os.path.dirname(outside) + "/new", "w").close()),
            "network": tried(lambda: socket.create_connection(("127.0.0.1", port), 2)),
        }
        result = {"content": [{"type": "text", "text": json.dumps(found)}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("tier", ["C", "B"])
def test_a_server_in_the_sandbox_works_and_reaches_nothing_else(tmp_path: Path, tier: str) -> None:
    async def work() -> None:
        python = (
            "/usr/bin/python3"
            if os.path.exists("/usr/bin/python3")
            else os.path.realpath(sys.executable)
        )
        readable = [] if python.startswith("/usr/") else [sys.base_prefix]
        sandbox = Sandbox(readable=readable, most=tier)  # type: ignore[arg-type]
        probe = await sandbox.probe()
        if probe.tier != tier:
            pytest.skip(f"this machine does not give tier {tier}: {probe.reason}")
        secret = tmp_path / "outside" / "secret"
        secret.parent.mkdir()
        secret.write_text("hush")
        canary = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = canary.sockets[0].getsockname()[1]
        config = ServerConfig(name="s", command=python, args=("-c", _LOOK, str(secret), str(port)))
        spawn = process.spawner(sandbox, tier=probe.tier)
        async with canary, opened(tmp_path, config, spawn=spawn) as servers:
            at = At(servers, tmp_path / "work" / "s")
            await until(lambda: bool(servers.pending()))
            await at.accept_all()
            result = await at.call("try_out")
            found = json.loads(result.text)
            assert found.pop("own folder") == "done"
            assert "done" not in found.values(), found

    run(work)


def test_a_server_does_not_start_where_the_machine_gives_less_than_asked(tmp_path: Path) -> None:
    async def work() -> None:
        sandbox = Sandbox(most="A")
        config = ServerConfig(name="s", command="/bin/cat")
        async with opened(tmp_path, config, spawn=process.spawner(sandbox)) as servers:
            await until(lambda: bool(servers.status()[0].detail))
            assert "this machine gives tier A" in servers.status()[0].detail

    run(work)
