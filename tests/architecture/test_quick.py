"""`make quick` names tests that exist."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = [
    line.removeprefix("--deselect=")
    for line in (ROOT / "tests" / "quick.txt").read_text().splitlines()
]


@pytest.mark.parametrize("name", NAMED)
def test_every_test_of_the_quick_ones_exists(name: str) -> None:
    file, _, function = name.partition("::")
    text = (ROOT / file).read_text()
    assert not function or f"def {function.partition('[')[0]}(" in text
