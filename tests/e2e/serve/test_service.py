"""`palyra service`, with a program in the place of systemctl that writes down what it was told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon import start

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$TOLD"
case "$*" in *is-active*) echo active;; *fail*) exit 1;; esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A user's environment, with a service manager on it."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "systemctl"
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALYRA_")}
    kept.pop("XDG_CONFIG_HOME", None)
    return {
        **kept,
        "HOME": str(tmp_path / "me"),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "TOLD": str(tmp_path / "told"),
    }


def palyra(env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_service_is_installed_looked_at_and_removed_and_the_data_stays(
    machine: dict[str, str], tmp_path: Path
) -> None:
    unit = tmp_path / "me" / ".config" / "systemd" / "user" / "palyra.service"
    done = palyra(machine, "service", "install", "--workspace", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert str(unit) in done.stdout
    assert f"WorkingDirectory={tmp_path}" in unit.read_text()
    assert f"--home {tmp_path / 'me' / '.palyra'}" in unit.read_text()
    found = json.loads(palyra(machine, "--json", "service", "status").stdout)
    assert (found["installed"], found["state"], found["pid"]) == (True, "active", None)
    (tmp_path / "me" / ".palyra").mkdir()
    done = palyra(machine, "service", "uninstall")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "me" / ".palyra") in done.stdout
    assert not unit.exists()
    assert (tmp_path / "me" / ".palyra").exists()
    assert (tmp_path / "told").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable palyra.service",
        "--user restart palyra.service",
        "--user is-active palyra.service",
        "--user disable --now palyra.service",
        "--user daemon-reload",
    ]
    assert palyra(machine, "service", "uninstall").returncode != 0


def test_what_cannot_be_done_says_what_to_do_and_leaves_nothing(
    machine: dict[str, str], tmp_path: Path
) -> None:
    for words, said in (
        (("--user", "me"), "--system"),
        (("--system",), "--user NAME"),
        (("--system", "--user", "nobody-of-that-name"), "useradd"),
    ):
        refused = palyra(machine, "service", "install", *words)
        assert refused.returncode != 0
        assert said in refused.stderr
    without = {**machine, "PATH": "/nowhere"}
    refused = palyra(without, "service", "install")
    assert refused.returncode != 0
    assert "palyra up --detach" in refused.stderr
    assert not list((tmp_path / "me").rglob("*.service"))
    assert palyra(without, "service", "install", "--print").stdout.startswith("[Unit]")


def test_a_daemon_that_runs_already_is_not_started_twice(
    machine: dict[str, str], tmp_path: Path
) -> None:
    with start(tmp_path) as daemon:
        refused = palyra({**machine, "PALYRA_HOME": str(daemon.home)}, "service", "install")
    assert refused.returncode != 0
    assert "palyra stop --daemon" in refused.stderr
    assert not (tmp_path / "told").exists()
