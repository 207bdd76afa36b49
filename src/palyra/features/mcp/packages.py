"""Packages of MCP servers, as the README of every server names them: `npx -y NAME ARGS…`, `uvx NAME
ARGS…` and what else fetches a package and starts it.

The rule: what such a line means is decided here, without running anything. An option that is not
known is refused, never passed over.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from palyra.core.errors import ConfigInvalid, InvalidInput

Ecosystem = Literal["npm", "python"]

_LAUNCHERS: dict[tuple[str, ...], Ecosystem] = {
    ("npx",): "npm",
    ("npm", "exec"): "npm",
    ("npm", "x"): "npm",
    ("pnpm", "dlx"): "npm",
    ("yarn", "dlx"): "npm",
    ("bunx",): "npm",
    ("bun", "x"): "npm",
    ("uvx",): "python",
    ("uv", "tool", "run"): "python",
    ("pipx", "run"): "python",
}
# Options that change nothing here: nobody is asked, and nothing is taken from a cache.
_WITHOUT_VALUE = {
    "npm": {"-y", "--yes", "-q", "--quiet", "--silent", "--bun", "--prefer-online"},
    "python": {"-q", "--quiet", "--isolated", "--refresh", "-n", "--no-cache", "-U"},
}
_PACKAGE_OPTIONS = {"npm": {"-p", "--package"}, "python": {"--from", "--spec"}}
_MORE_OPTIONS = {"npm": set[str](), "python": {"--with"}}

_NPM_NAME = r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-zA-Z0-9~-][a-zA-Z0-9._~-]*"
_NPM = re.compile(rf"(?P<name>{_NPM_NAME})(?:@(?P<version>[\w.^~<>=*+|-]+))?")
_PYTHON = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[A-Za-z0-9._, -]+\])?"
    r"(?P<version>(?:@|[=<>!~]=|[<>])[\w.*+!,<>=~-]+)?"
)
_PIN = re.compile(
    rf"(?P<ecosystem>npm|python):(?P<name>{_NPM_NAME})@(?P<version>[\w.+!-]+)"
    r" sha256:(?P<digest>[0-9a-f]{64})"
)


class PackageCommand(Struct, frozen=True, kw_only=True):
    """A package that a launcher would fetch, and what it would start of it.

    `wanted` are requirements as npm or pip takes them, the package first. `name` is empty for one
    that lies in a file or folder here. `program` is empty where the package has only one.
    """

    ecosystem: Ecosystem
    name: str
    wanted: tuple[str, ...]
    program: str = ""
    args: tuple[str, ...] = ()


class PackagePin(Struct, frozen=True):
    """The one content of a package that a person accepted."""

    ecosystem: Ecosystem
    name: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}@{self.version} sha256:{self.digest}"

    @property
    def short(self) -> str:
        return f"{self.name} {self.version} ({self.ecosystem}, sha256:{self.digest[:12]}…)"


def is_pin(text: str) -> bool:
    return _PIN.fullmatch(text) is not None


def pin_of(text: str) -> PackagePin:
    found = _PIN.fullmatch(text)
    if found is None:
        raise ConfigInvalid(f"{text[:80]!r} is not a package that was accepted")
    ecosystem: Ecosystem = "npm" if found["ecosystem"] == "npm" else "python"
    return PackagePin(ecosystem, found["name"], found["version"], found["digest"])


def package_of(command: Sequence[str]) -> PackageCommand | None:
    """Return the package that a command would fetch; None for a command that fetches nothing."""
    words = [_program(command[0]), *command[1:]] if command else []
    for launcher, ecosystem in _LAUNCHERS.items():
        if tuple(words[: len(launcher)]) == launcher:
            return _read(" ".join(launcher), ecosystem, words[len(launcher) :])
    return None


def _program(word: str) -> str:
    return re.sub(r"\.(?:cmd|exe|ps1)$", "", re.split(r"[/\\]", word)[-1].lower())


def _read(launcher: str, ecosystem: Ecosystem, words: Sequence[str]) -> PackageCommand:
    package, more, rest = "", list[str](), list(words)
    while rest and rest[0].startswith("-"):
        option, mark, value = rest.pop(0).partition("=")
        if option == "--":
            break
        if option in _WITHOUT_VALUE[ecosystem] and not mark:
            continue
        if option not in _PACKAGE_OPTIONS[ecosystem] | _MORE_OPTIONS[ecosystem]:
            raise InvalidInput(
                f"{launcher} {option}: Palyra does not know this option; leave it out, or install"
                " the program yourself and give its path"
            )
        if not mark:
            value = rest.pop(0) if rest else ""
        if not value:
            raise InvalidInput(f"{launcher} {option} needs a package")
        if option in _MORE_OPTIONS[ecosystem] or package:
            more.extend(value.split(",") if ecosystem == "python" else [value])
        else:
            package = value
    program = ""
    if package:
        # The next word is a program of the package.
        program = rest.pop(0) if rest else ""
    elif rest:
        package = rest.pop(0)
    if rest and rest[0] == "--" and ecosystem == "npm":
        rest.pop(0)
    if not package:
        raise InvalidInput(f"{launcher} needs a package: {launcher} NAME ARGUMENTS…")
    read = _npm if ecosystem == "npm" else _python
    name, wanted = read(package)
    return PackageCommand(
        ecosystem=ecosystem,
        name=name,
        wanted=(wanted, *(read(each)[1] for each in more)),
        program=program,
        args=tuple(rest),
    )


def _local(text: str) -> str:
    """Return the path of a package in a file or folder here; empty for the name of one."""
    text = text.removeprefix("file:")
    is_file = text.startswith(("./", "../", "/", "~/")) or text.endswith((".tgz", ".whl"))
    return os.path.abspath(os.path.expanduser(text)) if is_file and "://" not in text else ""


def _npm(text: str) -> tuple[str, str]:
    if path := _local(text):
        return "", path
    found = _NPM.fullmatch(text)
    if found is None:
        raise InvalidInput(_elsewhere(text))
    return found["name"], text


def _python(text: str) -> tuple[str, str]:
    if path := _local(text):
        return "", path
    found = _PYTHON.fullmatch(text.replace(" ", ""))
    if found is None:
        raise InvalidInput(_elsewhere(text))
    name, extras, version = normalized(found["name"]), found["extras"] or "", found["version"] or ""
    if version.startswith("@"):
        version = "" if version == "@latest" else f"=={version[1:]}"
    return name, f"{name}{extras}{version}"


def _elsewhere(text: str) -> str:
    return (
        f"{text[:80]!r} is not the name of a package in a registry, nor a file or folder here;"
        " packages from git or from an address are not installed: download it, and give its path"
    )


def normalized(name: str) -> str:
    """Return the name of a Python package as all its spellings share it."""
    return re.sub(r"[-_.]+", "-", name).lower()


class PackagePart(Struct, frozen=True):
    """One package of those that were installed together. `hash` is what its registry says of it."""

    name: str
    version: str
    hash: str = ""


def differences(before: Sequence[PackagePart], after: Sequence[PackagePart]) -> Iterator[str]:
    """Yield what changes from one list of packages to another, a line each."""
    old, new = _by_name(before), _by_name(after)
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"- {name} {_versions(old[name])}"
        elif name not in old:
            yield f"+ {name} {_versions(new[name])}"
        elif _versions(old[name]) != _versions(new[name]):
            yield f"~ {name} {_versions(old[name])} -> {_versions(new[name])}"
        elif old[name] != new[name]:
            yield f"~ {name} {_versions(new[name])}: same version, other content"


def _by_name(parts: Sequence[PackagePart]) -> dict[str, set[PackagePart]]:
    found: dict[str, set[PackagePart]] = {}
    for each in parts:
        found.setdefault(each.name, set()).add(each)
    return found


def _versions(parts: set[PackagePart]) -> str:
    return ", ".join(sorted({each.version for each in parts}))


# Where a server's own folder stands in its arguments and its environment.
DATA = "{data}"


def with_data(text: str, folder: str) -> str:
    return text.replace(DATA, folder)
