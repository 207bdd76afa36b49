"""Recorded tool-using conversations survive `kill -9` at any point like those we wrote."""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere
from tests.material import material


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(3))
def test_a_recorded_run_survives_a_kill_at_every_point(number: int, tmp_path: Path) -> None:
    path = next(material("traces").glob("*.json"))
    crash_everywhere(tmp_path, 20, "tests.crash.harness", f"{path}#{number}")
