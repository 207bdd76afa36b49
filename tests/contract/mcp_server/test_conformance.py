"""The server part of the MCP conformance suite that applies: tools over streamable HTTP, in both
generations of the protocol.

The suite is an npm package that scripts/conformance.py installs; `make test` does. It calls the
daemon's own door, to which the tools that its scenarios name were added; what they are about is how
the door speaks.
"""

import asyncio
import json
import re
from pathlib import Path

import pytest
from scripts import conformance

from palyra.models.scripted import Turn
from tests.mcp_client_world import SUITES_TOOLS, world

# Left out, see docs/reference/mcp-server.md: prompts, resources, completion, logging, sampling,
# elicitation, tasks, skills.
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
_TIME = re.compile(r"-\d{4}-\d\d-\d\dT.*")
APPLIES = {"2025-11-25": HANDSHAKE, "2026-07-28": MODERN}


async def _checked(url: str, version: str, folder: Path) -> dict[str, list[str]]:
    """What the suite finds wrong, by scenario. All of them run in one process: starting it costs
    more than they do.
    """
    suite = await asyncio.create_subprocess_exec(
        conformance.node(), str(conformance.SUITE), "server", "--url", url, "--suite", "all", "--spec-version", version,
        "-o", str(folder), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await asyncio.wait_for(suite.wait(), 90)
    finally:
        if suite.returncode is None:
            suite.kill()
    found = {}
    for file in folder.glob("server-*/checks.json"):
        scenario = _TIME.sub("", file.parent.name.removeprefix("server-"))
        checks = json.loads(file.read_text())
        wrong = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
        found[scenario] = (
            [f"{check['id']}: {check.get('errorMessage', '')}" for check in wrong]
            if checks
            else ["nothing was checked"]
        )
    return found


def test_the_server_conforms(tmp_path: Path) -> None:
    if not conformance.SUITE.exists():
        pytest.fail(
            "the MCP conformance suite is not installed: run `python scripts/conformance.py`, and see what it says"
        )

    async def scenario() -> dict[str, dict[str, list[str]]]:
        async with world(tmp_path, [Turn(text="hi")], known=True) as here:
            here.door.tools |= {tool.name: tool for tool in SUITES_TOOLS}
            try:
                return {
                    version: await _checked(here.url, version, tmp_path / version)
                    for version in APPLIES
                }
            finally:
                for tool in SUITES_TOOLS:
                    del here.door.tools[tool.name]

    found = asyncio.run(scenario())
    for version, names in APPLIES.items():
        assert {name: found[version].get(name, ["it did not run"]) for name in names} == {
            name: [] for name in names
        }
