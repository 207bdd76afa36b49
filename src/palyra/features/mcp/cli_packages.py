"""Installing and updating the packages of MCP servers from the command line: what a person is shown
before they accept it, and the pin that stands for their yes.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from palyra.cli import daemon_process
from palyra.cli.confirm import confirm
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError
from palyra.features.mcp import package_install, preview
from palyra.features.mcp.package_store import PACKAGES, InstalledPackage, PackageStore
from palyra.features.mcp.packages import PackageCommand, PackagePin, differences, package_of, pin_of
from palyra.features.mcp.preview import ToolChange

_MOST_SHOWN = 60


class PackageUpdate(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """What an update changes. `taken` says whether it is in the settings now."""

    name: str
    package: str
    was: str
    packages: tuple[str, ...]
    tools: tuple[ToolChange, ...]
    problem: str
    taken: bool


def store_of(state: CliState) -> PackageStore:
    return PackageStore(state.home / "mcp" / PACKAGES)


def settings_for(
    state: CliState, name: str, words: Sequence[str], given: dict[str, Any], *, yes: bool
) -> dict[str, Any]:
    """Install the package that a command names and return the server's settings, with what was
    accepted of it.
    """
    command = package_of(words)
    assert command is not None
    folder, readable, absent = _places(command.args)
    folder = os.path.abspath(given["folder"]) if given["folder"] else folder
    wanted = {
        "command": words[0],
        "args": _absolute(words[1:], command),
        "env": given["variables"],
        "folder": folder,
        "readable": tuple(dict.fromkeys((*readable, *map(os.path.abspath, given["readable"])))),
        "hosts": given["hosts"],
    }
    _check_terminal(state, yes=yes)
    daemon_process.make_home(state.home)
    store = store_of(state)
    state.out.note(f"installing {clean(command.wanted[0])}; nothing of it is run meanwhile")
    installed = package_install.install(store, command)
    wanted["package"] = str(installed.pin)
    if not yes:
        _show(state, installed)
        may = "read" if given["read_only"] else "read and change"
        if folder:
            state.out.line(f"  it may {may} {clean(folder)}")
        for each in wanted["readable"]:
            state.out.line(f"  it may read {clean(each)}")
        state.out.line(f"  network: {clean(', '.join(given['hosts'])) or 'none (--host HOST)'}")
        _ask_or_forget(state, store, installed.pin, f"add {clean(name)} with this package?")
    for each in absent:
        state.out.note(f"{clean(each)} does not exist, so the server will not see it")
    return {key: value for key, value in wanted.items() if value}


def update(state: CliState, name: str, *, yes: bool, look: bool) -> None:
    """Install what the command of a server names today; show what changes, and take it if that is
    wanted.
    """
    server = state.settings.tables("mcp")[name]
    command = package_of((server.command, *server.args)) if server.command else None
    if command is None:
        raise InvalidInput(f"the command of {clean(name)} fetches no package: nothing to update")
    if not look:
        _check_terminal(state, yes=yes)
    store = store_of(state)
    before = _installed(store, server.package)
    after = package_install.install(store, command)
    if server.package == str(after.pin):
        daemon_process.reload_if_running(state)
        _say(state, _update(name, server.package, before, after, (), "", taken=True))
        return
    tools, problem = preview.tool_changes(state.home, name, server, after.pin)
    change = _update(name, server.package, before, after, tools, problem, taken=False)
    if look:
        _forget(state, store, after.pin)
        _say(state, change)
        return
    if not yes:
        _show_update(state, change)
        _ask_or_forget(
            state, store, after.pin, f"use {clean(after.pin.short)} for {clean(name)} from now on?"
        )
    state.settings.set_values({f"mcp.{name}.package": str(after.pin)})
    daemon_process.reload_if_running(state)
    if before:
        _forget(state, store, before.pin)
    _say(state, _update(name, server.package, before, after, tools, problem, taken=True))


def forget(state: CliState, pin: str) -> None:
    """Remove a package, unless another server has it, too."""
    _forget(state, store_of(state), pin_of(pin))


def _update(
    name: str,
    was: str,
    before: InstalledPackage | None,
    after: InstalledPackage,
    tools: tuple[ToolChange, ...],
    problem: str,
    *,
    taken: bool,
) -> PackageUpdate:
    old = before.manifest.packages if before else ()
    return PackageUpdate(
        name=name,
        package=str(after.pin),
        was=was,
        packages=tuple(differences(old, after.manifest.packages)),
        tools=tools,
        problem=problem,
        taken=taken,
    )


def _installed(store: PackageStore, pin: str) -> InstalledPackage | None:
    try:
        return store.find(pin_of(pin)) if pin else None
    except (NotFound, Conflict):
        return None


def _forget(state: CliState, store: PackageStore, pin: PackagePin) -> None:
    servers = state.settings.tables("mcp").values()
    if str(pin) not in [each.package for each in servers]:
        store.remove(pin)


def _check_terminal(state: CliState, *, yes: bool) -> None:
    if not yes and (state.out.as_json or not sys.stdin.isatty()):
        raise InvalidInput("nobody can be asked here: look at the package first, then give --yes")


def _ask_or_forget(state: CliState, store: PackageStore, pin: PackagePin, question: str) -> None:
    try:
        confirm(question)
    except (PalyraError, InterruptedCommand):
        _forget(state, store, pin)
        raise


def _show(state: CliState, installed: InstalledPackage) -> None:
    out, manifest = state.out, installed.manifest
    out.line(f"{out.style(clean(manifest.name), 'bold')} {clean(manifest.version)}")
    out.line(f"  from {manifest.ecosystem}, sha256:{installed.pin.digest}")
    others = [each for each in manifest.packages if each.name != manifest.name]
    count = f"{len(others)} other package{'' if len(others) == 1 else 's'}"
    out.line(f"  needs {count}{':' if others else ''}")
    for each in others[:_MOST_SHOWN]:
        out.line(out.style(f"    {clean(each.name)} {clean(each.version)}", "dim"))
    if len(others) > _MOST_SHOWN:
        out.line(out.style(f"    … and {len(others) - _MOST_SHOWN} more", "dim"))


def _show_update(state: CliState, change: PackageUpdate) -> None:
    out = state.out
    was = pin_of(change.was).short if change.was else "nothing accepted yet"
    out.line(f"{clean(was)} -> {clean(pin_of(change.package).short)}")
    for line in change.packages[:_MOST_SHOWN]:
        out.line(out.style(f"  {clean(line)}", {"+": "green", "-": "red"}.get(line[0], "yellow")))
    if len(change.packages) > _MOST_SHOWN:
        out.line(out.style(f"  … and {len(change.packages) - _MOST_SHOWN} more", "dim"))
    for tool in change.tools:
        out.line(f"  tool {clean(tool.tool)}: {clean(tool.words)}")
        for line in tool.change.splitlines()[:_MOST_SHOWN]:
            color = {"+": "green", "-": "red"}.get(line[:1], "dim")
            out.line(out.style(f"    {clean(line)}", color))
    if change.problem:
        out.line(f"  its tools could not be compared: {clean(change.problem)}")
    elif not change.tools:
        out.line("  its tools stay as they were accepted")


def _say(state: CliState, change: PackageUpdate) -> None:
    if state.out.as_json:
        state.out.json(change)
        return
    short = clean(pin_of(change.package).short)
    if change.package == change.was:
        state.out.line(f"{clean(change.name)} has {short} already; nothing changes")
        return
    if not change.taken:
        _show_update(state, change)
        state.out.line(f"take it with: palyra mcp update {clean(change.name)}")
        return
    state.out.line(f"{clean(change.name)} uses {short} from now on")


def _absolute(words: Sequence[str], command: PackageCommand) -> tuple[str, ...]:
    """Return a launcher's words with the path of a package here as the daemon finds it, too."""
    here = command.wanted[0]
    return tuple(
        here if os.path.isabs(here) and os.path.abspath(os.path.expanduser(each)) == here else each
        for each in words
    )


def _places(args: Sequence[str]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return what a server's arguments let it see: the first folder that they name is its own,
    others it may read. And what they name that does not exist.
    """
    folders, absent = list[str](), list[str]()
    for each in args:
        path = each.partition("=")[2] if each.startswith("-") else each
        if not os.path.isabs(path):
            continue
        place = path if os.path.isdir(path) else os.path.dirname(path)
        if not os.path.exists(place):
            absent.append(path)
        elif place not in ("/", os.path.expanduser("~")) or os.path.isdir(path):
            folders.append(os.path.normpath(place))
    first, *others = [*dict.fromkeys(folders), ""]
    return first, tuple(each for each in others if each), tuple(absent)
