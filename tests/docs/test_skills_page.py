"""The page about skills is followed to the letter, like the guide."""

import socket
from pathlib import Path

import pytest

from tests.docs import guide

PROJECT = Path(__file__).parents[2]


@pytest.mark.timeout(400)
def test_a_skill_is_written_in_the_steps_of_the_page(tmp_path: Path) -> None:
    steps = guide.steps((PROJECT / "docs" / "reference" / "skills.md").read_text())
    assert len(steps) > 15
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
    guide.Reader(tmp_path, PROJECT, {"7142": port}).follow(steps)
