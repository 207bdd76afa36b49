"""Runs the crash harness in a process of its own and judges what it reports."""

import json
import subprocess
import sys
from pathlib import Path

from tests.material import ROOT


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
