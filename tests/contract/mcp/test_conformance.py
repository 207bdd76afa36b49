"""The client part of the MCP conformance suite that applies: tools over streamable HTTP, in both
generations of the protocol.

The suite is an npm package that scripts/conformance.py installs; `make test` does. As a program,
this file is the client that the suite drives.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from palyra.core.ports import CallContext
from palyra.features.mcp.acceptances import KnownFiles
from palyra.features.mcp.accepted_tools import McpTool
from palyra.features.mcp.connection import RetryPace
from palyra.features.mcp.servers import Servers
from palyra.features.mcp.settings import ServerConfig

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[3]))
from scripts import conformance

# Left out, see docs/reference/mcp.md: auth/* (headers are configured instead), elicitation (nobody
# answers), sep-2640-* (skills).
SCENARIOS = (
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "sep-2322-client-request-state",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_client_conforms(tmp_path: Path, scenario: str) -> None:
    if not conformance.SUITE.exists():
        pytest.fail(
            "the MCP conformance suite is not installed: run `python scripts/conformance.py`, and see what it says"
        )
    command = f"{sys.executable} {Path(__file__).resolve()}"
    suite = subprocess.run(
        [
            conformance.node(),
            conformance.SUITE,
            "client",
            "--command",
            command,
            "--scenario",
            scenario,
            "-o",
            str(tmp_path),
            "--timeout",
            "80000",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert suite.returncode == 0, suite.stdout[-4000:]
    assert "OVERALL: PASSED" in suite.stdout


async def _main(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = ServerConfig(name="suite", url=url, timeout_ms=15_000)
        servers = Servers(
            [config], KnownFiles(Path(folder)), Path(folder), pace=RetryPace(first_s=0.2)
        )
        await servers.start()
        try:
            async with asyncio.timeout(75):
                while not servers.status()[0].starts:  # noqa: ASYNC110 - the suite's server answers when it likes
                    await asyncio.sleep(0.02)
                for each in servers.pending():
                    await servers.accept(each.server, each.tool, each.fingerprint)
                tools = {tool.declared.called: tool for tool in servers.tools()}
                for name, arguments in _calls(tools):
                    typed, _ = tools[name].parse(arguments)
                    context = CallContext(
                        principal="user:owner",
                        session_id="s",
                        run_id="r",
                        call_id="c",
                        workspace="/",
                    )
                    print(name, await tools[name].execute(typed, context))
        finally:
            await servers.close()


def _calls(tools: dict[str, McpTool]) -> list[tuple[str, dict[str, Any]]]:
    """What the scenario tells us to call, or each tool once."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        return [(call["name"], call.get("arguments", {})) for call in context["toolCalls"]]
    if "json_schema_echo" in tools:
        other = next(tool for name, tool in tools.items() if name != "json_schema_echo")
        return [("json_schema_echo", {"schema": other.declared.schema})]
    return [
        (name, _example(tool.declared.schema))
        for name, tool in tools.items()
        if "$ref" not in str(tool.declared.schema)
    ]


def _example(schema: dict[str, Any]) -> dict[str, Any]:
    examples = {
        "string": "text",
        "integer": 7,
        "number": 5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return {
        name: examples.get(each.get("type"), "x")
        for name, each in schema.get("properties", {}).items()
    }


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[-1]))
