"""After `kill -9` at any point of a rewind or of an undo of several changes: the old files or the new ones, as the tape says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.material import ROOT


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["rewind", "undo"])
def test_going_back_survives_a_kill_at_every_point(how: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.rewind_harness", str(tmp_path), how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == {}, f"{len(result['failures'])} of {result['tries']} failed"
    assert result["points"] >= 20, "too few points were tried to mean anything"
