"""What `palyra mcp` finds and writes on this machine: a server's program with what it needs to run,
and permits for its tools.
"""

import os
import re
import shutil
from pathlib import Path

from palyra.cli.settings_file import SettingsFile
from palyra.core.errors import ConfigInvalid, InvalidInput, NotFound
from palyra.system.private_files import write_private

FILE = "mcp.cedar"
_HEADING = "// What `palyra mcp permit` wrote. Delete a policy to have its calls denied again.\n"
# What every sandbox can read anyway.
_EVERYWHERE = ("/usr", "/bin", "/sbin", "/lib", "/opt", "/nix/store", "/gnu/store")
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def found(word: str) -> tuple[str, tuple[str, ...]]:
    """The program's path, and the folders that it must be able to read beyond what a sandbox
    shows.
    """
    path = shutil.which(word)
    if path is None:
        raise NotFound(f"there is no program {word!r}: install it, or give its whole path")
    path = os.path.abspath(path)
    # Through links, but not out of a virtual environment: its python is a link too.
    while os.path.islink(path) and _environment(path) is None:
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    inside = _environment(path)
    needs = [str(inside), *_base(inside)] if inside else [os.path.dirname(path)]
    return path, tuple(
        each for each in needs if not any(f"{each}/".startswith(f"{root}/") for root in _EVERYWHERE)
    )


def _environment(path: str) -> Path | None:
    """The virtual environment that a program is installed in."""
    folder = Path(path).parent.parent
    return folder if (folder / "pyvenv.cfg").is_file() else None


def _base(environment: Path) -> list[str]:
    """Where the python of a virtual environment comes from."""
    for line in (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return [os.path.dirname(os.path.realpath(value.strip()))]
    return []


def write_permits(
    home: Path, settings: SettingsFile, server: str, tools: tuple[str, ...], *, unattended: bool
) -> tuple[Path, list[str]]:
    """Add a policy for each tool, or one for the whole server. Gives the file and the ids that are
    new in it.
    """
    from palyra.policy import store

    named = settings.value("policy.folder")
    folder = Path(named) if named else home / "policies"
    path = folder / FILE
    before = path.read_text(encoding="utf-8") if path.exists() else _HEADING
    text, written = before, []
    for tool in tools or ("",):
        if tool and not _TOOL.fullmatch(tool):
            raise InvalidInput(
                f"{tool!r} is not the name of a tool: write it as `palyra mcp show {server}` does,"
                f" without mcp:{server}/"
            )
        name = f"mcp-{server}{f'-{tool}' if tool else ''}{'-unattended' if unattended else ''}"
        if f'@id("{name}")' not in text:
            text = f"{text.rstrip()}\n\n{_policy(name, server, tool, unattended=unattended)}"
            written.append(name)
    if not written:
        return path, written
    write_private(path, text.encode())
    if problems := store.check(folder, settings.value("policy.preset")):
        if before == _HEADING:
            path.unlink()
        else:
            write_private(path, before.encode())
        raise ConfigInvalid(
            f"the policy folder has problems, so nothing was added: {problems[0]}; see `palyra"
            " policy check`"
        )
    return path, written


def _policy(name: str, server: str, tool: str, *, unattended: bool) -> str:
    action = (
        'action in [Action::"run", Action::"run_unattended"]'
        if unattended
        else 'action == Action::"run"'
    )
    resource = f'resource == Tool::"mcp:{server}/{tool}"' if tool else "resource"
    what = f"mcp:{server}/{tool}" if tool else f"the tools of the MCP server {server}"
    condition = "" if tool else f' when {{\n  resource.source == "mcp:{server}"\n}}'
    return (
        f'@id("{name}")\n@reason("{what} may be'
        f' called{" without asking" if unattended else ", after a yes"}")\npermit (\n  principal =='
        f' User::"owner",\n  {action},\n  {resource}\n){condition};\n'
    )
