"""After `kill -9` at any point, a program that brings tools gets its one answer, and everything in
between happened once.
"""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere


@pytest.mark.timeout(600)
def test_a_program_that_brings_tools_gets_its_answer_after_a_kill_at_every_point(
    tmp_path: Path,
) -> None:
    crash_everywhere(tmp_path, 20, "tests.crash.program_harness")
