"""Starts of installed packages: which file of a package is run, by which interpreter, and what that
one must be able to read.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from palyra.core.errors import Conflict, NotFound
from palyra.features.mcp.packages import PackageCommand, normalized

# The interpreter of a Python package: a link to ours, and what makes an environment of it.
MADE_AT_START = ("bin", "pyvenv.cfg")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# What a console script does, without a file that names an absolute path.
_RUN = (
    "import sys, functools, importlib\n"
    "_, module, name, *sys.argv = sys.argv\n"
    "sys.exit(functools.reduce(getattr, name.split('.'), importlib.import_module(module))())"
)


# What every sandbox can read anyway.
_EVERYWHERE = ("/usr", "/bin", "/sbin", "/lib", "/opt", "/nix/store", "/gnu/store")


def beyond_system(folders: Iterable[str]) -> tuple[str, ...]:
    """Return those of the folders that a sandbox does not show by itself."""
    return tuple(
        dict.fromkeys(
            each
            for each in folders
            if not any(f"{each}/".startswith(f"{root}/") for root in _EVERYWHERE)
        )
    )


class PackageProgram(Struct, frozen=True):
    """`argv` starts it; `readable` are the folders beside its own that it needs."""

    argv: tuple[str, ...]
    readable: tuple[str, ...]


def site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{PYTHON}" / "site-packages"


def make_environment(folder: Path) -> Path:
    """Make a folder a virtual environment of the Python that runs us; return its interpreter."""
    base = os.path.realpath(sys.executable)
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    site_packages(folder).mkdir(parents=True, exist_ok=True)
    if not python.is_symlink() or os.readlink(python) != base:
        fresh = python.with_name(f".python.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(base)
        os.replace(fresh, python)
    wanted = f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n"
    config = folder / "pyvenv.cfg"
    if not config.exists() or config.read_text() != wanted:
        fresh = config.with_name(f".pyvenv.{os.getpid()}")
        fresh.write_text(wanted)
        os.replace(fresh, config)
    return python


def program_of(folder: Path, name: str, command: PackageCommand) -> PackageProgram:
    """Return how the package in this folder is started. Raise NotFound if it has no program."""
    if command.ecosystem == "npm":
        return _npm_program(folder, name, command)
    return _python_program(folder, name, command)


def _npm_program(folder: Path, name: str, command: PackageCommand) -> PackageProgram:
    package = folder / "node_modules" / name
    try:
        described = json.loads((package / "package.json").read_bytes())
        programs = described.get("bin") or {}
    except (OSError, ValueError, AttributeError) as error:
        raise NotFound(f"the package {name} has no package.json that can be read") from error
    if isinstance(programs, str):
        programs = {name.rpartition("/")[2]: programs}
    entry = _chosen({str(key): str(path) for key, path in programs.items()}, name, command.program)
    path = (package / entry).resolve()
    if not path.is_file() or not path.is_relative_to(folder.resolve()):
        raise NotFound(f"the package {name} has no file {entry}, which its program is said to be")
    with path.open("rb") as file:
        first = file.readline(200)
    if first.startswith((b"#!", b"\x7fELF")) and b"node" not in first and b"bun" not in first:
        return PackageProgram((str(path), *command.args), ())
    node = find_node()
    return PackageProgram((node, str(path), *command.args), beyond_system((os.path.dirname(node),)))


def _python_program(folder: Path, name: str, command: PackageCommand) -> PackageProgram:
    site = site_packages(folder)
    if not site.is_dir():
        raise Conflict(f"the package {name} was installed for another Python than {PYTHON}")
    entries = {key: value for info in _info(site, name) for key, value in _scripts(info).items()}
    entry = _chosen(entries, name, command.program)
    module, _, attribute = entry.partition(":")
    python = make_environment(folder)
    base = os.path.dirname(os.path.dirname(os.path.realpath(python)))
    program = command.program or name
    return PackageProgram(
        (str(python), "-P", "-B", "-c", _RUN, module, attribute, program, *command.args),
        beyond_system((base,)),
    )


def _info(site: Path, name: str) -> list[Path]:
    return [
        each
        for each in site.glob("*.dist-info")
        if normalized(each.name.removesuffix(".dist-info").partition("-")[0]) == name
    ]


def _scripts(info: Path) -> dict[str, str]:
    from configparser import ConfigParser
    from configparser import Error as ConfigParserError

    reader = ConfigParser(delimiters=("=",), interpolation=None)
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        reader.read(info / "entry_points.txt", encoding="utf-8")
        found = dict(reader["console_scripts"]) if "console_scripts" in reader else {}
    except (ConfigParserError, UnicodeDecodeError):
        return {}
    return {key: value.partition("[")[0].replace(" ", "") for key, value in found.items()}


def _chosen(programs: dict[str, str], name: str, wanted: str) -> str:
    """Return one of a package's programs as the launchers choose it: the one that is named, the one
    that is called like the package, or the only one.
    """
    for key in (wanted,) if wanted else (name, name.rpartition("/")[2]):
        if key in programs:
            return programs[key]
    if len(set(programs.values())) == 1 and not wanted:
        return next(iter(programs.values()))
    has = f"it has {', '.join(sorted(programs))}" if programs else "it has none"
    raise NotFound(f"the package {name} has no program {wanted or name}: {has}")


def find_node() -> str:
    """Return the path of node. Raise NotFound if this machine has none."""
    found = shutil.which("node")
    if found is None:
        raise NotFound(
            "the interpreter node is missing: install Node.js, or put its folder on the daemon's"
            " PATH"
        )
    return os.path.realpath(found)
