"""The page about security names tests as its evidence: each must exist, under that name."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "security.md"
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(text: str) -> list[str]:
    def exists(file: str, name: str) -> bool:
        path = PROJECT / file
        return (
            path.is_file()
            and re.search(rf"^(async )?def {name}\(", path.read_text(), re.MULTILINE) is not None
        )

    return [f"{file}::{name}" for file, name in _NAMED.findall(text) if not exists(file, name)]


def test_every_test_that_the_page_names_exists() -> None:
    text = PAGE.read_text()
    assert len(_NAMED.findall(text)) >= 20
    assert missing(text) == []


def test_a_test_that_does_not_exist_is_noticed() -> None:
    assert missing("`tests/docs/test_security_page.py::test_nothing`") == [
        "tests/docs/test_security_page.py::test_nothing"
    ]


def test_every_kind_of_attempt_that_tier_b_lets_through_is_on_the_page() -> None:
    from tests.escapes.test_shell_escapes import OPEN_IN_TIER_B

    assert len(OPEN_IN_TIER_B) == 7, (
        "if this changes, the table of tiers in docs/security.md does as well"
    )
    assert PAGE.read_text().count("**not stopped**") == 4
