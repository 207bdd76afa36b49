"""Workers die at any moment; tasks are done as often as their kind promises. At full size: `python
-m bench queue`.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.material import ROOT

_STORM = """
import json, sys
from pathlib import Path
from tests.crash.task_storm import storm
found = storm(Path(sys.argv[1]), 5_400, workers=3, kill_every_s=0.06, seed=7, limit_s=240)
print(json.dumps({"problems": found.problems[:5], "kills": found.kills, "unfinished": found.unfinished, "states": found.states}))
"""


@pytest.mark.timeout(300)
def test_every_task_is_done_as_often_as_its_kind_promises_however_workers_die(
    tmp_path: Path,
) -> None:
    # In a process of its own: workers are forked, and a test runner has threads.
    ran = subprocess.run(
        [sys.executable, "-c", _STORM, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert found["problems"] == []
    assert found["unfinished"] == 0
    assert found["kills"] >= 3, "nobody was killed: this shows nothing"
    assert found["states"]["least"] == {"done": 1_800}
    assert found["states"]["exact"] == {"done": 1_800}
    assert sum(found["states"]["most"].values()) == 1_800
