"""Calls to judge, for the policy tests: the tools of the catalogue as they declare themselves, and
questions about them.
"""

from typing import Any

from palyra.core.tools import Capability, Effect, Scope, ToolSpec
from palyra.core.verdicts import Question

WORKSPACE = "/home/me/project"
SESSION = "01JD0000000000000000000000"


def tool(
    name: str, effect: Effect, *capabilities: Capability, source: str = "internal"
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description="",
        parameters={},
        effect=effect,
        capabilities=capabilities,
        source=source,
    )


READ = tool("fs.read", "pure", "fs.read")
PATCH = tool("fs.patch", "reversible", "fs.read", "fs.write")
SHELL = tool("shell.run", "once", "process")
FETCH = tool("http.fetch", "once", "network")
RECALL = tool("memory.search", "pure", "memory")
SEND = tool("message.send", "once", "message")
UNLOCK = tool("vault.use", "idempotent", "secrets")
MCP = tool("mcp:git/log", "pure", source="mcp:git")
SKILL = tool("skill:weather/today", "pure", source="skill:weather")


def scope(*paths: str, **more: Any) -> Scope:
    return Scope(paths=paths, workspace=WORKSPACE, **more)


def call(what: ToolSpec = READ, where: Scope | None = None, **more: Any) -> Question:
    given: dict[str, Any] = {
        "principal": "user:owner",
        "session_id": SESSION,
        "origin": "interactive",
        "now_ms": 1_700_000_000_000,
    }
    return Question(tool=what, scope=where or scope(f"{WORKSPACE}/a.py"), **(given | more))
