"""After `kill -9` at any point: the same conversation, every effect once, nothing pending lost, the
chain whole.
"""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere
from tests.crash.scenarios import SCENARIOS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_survives_a_kill_at_every_point(name: str, tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 20, "tests.crash.harness", name)
