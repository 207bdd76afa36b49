"""After `kill -9` at any point of a rewind or of an undo of several changes: the old files or the
new ones, as the tape says.
"""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["rewind", "undo"])
def test_going_back_survives_a_kill_at_every_point(how: str, tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 20, "tests.crash.rewind_harness", how)
