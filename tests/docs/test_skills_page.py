"""The page about skills is followed to the letter, like the guide."""

from pathlib import Path

import pytest

from tests import ports
from tests.docs import guide

PROJECT = Path(__file__).parents[2]


@pytest.mark.timeout(400)
def test_a_skill_is_written_in_the_steps_of_the_page(tmp_path: Path) -> None:
    steps = guide.steps((PROJECT / "docs" / "reference" / "skills.md").read_text())
    assert len(steps) > 15
    guide.Reader(tmp_path, PROJECT, {"7142": str(ports.free())}).follow(steps)
