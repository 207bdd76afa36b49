"""After `kill -9` at any point: the same conversation, every effect once, nothing pending lost, the chain whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.scenarios import SCENARIOS
from tests.material import ROOT, material


def crash_everywhere(name: str, folder: Path, least_points: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", name, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == {}, f"{len(result['failures'])} of {result['tries']} failed"
    assert result["points"] >= least_points, "too few points were tried to mean anything"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_survives_a_kill_at_every_point(name: str, tmp_path: Path) -> None:
    crash_everywhere(name, tmp_path, 20)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(3))
def test_a_recorded_run_survives_a_kill_at_every_point(number: int, tmp_path: Path) -> None:
    path = next(material("traces").glob("*.json"))
    crash_everywhere(f"{path}#{number}", tmp_path, 20)
