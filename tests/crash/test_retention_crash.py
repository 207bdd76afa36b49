"""After `kill -9` at any point of putting sessions away or bringing one back: the journal verifies, every session is as it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.everywhere import in_memory
from tests.material import ROOT


@pytest.mark.timeout(600)
def test_putting_away_and_bringing_back_survive_a_kill_at_every_point(tmp_path: Path) -> None:
    with in_memory(tmp_path) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.crash.retention_harness", str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == {}
    assert result["points"] >= 20, "too few points were tried to mean anything"
