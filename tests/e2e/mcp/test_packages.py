"""Servers as their README names them: `uvx NAME` and `npx -y NAME` become tools of a run, from a
package that was installed once and accepted; an update shows what changes before it is taken.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from palyra.features.mcp.packages import pin_of
from tests import package_registry
from tests.cli_terminal import terminal
from tests.daemon import DaemonProcess, start
from tests.e2e.mcp.test_doors import changes, server, until
from tests.package_registry import node_server, npm_registry, other_thing, wheel


def palyra(home: Path, env: Mapping[str, str], *words: str, code: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "--json", "--home", str(home), *words],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if code == 0 else done.stderr


def called(daemon: DaemonProcess, words: str) -> str:
    """What a run got from a call that the message names."""
    _, entries = daemon.run(words, timeout_s=60)
    return str(next(e["event"]["text"] for e in entries if e["kind"] == "tool.finished"))


def accept(daemon: DaemonProcess, env: Mapping[str, str], name: str) -> None:
    until(lambda: server(daemon, name).get("pending"))
    palyra(daemon.home, env, "mcp", "accept", name, "--yes")
    palyra(daemon.home, env, "mcp", "permit", name, "--unattended")
    palyra(daemon.home, env, "policy", "reload")


def call(tool: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"calls": [{"name": tool, "arguments": arguments}]}, {"text": "done"}]


def test_uvx_is_installed_accepted_called_updated_and_removed(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "other-thing", "1.0")
    wheel(wheels, "made-server", "1.0", needs=("other-thing",))
    env = package_registry.wheels_only(wheels)
    data = tmp_path / "data"
    data.mkdir()
    script = {
        "look": call("mcp:made/where"),
        "write": call("mcp:made/where", path=str(data / "new.txt")),
        "break": call("mcp:made/where", path=__file__),
    }
    with start(tmp_path, script=script) as daemon:
        home = daemon.home
        words = ("mcp", "add", "made", "--env", "PLACE={data}/x", "--", "uvx", "made-server")
        # Nobody can be asked here, and nothing was installed.
        assert "--yes" in palyra(home, env, *words, str(data), code=2)
        assert not (home / "mcp" / "packages").exists()
        added = palyra(home, env, *words[:3], "--yes", *words[3:], str(data))
        assert added["settings"]["folder"] == str(data)
        assert pin_of(added["settings"]["package"]).version == "1.0"
        accept(daemon, env, "made")
        assert server(daemon, "made")["package"] == added["settings"]["package"]
        assert ("mcp", "package", "made") in changes(daemon)
        args, own, folder, place = json.loads(called(daemon, "look"))
        assert (args, folder, place) == ([str(data)], str(data), f"{own}/x")
        # Its own folder is its home, beside the one that it works in.
        assert own == str(home / "mcp" / "work" / "made")
        called(daemon, "write")
        assert (data / "new.txt").read_text() == "x"
        assert "No such file" in called(daemon, "break")

        # An update is shown first: the packages, and the tool that says something else.
        wheel(wheels, "other-thing", "2.0")
        wheel(wheels, "made-server", "1.1", needs=("other-thing",), description="Name them all.")
        shown = palyra(home, env, "mcp", "update", "made", "--dry-run")
        assert shown["packages"] == ["~ made-server 1.0 -> 1.1", "~ other-thing 1.0 -> 2.0"]
        assert shown["problem"] == ""
        assert [each["tool"] for each in shown["tools"]] == ["where"]
        assert "+" in shown["tools"][0]["change"]
        assert not shown["taken"]
        assert len(list((home / "mcp" / "packages").iterdir())) == 1
        assert server(daemon, "made")["tools"] == ["mcp:made/where"]
        taken = palyra(home, env, "mcp", "update", "made", "--yes")
        assert (taken["taken"], taken["package"]) == (True, shown["package"])
        # The changed tool waits for a yes of its own.
        until(lambda: server(daemon, "made").get("pending"))
        assert palyra(home, env, "mcp", "update", "made", "--yes")["packages"] == []
        palyra(home, env, "mcp", "remove", "made")
        assert list((home / "mcp" / "packages").iterdir()) == []


def test_a_person_sees_the_package_before_they_take_it(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "other-thing", "1.0")
    wheel(wheels, "made-server", "1.0", needs=("other-thing",))
    env = package_registry.wheels_only(wheels)
    home = tmp_path / "home"
    words = ("mcp", "add", "made", "--", "uvx", "made-server", str(wheels))
    for answer, status in (("n", 130), ("y", 0)):
        with terminal(home, *words, cwd=tmp_path, env=env) as asked:
            asked.expect("made-server 1.0")
            asked.expect("from python, sha256:[0-9a-f]{64}")
            asked.expect("needs 1 other package:")
            asked.expect("other-thing 1.0")
            asked.expect("it may read and change")
            asked.expect("network: none")
            asked.expect("add made with this package?")
            asked.line(answer)
            assert asked.ends() == status
        packages = list((home / "mcp" / "packages").iterdir())
        assert len(packages) == (1 if answer == "y" else 0)
    wheel(wheels, "made-server", "2.0", description="Name them all.")
    for answer in ("n", "y"):
        with terminal(home, "mcp", "update", "made", cwd=tmp_path, env=env) as asked:
            asked.expect("made-server 1.0 .* -> made-server 2.0")
            asked.expect("- other-thing 1.0")
            asked.expect("tool where: a new tool")
            asked.expect("from now on?")
            asked.line(answer)
            assert asked.ends() == (130 if answer == "n" else 0)
        kept = [each.name for each in (home / "mcp" / "packages").iterdir()]
        assert len(kept) == 1
        assert ("2.0" in kept[0]) == (answer == "y")


def test_npx_is_installed_and_its_dependency_found(tmp_path: Path) -> None:
    packages = {
        "@made/server": {"1.0.0": node_server("1.0.0")},
        "other-thing": {"1.0.0": other_thing("1.0.0")},
    }
    with (
        npm_registry(packages, tmp_path) as env,
        pytest.MonkeyPatch.context() as patch,
    ):
        # Which node starts it is the daemon's business.
        patch.setenv("PATH", env["PATH"])
        # The registry is a page on this machine like any other.
        page = env["npm_config_registry"]
        script = {"say": call("mcp:made/say"), "fetch": call("mcp:made/say", url=f"{page}absent")}
        with start(tmp_path, script=script) as daemon:
            words = ("--", "npx", "-y", "@made/server", "--loud")
            host = ("--host", urlsplit(page).netloc)
            palyra(daemon.home, env, "mcp", "add", "made", "--yes", *host, *words)
            accept(daemon, env, "made")
            assert called(daemon, "say") == "thing 1.0.0 --loud"
            assert called(daemon, "fetch") == '{"error": "not found"}'
            # What was changed does not start again, and says how it is mended.
            (folder,) = (daemon.home / "mcp" / "packages").iterdir()
            (folder / "node_modules" / "other-thing" / "index.js").write_text(
                "exports.word = 'no';"
            )
            palyra(daemon.home, env, "mcp", "restart", "made")
            detail = until(lambda: server(daemon, "made").get("detail"))
            assert "not what was accepted" in detail
            assert "palyra mcp update made" in detail
            palyra(daemon.home, env, "mcp", "update", "made", "--yes")
            palyra(daemon.home, env, "mcp", "restart", "made")
            until(lambda: server(daemon, "made")["state"] == "ready")


def test_a_launcher_without_an_accepted_package_says_what_to_do(tmp_path: Path) -> None:
    settings = '[mcp.made]\ncommand = "npx"\nargs = ["-y", "@made/server"]\n'
    with start(tmp_path, config=settings) as daemon:
        detail = until(lambda: server(daemon, "made").get("detail"))
        assert "palyra mcp update made" in detail
        # Nobody could see the package in a form.
        refused = daemon.request("POST", "/v1/mcp", {"name": "two", "command": ["uvx", "x"]})
        assert (refused.status, refused.code) == (400, "invalid_input")
        assert b"palyra mcp add two -- uvx x" in refused.body
