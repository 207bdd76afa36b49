"""Installing packages of servers with the real npm and pip, from a registry and a folder that the
test makes: whole or not at all, and never another content than the one that was accepted.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from palyra.core.errors import Conflict, NotFound, PalyraError, Unavailable
from palyra.features.mcp import package_install
from palyra.features.mcp.package_store import InstalledPackage, PackageStore, started_program
from palyra.features.mcp.packages import PackageCommand, PackagePart, package_of
from palyra.features.mcp.settings import ServerConfig
from tests import package_registry
from tests.package_registry import node_server, npm_package, npm_registry, other_thing, wheel

NPX = ("npx", "-y", "@made/server", "--loud")
UVX = ("uvx", "made-server", "--loud")


def of(*words: str) -> PackageCommand:
    found = package_of(words)
    assert found is not None
    return found


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, bytes]]]:
    packages = {
        "@made/server": {"1.0.0": node_server("1.0.0")},
        "other-thing": {"1.0.0": other_thing("1.0.0")},
    }
    with npm_registry(packages, tmp_path) as env:
        for key, value in env.items():
            monkeypatch.setenv(key, value)
        yield packages


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    wheel(folder, "other-thing", "1.0")
    wheel(folder, "made-server", "1.0", needs=("other-thing",))
    for key, value in package_registry.wheels_only(folder).items():
        monkeypatch.setenv(key, value)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> PackageStore:
    return PackageStore(tmp_path / "packages")


def left(tmp_path: Path) -> list[str]:
    folder = tmp_path / "packages"
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def config(installed: InstalledPackage, words: tuple[str, ...]) -> ServerConfig:
    return ServerConfig(name="s", command=words[0], args=words[1:], package=str(installed.pin))


def test_npm_installs_a_package_with_what_it_needs_and_runs_none_of_it(
    tmp_path: Path, npm: dict[str, dict[str, bytes]], store: PackageStore
) -> None:
    trap = f"touch {tmp_path / 'ran'}"
    npm["@made/server"]["1.0.0"] = node_server(
        "1.0.0", scripts={"postinstall": trap, "preinstall": trap, "prepare": trap}
    )
    installed = package_install.install(store, of(*NPX))
    assert (installed.pin.name, installed.pin.version) == ("@made/server", "1.0.0")
    assert [(each.name, each.version) for each in installed.manifest.packages] == [
        ("@made/server", "1.0.0"),
        ("other-thing", "1.0.0"),
    ]
    assert all(each.hash.startswith("sha512-") for each in installed.manifest.packages)
    assert not (tmp_path / "ran").exists()
    program = started_program(config(installed, NPX), store)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
    said = subprocess.run(
        program.argv, input=json.dumps(request), capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(said)["result"]["content"][0]["text"] == "thing 1.0.0 --loud"
    # Where it came from is no part of what it is.
    files = [each for each in installed.folder.rglob("*") if each.is_file()]
    assert not any(b"127.0.0.1" in each.read_bytes() for each in files)


def test_pip_installs_wheels_and_the_same_content_has_the_same_digest(
    tmp_path: Path, wheels: Path, store: PackageStore
) -> None:
    installed = package_install.install(store, of(*UVX))
    assert installed.manifest.packages == (
        PackagePart("made-server", "1.0"),
        PackagePart("other-thing", "1.0"),
    )
    program = started_program(config(installed, UVX), store)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}
    said = subprocess.run(
        program.argv, input=json.dumps(request), capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(json.loads(said)["result"]["content"][0]["text"])[0] == ["--loud"]
    elsewhere = PackageStore(tmp_path / "elsewhere")
    assert package_install.install(elsewhere, of(*UVX)).pin == installed.pin
    # Running it has not changed it.
    assert store.find(installed.pin).pin == installed.pin


def test_a_wheel_in_a_file_is_installed_as_well(
    tmp_path: Path, wheels: Path, store: PackageStore
) -> None:
    path = wheel(tmp_path, "alone", "3.0")
    installed = package_install.install(store, of("uvx", str(path)))
    assert (installed.pin.name, installed.pin.version) == ("alone", "3.0")
    started_program(config(installed, ("uvx", str(path))), store)


def test_a_folder_on_this_machine_is_copied_not_linked(
    tmp_path: Path, npm: dict[str, dict[str, bytes]], store: PackageStore
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "mine", "version": "2.0.0", "bin": "x.js"}')
    (folder / "x.js").write_text("#!/usr/bin/env node\n")
    installed = package_install.install(store, of("npx", str(folder)))
    assert (installed.pin.name, installed.pin.version) == ("mine", "2.0.0")
    assert not (installed.folder / "node_modules" / "mine").is_symlink()


@pytest.mark.parametrize("change", ["content", "added", "removed", "link", "mode"])
def test_what_was_changed_since_it_was_accepted_does_not_start(
    tmp_path: Path, wheels: Path, store: PackageStore, change: str
) -> None:
    installed = package_install.install(store, of(*UVX))
    module = next(installed.folder.rglob("made_server/__init__.py"))
    match change:
        case "content":
            module.write_text(module.read_text() + "\n")
        case "added":
            (module.parent / "sitecustomize.py").touch()
        case "removed":
            module.unlink()
        case "link":
            module.unlink()
            module.symlink_to("/etc/hostname")
        case "mode":
            module.chmod(0o755)
    with pytest.raises(Conflict, match="palyra mcp update s"):
        started_program(config(installed, UVX), store)
    # Installing it anew puts back what was accepted.
    assert package_install.install(store, of(*UVX)).pin == installed.pin
    started_program(config(installed, UVX), store)


def test_the_settings_cannot_name_another_package_than_the_one_that_was_accepted(
    wheels: Path, store: PackageStore
) -> None:
    installed = package_install.install(store, of(*UVX))
    for words, error in {
        ("uvx", "other-thing"): Conflict,
        ("npx", "made-server"): Conflict,
        ("uvx", "--from", "made-server", "absent"): NotFound,
        ("/usr/bin/true",): Conflict,
    }.items():
        with pytest.raises(error):
            started_program(config(installed, words), store)
    with pytest.raises(NotFound, match="palyra mcp update s"):
        started_program(ServerConfig(name="s", command="uvx", args=("made-server",)), store)


def test_what_cannot_be_installed_is_said_and_leaves_nothing(
    tmp_path: Path, npm: dict[str, dict[str, bytes]], wheels: Path, store: PackageStore
) -> None:
    npm["renamed"] = {"1.0.0": npm_package({"name": "new-name", "version": "1.0.0"}, {})}
    npm["library"] = {"1.0.0": other_thing("1.0.0")}
    wheel(wheels, "without", "1.0", needs=("absent",))
    wheel(wheels, "torn", "1.0", needs=("other-thing<1",))
    for words, part in {
        ("npx", "absent"): "npm knows no package absent",
        ("npx", "@made/server@9"): "no such version",
        ("npx", "other-thing"): "has no program",
        ("npx", "renamed"): "renamed",
        ("npx", "-p", "@made/server", "absent"): "it has made-server",
        ("uvx", "absent"): "pip knows no package absent",
        ("uvx", "made-server==9"): "made-server==9",
        ("uvx", "without"): "without",
        ("uvx", "--with", "other-thing==1.0", "torn"): "cannot be had together",
    }.items():
        with pytest.raises(PalyraError) as refused:
            package_install.install(store, of(*words))
        assert part in refused.value.message, words
        assert "http" not in refused.value.message
    assert left(tmp_path) == []


def test_a_registry_that_is_away_is_said_so(
    tmp_path: Path,
    npm: dict[str, dict[str, bytes]],
    store: PackageStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    with pytest.raises(Unavailable, match="npm cannot reach its registry"):
        package_install.install(store, of(*NPX))
    assert left(tmp_path) == []


def test_two_at_once_have_the_same_package(
    tmp_path: Path, wheels: Path, store: PackageStore
) -> None:
    found: list[InstalledPackage] = []

    def work() -> None:
        found.append(package_install.install(PackageStore(tmp_path / "packages"), of(*UVX)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert len(found) == 3
    assert len({each.pin for each in found}) == 1
    assert len(left(tmp_path)) == 1


# Installs with a pip that never ends, and says so when it has begun.
_NEVER = """
import signal
import sys
from pathlib import Path
# What a shell starts in the background ignores it, and so would everything below.
signal.signal(signal.SIGINT, signal.default_int_handler)
from palyra.features.mcp import package_install
from palyra.features.mcp.package_store import PackageStore
from palyra.features.mcp.packages import package_of
package_install._pip = lambda python, wanted: [
    sys.executable, "-c",
    "import time; open('half', 'w').write('x'); print(1, file=open(%r, 'w')); time.sleep(600)"
    % sys.argv[2],
]
package_install.install(PackageStore(Path(sys.argv[1])), package_of(["uvx", "made-server"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_installation_that_is_ended_leaves_nothing_half(
    tmp_path: Path, wheels: Path, store: PackageStore, number: signal.Signals
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    process = subprocess.Popen(
        [sys.executable, "-c", _NEVER, str(tmp_path / "packages"), str(begun)],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    begun.read_text()
    (half,) = left(tmp_path)
    assert half.startswith(".new-")
    if number == signal.SIGKILL:
        # Somebody else who installs meanwhile does not disturb it.
        package_install.install(store, of(*UVX))
        assert half in left(tmp_path)
        children = _children(process.pid)
        process.kill()
        process.wait(30)
        # What it had started goes on, so its folder stays for as long as that.
        package_install.install(store, of(*UVX))
        assert half in left(tmp_path)
        for each in children:
            handle = os.pidfd_open(each)
            os.kill(each, signal.SIGKILL)
            _wait(handle)
        package_install.install(store, of(*UVX))
        assert [each for each in left(tmp_path) if each.startswith(".new-")] == []
    else:
        process.send_signal(number)
        process.wait(30)
        assert left(tmp_path) == []


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait(handle: int) -> None:
    import select

    assert select.select([handle], [], [], 30)[0]
    os.close(handle)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, wheels: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    small = tmp_path / "small"
    small.mkdir()
    code = (
        "import sys, subprocess\nfrom pathlib import Path\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16k', 'small', sys.argv[1]], check=True)\n"
        "from palyra.core.errors import PalyraError\n"
        "from palyra.features.mcp import package_install\n"
        "from palyra.features.mcp.package_store import PackageStore\n"
        "from palyra.features.mcp.packages import package_of\n"
        "home = Path(sys.argv[1])\n"
        "try:\n"
        "    package_install.install(PackageStore(home / 'p'), package_of(['uvx', 'made-server']))\n"
        "except PalyraError as error:\n"
        "    print(type(error).__name__, error.message, list((home / 'p').iterdir()))\n"
    )
    said = subprocess.run(
        [*alone, sys.executable, "-c", code, str(small)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Unavailable the disk is full" in said.stdout, said
    assert said.stdout.strip().endswith("[]")
