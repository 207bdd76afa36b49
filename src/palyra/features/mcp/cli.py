"""`palyra mcp`: other people's tools. What they offer is shown before it is accepted, and accepting
is not yet permitting.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from palyra.cli import daemon_process
from palyra.cli.commands import group, verb
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.mcp import Pending, ServerStatus
from palyra.core.argument_roles import ROLES, ArgumentUse, ToolUse
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.features.mcp import packages, process
from palyra.features.mcp.packages import pin_of

mcp = group(
    "mcp",
    "MCP servers: list, show, accept, permit, restart, add, remove; and being one: serve.",
    default="list",
)
_COLORS = {
    "ready": "green",
    "starting": "yellow",
    "waiting": "red",
    "failed": "red",
    "stopped": "red",
    "disabled": "dim",
}
_SHOWN_OF_CHANGE = 60


def servers(state: CliState) -> Sequence[ServerStatus]:
    return state.api.list_mcp_servers().servers


def _one(state: CliState, name: str) -> ServerStatus:
    found = {each.name: each for each in servers(state)}
    if name not in found:
        known = (
            f"there are {', '.join(found)}"
            if found
            else "none is configured; `palyra mcp add` makes one"
        )
        raise NotFound(f"there is no MCP server {name!r}: {known}")
    return found[name]


@verb(mcp, "list", help="List the servers with their state.")
def list_(state: CliState) -> None:
    found = servers(state)
    if state.out.as_json:
        state.out.json({"servers": found})
        return
    if not found:
        state.out.line(
            "no MCP server is configured: `palyra mcp add NAME COMMAND…` or `palyra mcp add NAME"
            " --url URL`"
        )
        return
    rows = [
        [
            each.name,
            each.state,
            each.transport,
            str(len(each.tools)),
            str(len(each.pending)),
            each.where,
        ]
        for each in found
    ]
    state.out.table(
        ["name", "state", "transport", "tools", "pending", "where"],
        rows,
        right=["tools", "pending"],
    )
    for each in found:
        if each.detail:
            state.out.note(f"{each.name}: {one_line(each.detail)}")
        elif each.pending:
            state.out.note(
                f"{each.name}: {len(each.pending)} of its tools wait for your yes: palyra mcp"
                f" accept {each.name}"
            )


@verb(
    mcp,
    "show",
    help="Show one server: its tools, what needs to be accepted and what it wrote to its log.",
)
@click.argument("name")
def show(state: CliState, name: str) -> None:
    found = _one(state, name)
    if state.out.as_json:
        state.out.json(found)
        return
    out = state.out
    out.line(
        f"{out.style(found.name, 'bold')}: {out.style(found.state, _COLORS[found.state])} "
        f" {one_line(found.detail)}".rstrip()
    )
    about = {
        "where": (
            f"{found.where}"
            f" ({found.transport}{f', sandbox tier {found.tier}' if found.tier else ''})"
        ),
        "package": pin_of(found.package).short if found.package else "",
        "server": found.server,
        "protocol": found.protocol,
        "connected": f"{found.starts} times" if found.starts != 1 else "once",
    }
    for key, value in about.items():
        if value:
            out.line(f"  {key:<10} {clean(value)}")
    for tool in found.tools:
        out.line(f"  offered    {clean(tool)}")
        use = found.uses.get(tool.partition("/")[2])
        if use is not None:
            out.line(out.style(f"             {clean(described(use))}", "dim"))
    for problem in found.problems:
        out.line(f"  left out   {one_line(problem)}")
    _show_pending(state, found.pending)
    if found.pending:
        out.line(f"accept them with `palyra mcp accept {found.name}`")
    if found.log:
        out.line("the end of its log:")
        out.line(
            out.style("\n".join(f"  {clean(line)}" for line in found.log.splitlines()[-20:]), "dim")
        )


def _show_pending(state: CliState, pending: Sequence[Pending]) -> None:
    for each in pending:
        state.out.line(
            f"  {state.out.style('waits', 'yellow')}      {clean(each.tool)}:"
            f" {one_line(each.words)}"
        )
        if each.use is not None:
            state.out.line(f"    arguments: {clean(described(each.use))}")
        lines = each.change.splitlines()
        for line in lines[:_SHOWN_OF_CHANGE]:
            color = {"+": "green", "-": "red"}.get(line[:1], "dim")
            state.out.line(state.out.style(f"    {clean(line)}", color))
        if len(lines) > _SHOWN_OF_CHANGE:
            state.out.line(
                state.out.style(
                    f"    … {len(lines) - _SHOWN_OF_CHANGE} more lines; --json shows all", "dim"
                )
            )


@verb(
    mcp,
    "accept",
    help=(
        "Offer a server's tools to the agent, as they are now. Policy still decides about every"
        " call."
    ),
)
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option(
    "--yes", is_flag=True, help="Do not ask; for scripts that have looked at `palyra mcp show`."
)
def accept(state: CliState, name: str, tools: tuple[str, ...], yes: bool) -> None:
    found = _one(state, name)
    chosen = [each for each in found.pending if not tools or each.tool in tools]
    unknown = set(tools) - {each.tool for each in found.pending}
    if unknown:
        raise NotFound(
            f"{', '.join(sorted(unknown))}: no such tool of {name} needs to be accepted; see"
            f" `palyra mcp show {name}`"
        )
    if not chosen:
        raise Conflict(
            f"nothing of {name} needs approval" + (f": {found.detail}" if found.detail else "")
        )
    if not yes:
        if state.out.as_json or not sys.stdin.isatty():
            raise InvalidInput(f"look at `palyra mcp show {name}`, then give --yes")
        _show_pending(state, chosen)
        confirm(f"offer {len(chosen)} of {name}'s tools to the agent?")
    # Exactly what was shown: one fingerprint for all of it, or one for each.
    prints = (
        [found.fingerprint]
        if len(chosen) == len(found.pending)
        else [each.fingerprint for each in chosen]
    )
    for fingerprint in prints:
        found = state.api.accept_mcp_server(name, fingerprint=fingerprint)
    said = (
        f"{len(chosen)} of {name}'s tools are offered; calls are denied until permitted: `palyra"
        f" mcp permit {name}`"
    )
    state.out.result(found, said)


def described(use: ToolUse) -> str:
    """Return what a tool does with its arguments, in a line."""
    does = (
        "only reads"
        if use.reads_only
        else "high impact: moves money, deletes, shares, publishes or speaks to others"
        if use.high_impact
        else "changes things"
    )
    trusted = "; its results are yours and trusted" if use.trusted_results else ""
    roles = ", ".join(f"{each.name} = {each.role}" for each in use.arguments)
    return f"{does}{trusted}; {roles or 'no arguments'}"


@verb(
    mcp,
    "arguments",
    help="Show or change what a tool's arguments are for: where a call goes, what goes there.",
)
@click.argument("name")
@click.argument("tool")
@click.argument("roles", nargs=-1, metavar="[ARGUMENT=ROLE]…")
@click.option("--reads-only/--changes", "reads_only", default=None, help="Whether it only reads.")
@click.option(
    "--high-impact/--low-impact",
    "high_impact",
    default=None,
    help="Whether it pays, deletes, shares, publishes or speaks to others.",
)
@click.option(
    "--trusted-results/--untrusted-results",
    "trusted_results",
    default=None,
    help="Whether you wrote what it returns, as in an address book.",
)
def arguments(
    state: CliState, name: str, tool: str, roles: tuple[str, ...], **flags: bool | None
) -> None:
    found = _one(state, name)
    tool = tool.removeprefix(f"mcp:{name}/")
    use = found.uses.get(tool, ToolUse())
    if not roles and all(each is None for each in flags.values()):
        if tool not in found.uses:
            raise NotFound(
                f"nothing is known of the arguments of {tool} of {name}; say it with"
                f" `palyra mcp arguments {name} {tool} ARGUMENT=ROLE`"
            )
        state.out.result(use, clean(described(use)))
        return
    wanted = {each.name: each.role for each in use.arguments}
    for each in roles:
        argument, mark, role = each.partition("=")
        if not mark or role not in ROLES:
            raise InvalidInput(f"{each}: give ARGUMENT=ROLE, a role of {', '.join(ROLES)}")
        wanted[argument] = role
    changed = {key: value for key, value in flags.items() if value is not None}
    use = msgspec.structs.replace(
        use, arguments=tuple(ArgumentUse(key, role) for key, role in wanted.items()), **changed
    )
    state.out.result(
        state.api.set_mcp_arguments(name, tool=tool, use=use), clean(f"{tool}: {described(use)}")
    )


@verb(mcp, "restart", help="Restart a server; its secrets are looked up again.")
@click.argument("name")
def restart(state: CliState, name: str) -> None:
    _one(state, name)
    state.out.result(state.api.restart_mcp_server(name), f"{clean(name)} restarts")


@verb(
    mcp,
    "permit",
    help=(
        "Let calls of a server's tools ask you, instead of being denied. Writes a policy into the"
        " policy folder."
    ),
)
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option(
    "--unattended", is_flag=True, help="Let them run without asking, where nothing else forbids it."
)
def permit(state: CliState, name: str, tools: tuple[str, ...], unattended: bool) -> None:
    _configured(state, name)
    path, written = process.write_permits(
        state.home, state.settings, name, tools, unattended=unattended
    )
    said = (
        f"{len(written)} policies are in {path}; delete one to be rid of it"
        if written
        else f"{path} says so already"
    )
    state.out.result({"file": str(path), "policies": written}, said)


@verb(
    mcp,
    "add",
    help=(
        "Add a server to the settings: a program that runs here (COMMAND …), a package (npx …,"
        " uvx …), or an address (--url)."
    ),
)
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--yes", is_flag=True, help="Do not ask before a package is taken; for scripts.")
@click.option("--url", default="", help="Address of a server that speaks streamable HTTP.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Sent with each request; secrets as vault:NAME.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="For the program; secrets as NAME=vault:NAME.",
)
@click.option(
    "--folder",
    default="",
    metavar="FOLDER",
    help="What the program works in; else it has a folder of its own.",
)
@click.option("--read-only", is_flag=True, help="It may look at that folder and not change it.")
@click.option("--readable", multiple=True, metavar="FOLDER", help="More folders that it may read.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="It may reach this host; else it has no network.",
)
def add(state: CliState, name: str, command: tuple[str, ...], yes: bool, **given: Any) -> None:
    if name in state.settings.tables("mcp"):
        raise Conflict(
            f"there is an MCP server {name} already: `palyra mcp remove {name}` first, or `palyra"
            f" config set mcp.{name}.…`"
        )
    if bool(command) == bool(given["url"]):
        raise InvalidInput("give either a command or --url")
    settings = _wanted(state, name, command, given, yes=yes)
    daemon_process.make_home(state.home)
    state.settings.set_values({f"mcp.{name}.{key}": value for key, value in settings.items()})
    told = daemon_process.reload_if_running(state)
    after = f"look at what it offers with `palyra mcp show {name}`, then `palyra mcp accept {name}`"
    how = "it is being started" if told else "it starts with the daemon"
    state.out.result(
        {"name": name, "settings": settings, "started": told},
        f"{clean(name)} is in the settings and {how}; {after}",
    )


def _wanted(
    state: CliState, name: str, command: tuple[str, ...], given: dict[str, Any], *, yes: bool
) -> dict[str, Any]:
    """Return the settings of a new server; its package, if it has one, is installed then."""
    if command and packages.package_of(command) is not None:
        from palyra.features.mcp import cli_packages

        return cli_packages.settings_for(state, name, command, given, yes=yes)
    return _settings(command, given)


def _settings(command: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    if given["url"]:
        return {"url": given["url"], **({"headers": given["headers"]} if given["headers"] else {})}
    args = tuple(
        os.path.abspath(each) if os.sep in each and os.path.isfile(each) else each
        for each in command[1:]
    )
    program, needs = process.found(command[0], args)
    wanted: dict[str, Any] = {
        "command": program,
        "args": args,
        "env": given["variables"],
        "folder": os.path.abspath(given["folder"]) if given["folder"] else "",
        "readable": tuple(dict.fromkeys((*needs, *map(os.path.abspath, given["readable"])))),
        "hosts": given["hosts"],
    }
    settings = {key: value for key, value in wanted.items() if value}
    return settings | ({"writable": False} if given["read_only"] else {})


@verb(
    mcp, "remove", help="Take a server out of the settings. Its folder and what was accepted stay."
)
@click.argument("name")
def remove(state: CliState, name: str) -> None:
    _configured(state, name)
    package = state.settings.tables("mcp")[name].package
    state.settings.remove_table(("mcp", name))
    daemon_process.reload_if_running(state)
    if package:
        from palyra.features.mcp import cli_packages

        cli_packages.forget(state, package)
    state.out.result({"removed": name}, f"{clean(name)} is no longer in the settings")


def _configured(state: CliState, name: str) -> None:
    if name not in state.settings.tables("mcp"):
        raise NotFound(
            f"there is no [mcp.{name}] in the settings: `palyra config show` lists what there is"
        )


@verb(
    mcp,
    "update",
    help="Install the newest version of a server's package. What changes is shown first.",
)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Take it without asking; for scripts that have looked.")
@click.option("--dry-run", "look", is_flag=True, help="Only show what would change.")
def update(state: CliState, name: str, yes: bool, look: bool) -> None:
    from palyra.features.mcp import cli_packages

    _configured(state, name)
    cli_packages.update(state, name, yes=yes, look=look)


@verb(
    mcp,
    "import",
    help="Add the servers that another program's settings name: Claude, Cursor, VS Code.",
)
@click.argument("file", default="")
@click.option("--dry-run", "look", is_flag=True, help="Only show what would be added.")
@click.option("--yes", is_flag=True, help="Do not ask; for scripts that have looked.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the file would ask for; may be given more than once.",
)
def import_(state: CliState, file: str, look: bool, yes: bool, inputs: tuple[str, ...]) -> None:
    from palyra.features.mcp import cli_import

    def settle(name: str, words: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
        return _wanted(state, name, words, given, yes=yes)

    cli_import.run(state, file, inputs, yes=yes, look=look, settle=settle)


@verb(
    mcp,
    "serve",
    help=(
        "Be an MCP server on standard input and output, for another agent: the daemon's own, see"
        " docs."
    ),
)
def serve(state: CliState) -> None:
    from palyra.features.mcp_server.stdio import Bridge

    Bridge(state.api.http, sys.stdout.buffer).run(sys.stdin.buffer)
