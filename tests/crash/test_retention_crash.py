"""After `kill -9` at any point of putting sessions away or bringing one back: the journal verifies,
every session is as it was.
"""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere


@pytest.mark.timeout(600)
def test_putting_away_and_bringing_back_survive_a_kill_at_every_point(tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 20, "tests.crash.retention_harness")
