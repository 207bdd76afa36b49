"""The settings of an MCP server, as they are written into the file."""

from palyra.core.errors import InvalidInput
from palyra.features.mcp import packages
from palyra.features.mcp import process as mcp_process
from palyra.features.setup.model import NewMcpServer


def settings(new: NewMcpServer) -> dict[str, object]:
    """The settings of a server; a program is found as a shell would find it."""
    if new.url:
        return {"url": new.url, **({"headers": new.headers} if new.headers else {})}
    if packages.package_of(new.command) is not None:
        raise InvalidInput(
            f"{new.command[0]} fetches a package, which is installed once and accepted by what it"
            f" is: run `palyra mcp add {new.name} -- {' '.join(new.command)}` in a terminal"
        )
    program, needs = mcp_process.found(new.command[0], new.command[1:])
    wanted: dict[str, object] = {
        "command": program,
        "args": new.command[1:],
        "env": new.env,
        "folder": new.folder,
        "readable": needs,
        "hosts": new.hosts,
    }
    settings = {key: value for key, value in wanted.items() if value}
    return settings | ({} if new.writable else {"writable": False})
