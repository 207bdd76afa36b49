"""The files by which a system starts the daemon."""

import configparser
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from palyra.serve import service_units
from palyra.serve.service_units import ServicePlan

PLAN = ServicePlan(
    command=("/opt/my tools/python", "-m", "palyra.serve", "--home", "/srv/50%/a$b"),
    home=Path("/srv/50%/a$b"),
    workspace=Path("/srv/my work"),
)


def options(unit: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)


def test_words_and_paths_reach_systemd_as_they_are() -> None:
    found = options(service_units.systemd(PLAN))
    assert found["ExecStart"] == '"/opt/my tools/python" -m palyra.serve --home /srv/50%%/a$$b'
    assert found["WorkingDirectory"] == "/srv/my\\x20work"
    assert found["WantedBy"] == "default.target"
    assert "User" not in found


def test_the_systems_unit_may_write_its_home_and_workspace_and_nothing_else() -> None:
    plan = ServicePlan(
        command=PLAN.command, home=Path("/srv/home"), workspace=Path("/srv/work"), user="palyra"
    )
    found = options(service_units.systemd(plan))
    assert found["User"] == "palyra"
    assert found["ProtectSystem"] == "strict"
    assert found["ReadWritePaths"] == "/srv/home /srv/work"
    assert found["CapabilityBoundingSet"] == ""
    assert (found["ProtectHome"], "BindPaths" in found) == ("tmpfs", False)
    assert found["WantedBy"] == "multi-user.target"


def test_of_peoples_homes_only_what_the_daemon_needs_is_there() -> None:
    plan = ServicePlan(
        command=PLAN.command,
        home=Path("/home/palyra/.palyra"),
        workspace=Path("/home/palyra"),
        user="palyra",
        programs=(Path("/root/python"), Path("/usr")),
    )
    found = options(service_units.systemd(plan))
    assert found["BindPaths"] == "/home/palyra/.palyra /home/palyra"
    assert found["BindReadOnlyPaths"] == "/root/python"


@pytest.mark.parametrize("user", ["", "palyra"])
def test_nothing_covers_proc_or_forbids_the_namespaces_that_the_sandbox_needs(user: str) -> None:
    plan = ServicePlan(command=PLAN.command, home=PLAN.home, workspace=PLAN.workspace, user=user)
    found = options(service_units.systemd(plan))
    # Each mounts something below /proc, and then nobody inside may mount a /proc of their own; or it
    # fixes the host name, and each sandbox has its own.
    assert not {
        "ProtectHostname",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "ProtectControlGroups",
    } & set(found)
    assert set(found["RestrictNamespaces"].split()) == {
        "user", "mnt", "pid", "net", "ipc", "uts", "cgroup"
    }  # fmt: skip
    assert {"@mount", "sethostname"} <= set(found["SystemCallFilter"].split())


def test_launchd_gets_a_list_that_it_can_read() -> None:
    made = plistlib.loads(service_units.launchd(PLAN, Path("/srv/log")))
    assert made["ProgramArguments"] == list(PLAN.command)
    assert made["KeepAlive"] == {"SuccessfulExit": False}
    assert made["StandardErrorPath"] == "/srv/log"


@pytest.mark.parametrize("user", ["", "daemon"])
def test_systemd_itself_finds_nothing_wrong(user: str, tmp_path: Path) -> None:
    plan = ServicePlan(command=("/bin/true",), home=tmp_path, workspace=tmp_path, user=user)
    unit = tmp_path / "palyra.service"
    unit.write_text(service_units.systemd(plan))
    read = configparser.ConfigParser(strict=True, interpolation=None)
    read.read_string(unit.read_text())
    assert read.sections() == ["Unit", "Service", "Install"]
    # Where there is a systemd, it has the last word.
    if program := shutil.which("systemd-analyze"):
        verified = subprocess.run(
            [program, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (verified.returncode, verified.stderr) == (0, "")
