"""MCP servers in a whole daemon: settings for a program in the sandbox or an address, and a run
that uses what they offer.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from palyra.agent.approval_steps import Answer
from palyra.agent.submit import Submitted
from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, ModelRequest, Text, UserMessage
from palyra.features.mcp.settings import ServerStatus
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.serve.config.edit import literal
from palyra.serve.wiring.daemon import Daemon
from palyra.store.sessions import Session
from tests import inprocess, mcp_servers

BIN = os.path.dirname(sys.executable)
# Where this python, its packages and the tests are: a sandbox shows only what it is told to.
READABLE = tuple(dict.fromkeys((sys.prefix, os.path.realpath(sys.base_prefix))))
PERMIT = 'permit (principal, action, resource) when { resource.source like "mcp:*" };\n'
ASK = (
    'permit (principal, action == Action::"run", resource) when { resource.source like "mcp:*" };\n'
)


def table(name: str, **settings: Any) -> str:
    """The settings of one server as TOML."""
    lines = [f"{key} = {literal(value)}" for key, value in settings.items()]
    return f"[mcp.{name}]\n" + "\n".join(lines) + "\n"


def program(name: str, command: str, *args: str, **more: Any) -> str:
    readable = (*READABLE, *more.pop("readable", ()))
    return table(name, command=command, args=args, readable=readable, **more)


def honest(name: str = "s", **more: Any) -> str:
    """The honest server of the tests as a program in the sandbox."""
    tests = os.path.dirname(mcp_servers.SCRIPT)
    return program(name, sys.executable, mcp_servers.SCRIPT, "honest", readable=(tests,), **more)


def permit(folder: Path, text: str = PERMIT) -> None:
    place = folder / "home" / "policies"
    place.mkdir(parents=True, exist_ok=True)
    (place / "mcp.cedar").write_text(text)


async def eventually(holds: Callable[[], Any], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.01)


async def connected(daemon: Daemon, name: str = "s") -> ServerStatus:
    await eventually(lambda: daemon.mcp.one(name).state == "ready")
    return daemon.mcp.one(name)


async def accepted(daemon: Daemon, name: str = "s") -> ServerStatus:
    """The server, ready, with everything it offers accepted."""
    found = await connected(daemon, name)
    return await daemon.mcp.accept(OWNER, name, found.fingerprint) if found.pending else found


def obedient() -> ScriptedModel:
    """A model that calls what the message says, `mcp:s/add {"a": 1}`, and then repeats what came
    back.
    """

    def turn(request: ModelRequest) -> Turn:
        at = max(
            number
            for number, message in enumerate(request.messages)
            if isinstance(message, UserMessage)
        )
        if any(isinstance(message, AssistantMessage) for message in request.messages[at:]):
            return Turn(text="done")
        said = next(part.text for part in request.messages[at].parts if isinstance(part, Text))  # type: ignore[union-attr]
        tool, _, arguments = said.strip().partition(" ")
        return Turn(calls=(ScriptedCall(name=tool, arguments=json.loads(arguments or "{}")),))

    return ScriptedModel(turn)


async def began(daemon: Daemon, tool: str, **arguments: Any) -> tuple[Session, Submitted]:
    """A run that calls this tool."""
    where = await inprocess.session(daemon)
    return where, await inprocess.say(daemon, where, f"{tool} {json.dumps(arguments)}")


async def result_of(daemon: Daemon, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a run got that called this tool."""
    where, run = await began(daemon, tool, **arguments)
    finished = await inprocess.until(
        daemon, where.session_id, "tool.finished", run_id=run.run_id, seconds=40
    )
    await inprocess.finished(daemon, run)
    return inprocess.body(finished)


async def asked(daemon: Daemon, session_id: str) -> Entry:
    return await inprocess.until(daemon, session_id, "approval.requested", seconds=40)


async def answer(daemon: Daemon, request: Entry, **given: Any) -> None:
    await daemon.answers.answer(
        OWNER, inprocess.body(request)["approval_id"], Answer(**given), "test"
    )
