"""Other people's MCP clients against the daemon: the Python SDK over HTTP and stdio, the inspector,
and our own client.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from scripts import mcp_inspector

from palyra.core.ports import CallContext
from palyra.features.mcp.acceptances import KnownFiles
from palyra.features.mcp.connection import RetryPace
from palyra.features.mcp.servers import Servers
from palyra.features.mcp.settings import ServerConfig
from tests import daemon
from tests.daemon import DaemonProcess


def stdio(served: DaemonProcess) -> StdioServerParameters:
    arguments = ["-m", "palyra.cli.main", "mcp", "serve", "--home", str(served.home)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))


async def used(client: Client) -> tuple[str, set[str], str, list[str], str]:
    """Everything that a client does: what was agreed, the tools, an answer with what was told on
    the way, a refusal.
    """
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("ask", {"text": "hi"}, progress_callback=progress)
        assert not answer.is_error
        where = answer.structured_content
        assert isinstance(where, dict)
        read = await client.call_tool("session_read", {"session_id": where["session_id"]})
        assert [line["text"] for line in read.structured_content["lines"]] == ["hi", "hello there"]
        wrong = await client.call_tool("session_read", {"session_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
        assert wrong.is_error
        text = answer.content[0].text  # type: ignore[union-attr]
        return client.protocol_version, tools, text, told, wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_the_python_sdk(served: DaemonProcess, mode: Any, way: str) -> None:
    async def scenario() -> tuple[str, set[str], str, list[str], str]:
        async with (
            asyncio.timeout(40),
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}) as http,
        ):
            over_http = streamable_http_client(f"{served.url}/mcp", http_client=http)
            return await used(Client(over_http if way == "http" else stdio(served), mode=mode))

    version, tools, text, told, wrong = asyncio.run(scenario())
    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert {
        "ask",
        "run",
        "sessions_list",
        "approvals_list",
        "memory_search",
        "journal_verify",
    } <= tools
    assert text == "hello there"
    assert told[:2] == ["taken", "working"]
    assert "not_found" in wrong


def test_the_inspector(served: DaemonProcess, tmp_path: Path) -> None:
    if not mcp_inspector.PROGRAM.exists():
        pytest.fail(
            "the MCP inspector is not installed: run `python scripts/mcp_inspector.py`, and see what it says"
        )
    target = [
        f"{served.url}/mcp",
        "--transport",
        "http",
        "--header",
        f"Authorization: Bearer {served.token}",
    ]
    asked = ["--method", "tools/call", "--tool-name", "ask", "--tool-arg", "text=hi"]
    launcher = mcp_inspector.PROGRAM.parents[2] / "launcher" / "build" / "index.js"
    done = subprocess.run(
        [mcp_inspector.node(), launcher, "--cli", *target, *asked],
        capture_output=True, text=True, timeout=60, check=False, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["content"][0]["text"] == "hello there"


def test_our_own_client(served: DaemonProcess, tmp_path: Path) -> None:
    async def scenario() -> str:
        headers = {"Authorization": f"Bearer {served.token}"}
        config = ServerConfig(
            name="self", url=f"{served.url}/mcp", headers=headers, timeout_ms=20_000
        )
        servers = Servers([config], KnownFiles(tmp_path), tmp_path, pace=RetryPace(first_s=0.1))
        await servers.start()
        try:
            async with asyncio.timeout(30):
                while not servers.pending():  # noqa: ASYNC110 - another program's door; there is nothing to wait on but the clock
                    await asyncio.sleep(0.02)
                for each in servers.pending():
                    await servers.accept(each.server, each.tool, each.fingerprint)
                (ask,) = (tool for tool in servers.tools() if tool.declared.called == "ask")
                typed, _ = ask.parse({"text": "hi"})
                context = CallContext(
                    principal="user:owner", session_id="s", run_id="r", call_id="c", workspace="/"
                )
                result = await ask.execute(typed, context)
                return result.text
        finally:
            await servers.close()

    assert "hello there" in asyncio.run(scenario())


def test_lines_that_are_no_messages_are_answered(served: DaemonProcess) -> None:
    server = stdio(served)
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    sent = [
        b"{", b"[]", b"7", b"[" * 100_000, b" " * ((1 << 20) + 9), b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": hello}).encode(),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 3, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}',
        b'{"jsonrpc": "2.0", "id": 4, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ask", "arguments": {"text": "hi"}}}',
    ]  # fmt: skip
    done = subprocess.run(
        [server.command, *server.args],
        input=b"\n".join(sent) + b"\n",
        stdout=subprocess.PIPE,
        timeout=40,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    unnamed = [each["error"]["code"] for each in answers if "error" in each and each["id"] is None]
    assert unnamed == [-32700, -32600, -32600, -32700, -32700, -32600]
    by_id = {each["id"]: each for each in answers if each.get("id") is not None}
    assert "Mcp-Session-Id is missing" in by_id[1]["error"]["message"]
    assert by_id[2]["result"]["serverInfo"]["name"] == "palyra"
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[4]["result"] == {}
    assert by_id[5]["result"]["content"][0]["text"] == "hello there"


def test_an_answer_over_stdio_outlives_the_daemon(tmp_path: Path) -> None:
    """The daemon dies in the middle of a run and comes back elsewhere: whoever waits gets the
    answer, once.
    """
    script = {"*": [{"text": ["so ", "far"], "hold": str(tmp_path / "hold"), "hold_after": 1}]}
    with daemon.start(tmp_path, script=script) as served:

        async def scenario() -> list[str]:
            working = asyncio.Event()

            async def progress(done: float, total: float | None, message: str | None) -> None:
                if message == "working":
                    working.set()

            async with asyncio.timeout(60), Client(stdio(served), mode="legacy") as client:
                asking = asyncio.create_task(
                    client.call_tool("ask", {"text": "go"}, progress_callback=progress)
                )
                await working.wait()
                await asyncio.to_thread(served.kill)
                (tmp_path / "hold").touch()
                await asyncio.to_thread(served.restart)
                answer = await asking
                listed = await client.call_tool("sessions_list", {})
                assert len(listed.structured_content["sessions"]) == 1
                return [block.text for block in answer.content]  # type: ignore[union-attr]

        assert asyncio.run(scenario())[0] == "so far"
