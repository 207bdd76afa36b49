"""What a launcher's line means, what differs between two lists of packages, and the words for what
was missing.
"""

import os
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.mcp import start_errors
from palyra.features.mcp.packages import (
    PackageCommand,
    PackagePart,
    PackagePin,
    differences,
    is_pin,
    package_of,
    pin_of,
)
from palyra.features.mcp.process import found
from palyra.features.mcp.settings import ServerConfig


def npm(name: str, wanted: str, *args: str, program: str = "") -> PackageCommand:
    return PackageCommand(ecosystem="npm", name=name, wanted=(wanted,), program=program, args=args)


def python(
    name: str, *wanted: str, args: tuple[str, ...] = (), program: str = ""
) -> PackageCommand:
    return PackageCommand(ecosystem="python", name=name, wanted=wanted, program=program, args=args)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("npx -y @a/b /data", npm("@a/b", "@a/b", "/data")),
        ("npx --yes @a/b@1.2.3 -v", npm("@a/b", "@a/b@1.2.3", "-v")),
        ("npx b@latest", npm("b", "b@latest")),
        ("npx -y -p @a/b tool x", npm("@a/b", "@a/b", "x", program="tool")),
        ("npx --package=@a/b tool", npm("@a/b", "@a/b", program="tool")),
        ("/usr/local/bin/npx -y b -- --flag", npm("b", "b", "--flag")),
        ("npm exec -y b", npm("b", "b")),
        ("bunx b x", npm("b", "b", "x")),
        ("pnpm dlx b", npm("b", "b")),
        ("NPX.CMD -y b", npm("b", "b")),
        (
            "uvx mcp-server-git --repository /r",
            python("mcp-server-git", "mcp-server-git", args=("--repository", "/r")),
        ),
        ("uvx Mcp_Server@1.2", python("mcp-server", "mcp-server==1.2")),
        ("uvx a@latest", python("a", "a")),
        ("uvx a[cli]==2.0", python("a", "a[cli]==2.0")),
        ("uvx --from a tool x", python("a", "a", program="tool", args=("x",))),
        ("uvx --with mcp<2 a", python("a", "a", "mcp<2")),
        ("uv tool run a", python("a", "a")),
        ("pipx run --spec a tool", python("a", "a", program="tool")),
    ],
)
def test_a_launchers_line_names_a_package(line: str, expected: PackageCommand) -> None:
    assert package_of(line.split()) == expected


@pytest.mark.parametrize(
    "line", ["node x.js", "python -m server", "uv run x", "npm start", "docker run x"]
)
def test_other_commands_fetch_nothing(line: str) -> None:
    assert package_of(line.split()) is None


@pytest.mark.parametrize(
    "line",
    [
        "npx --registry=https://elsewhere.example b",
        "npx -c whoami",
        "npx",
        "npx -y",
        "npx git+https://example.org/x.git",
        "npx b@npm:other",
        "npx https://example.org/b.tgz",
        "uvx --index-url https://elsewhere.example a",
        "uvx --from git+https://example.org/x tool",
        "uvx a;python_version<'3'",
        "npx ../@x/../../y z/w",
    ],
)
def test_what_is_not_understood_is_refused(line: str, tmp_path: Path) -> None:
    if line.startswith("npx ../"):
        # A folder, whatever its name looks like.
        assert package_of(line.split()).name == ""  # type: ignore[union-attr]
        return
    with pytest.raises(InvalidInput):
        package_of(line.split())


def test_a_pin_reads_as_it_is_written() -> None:
    pin = PackagePin("npm", "@a/b", "1.2.3-rc.1", "0" * 64)
    assert pin_of(str(pin)) == pin
    assert not is_pin(str(pin)[:-1])
    assert not is_pin(str(pin).replace("@a/b", "../../b"))


def test_differences_name_what_comes_goes_and_changes() -> None:
    before = [PackagePart("a", "1"), PackagePart("b", "1"), PackagePart("c", "1", "x")]
    after = [PackagePart("b", "2"), PackagePart("c", "1", "y"), PackagePart("d", "1")]
    assert list(differences(before, after)) == [
        "- a 1",
        "~ b 1 -> 2",
        "~ c 1: same version, other content",
        "+ d 1",
    ]


def test_the_words_name_what_was_missing_and_what_mends_it(tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.touch()
    config = ServerConfig(name="s", command="x", readable=("/srv/lib",))
    for said, words in {
        "ModuleNotFoundError: No module named 'requests'": ("module requests", "mcp.s.readable"),
        "Error: Cannot find module 'zod'\nRequire stack:": ("module zod", '"/srv/lib", "/FOLDER"'),
        f"FileNotFoundError: [Errno 2] No such file or directory: '{there}'": (
            "not shown in the sandbox",
            str(tmp_path),
        ),
        "Error: ENOENT: no such file or directory, open '/nowhere/x'": ("/nowhere/x is missing",),
        "OSError: [Errno 30] Read-only file system: '/opt/x'": ("cannot write /opt/x", "{data}"),
        "getaddrinfo EAI_AGAIN api.example.org": ("wants the network and has none", "mcp.s.hosts"),
        "env: 'node': No such file or directory": ("interpreter or program node",),
    }.items():
        hint = start_errors.hint(config, said)
        assert all(each in hint for each in words), (said, hint)
    assert start_errors.hint(config, "Traceback: all is lost") == ""


def test_a_script_brings_the_folder_that_it_is_installed_in(tmp_path: Path) -> None:
    script = tmp_path / "project" / "node_modules" / "pkg" / "dist" / "index.js"
    script.parent.mkdir(parents=True)
    script.touch()
    interpreter = tmp_path / "bin" / "node"
    interpreter.parent.mkdir()
    interpreter.write_text("#!/bin/sh\n")
    interpreter.chmod(0o755)
    _, readable = found(str(interpreter), (str(script),))
    assert str(tmp_path / "project" / "node_modules") in readable
    own = tmp_path / "mine" / "build" / "index.js"
    own.parent.mkdir(parents=True)
    own.touch()
    (tmp_path / "mine" / "package.json").touch()
    _, readable = found(str(interpreter), (str(own),))
    assert str(tmp_path / "mine") in readable
    assert os.path.dirname(tmp_path) not in readable
