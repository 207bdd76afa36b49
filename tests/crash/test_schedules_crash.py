"""A schedule fires once, whenever the daemon is killed in the moment of firing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.material import ROOT


@pytest.mark.timeout(300)
def test_a_kill_at_any_point_of_a_firing_neither_doubles_nor_loses_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.crash.schedule_harness", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    found = json.loads(ran.stdout)
    assert found["failures"] == {}
    assert found["points"] >= 10, "too few moments were tried for this to show anything"
