"""The server part of the MCP conformance suite that applies: tools over streamable HTTP, in both generations of the protocol.

The suite is an npm package that scripts/conformance.py installs; `make test` does. It calls the daemon's own door, to which the
tools that its scenarios name were added; what they are about is how the door speaks.
"""

import asyncio
import json
from pathlib import Path

import pytest
from scripts import conformance

from palyra.models.scripted import Turn
from tests.mcp_client_world import SUITES_TOOLS, world

# Left out, see docs/reference/mcp-server.md: prompts, resources, completion, logging, sampling, elicitation, tasks, skills.
HANDSHAKE = (
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
MODERN = (
    "server-stateless",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
)
RUNS = [("2025-11-25", each) for each in HANDSHAKE] + [("2026-07-28", each) for each in MODERN]


async def _checked(url: str, version: str, scenario: str, folder: Path) -> str:
    """What the suite says that is wrong; empty if nothing is."""
    suite = await asyncio.create_subprocess_exec(
        conformance.node(), str(conformance.SUITE), "server", "--url", url, "--scenario", scenario, "--spec-version", version,
        "-o", str(folder), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(suite.communicate(), 60)
    wrong = [
        f"{check['id']}: {check['status']} {check.get('errorMessage', '')}"
        for file in folder.rglob("checks.json")
        for check in json.loads(file.read_text())
        if check["status"] in ("FAILURE", "WARNING")
    ]
    checked = any(folder.rglob("checks.json"))
    return "" if suite.returncode == 0 and checked and not wrong else "\n".join(wrong) or output.decode()[-3000:]


def test_the_server_conforms(tmp_path: Path) -> None:
    if not conformance.SUITE.exists():
        pytest.fail("the MCP conformance suite is not installed: run `python scripts/conformance.py`, and see what it says")

    async def scenario() -> dict[str, str]:
        async with world(tmp_path, [Turn(text="hi")], known=True) as here:
            here.door.tools |= {tool.name: tool for tool in SUITES_TOOLS}
            wrong = {}
            try:
                for version, name in RUNS:
                    said = await _checked(here.url, version, name, tmp_path / "suite" / version / name)
                    if said:
                        wrong[f"{name} {version}"] = said
            finally:
                for tool in SUITES_TOOLS:
                    del here.door.tools[tool.name]
            return wrong

    assert asyncio.run(scenario()) == {}
