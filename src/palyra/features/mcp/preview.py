"""Tools of another version of a server, before anybody takes it: it is started in the sandbox, with
no network, no secrets and a folder that is thrown away.
"""

import asyncio
import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.core.errors import PalyraError
from palyra.features.mcp import process
from palyra.features.mcp.acceptances import KnownFiles
from palyra.features.mcp.packages import PackagePin
from palyra.features.mcp.servers import Servers
from palyra.features.mcp.settings import ServerConfig, ServerStatus
from palyra.tools.sandbox.sandbox import Sandbox

_LONGEST_S = 45.0
_LOOK_EVERY_S = 0.05


class ToolChange(Struct, frozen=True):
    """A tool that is new, gone, or not what was accepted."""

    tool: str
    words: str
    change: str = ""


def tool_changes(
    home: Path, name: str, server: Any, pin: PackagePin
) -> tuple[tuple[ToolChange, ...], str]:
    """Return how the tools of a package differ from those accepted of a server; or why that cannot
    be said.
    """
    config = ServerConfig(
        name=name,
        command=server.command,
        args=server.args,
        env={key: "preview" for key, _, _ in (each.partition("=") for each in server.env)},
        folder=server.folder,
        writable=False,
        readable=server.readable,
        tier=server.tier,
        package=str(pin),
    )
    known = KnownFiles(home / "mcp" / "known")
    try:
        status = asyncio.run(_started(home, config, known))
    except PalyraError as error:
        return (), error.message
    if status.state != "ready":
        return (), status.detail or "it did not start in time"
    listed = {each.tool for each in status.pending}
    listed |= {each.removeprefix(f"{config.source}/") for each in status.tools}
    gone = sorted(known.names(name) - listed)
    return (
        *(ToolChange(each.tool, each.words, each.change) for each in status.pending),
        *(ToolChange(each, "it is gone") for each in gone),
    ), ""


async def _started(home: Path, config: ServerConfig, known: KnownFiles) -> ServerStatus:
    # Its work folder lies beside the installed packages, where the daemon's own ones are.
    work = Path(tempfile.mkdtemp(prefix="preview-", dir=home / "mcp"))
    sandbox = Sandbox(hidden=(str(home),))
    spawn = process.spawner_for(config, sandbox, _no_way_out, closed=(str(home),))
    config = dataclasses.replace(config, hosts=())
    servers = Servers([config], known, work, spawn=spawn)
    try:
        await servers.start()
        async with asyncio.timeout(_LONGEST_S):
            while servers.status()[0].state == "starting":  # noqa: ASYNC110 - another process
                await asyncio.sleep(_LOOK_EVERY_S)
        return servers.status()[0]
    except TimeoutError:
        return servers.status()[0]
    finally:
        await servers.close()
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


def _no_way_out(hosts: frozenset[str]) -> Any:
    raise AssertionError("a preview has no hosts")
