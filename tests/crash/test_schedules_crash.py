"""A schedule fires once, whenever the daemon is killed in the moment of firing."""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere


@pytest.mark.timeout(600)
def test_a_kill_at_any_point_of_a_firing_neither_doubles_nor_loses_it(tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 10, "tests.crash.schedule_harness")
