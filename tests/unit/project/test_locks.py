"""What set-up installs is locked: every package at the version that is tested, every file by its
digest, and no address.
"""

import re
import tomllib
from pathlib import Path

import pytest
from scripts import freeze

ROOT = Path(__file__).parents[3]
_PIN = re.compile(r"([a-z0-9][a-z0-9.-]*)==([^ ;]+)(?: ; [^\\]+)? \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def pins(name: str) -> dict[str, str]:
    """Return the packages of a lock; fail if a line is anything but a pin or a digest."""
    found: dict[str, str] = {}
    hashed = True
    for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        if pin := _PIN.fullmatch(line):
            assert hashed, f"{line} follows a package without a digest"
            found[pin[1]] = pin[2]
            hashed = False
        else:
            assert _HASH.fullmatch(line), line
            hashed = True
    assert hashed
    return found


@pytest.mark.parametrize("name", freeze.PARTS)
def test_every_file_has_a_digest_and_every_version_is_the_tested_one(name: str) -> None:
    tested = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    locked = pins(name)
    assert {
        package: version
        for package, version in locked.items()
        if tested.get(package, version) != version
    } == {}
    # What is not tested here is for other machines, but for what builds the project.
    assert len(set(locked) - set(tested)) < 25


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    wanted = {
        re.split(r"[^A-Za-z0-9._-]", each)[0].lower().replace(".", "-")
        for each in (*project["dependencies"], *extras)
    }
    assert wanted - {each.replace(".", "-") for each in pins("dev")} == {"palyra"}


def test_the_lock_for_grpc_holds_the_extra_and_the_compiler_that_builds_with() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {each.partition(">")[0] for each in whole["project"]["optional-dependencies"]["grpc"]}
    assert wanted <= set(pins("grpc"))
    assert f"grpcio-tools=={pins('grpc')['grpcio-tools']}" in whole["build-system"]["requires"]


def test_set_up_installs_from_the_locks_only() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes --no-deps -r requirements/" in makefile
    installs = [line for line in makefile.splitlines() if "pip install" in line or "$(PIP)" in line]
    assert [line for line in installs if not line.startswith(("PIP :=", "LOCKED ="))] == []
