"""The guide and the README are followed to the letter: what they tell a person to type works, and
shows what they say.
"""

import re
from pathlib import Path

import pytest

from tests import ports
from tests.docs import guide

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *sorted((PROJECT / "docs").glob("*.md"))]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


@pytest.mark.timeout(400)
def test_every_command_and_chat_of_the_guide_does_what_the_guide_shows(tmp_path: Path) -> None:
    steps = guide.steps((PROJECT / "docs" / "guide.md").read_text())
    assert len(steps) > 40
    guide.Reader(tmp_path, PROJECT, {"8099": str(ports.free())}).follow(steps)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("$ palyra statsu\n", "ended with 2"),
        ("$ echo one\n$ echo two\nthree\n", "did not print 'three'"),
        ("$ printf 'one\\ntwo\\n'\ntwo\none\n", "did not print 'one'"),
        ("$ echo one; false\none\n", "ended with 1"),
    ],
)
def test_a_guide_that_no_longer_tells_the_truth_is_noticed(
    tmp_path: Path, page: str, complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        guide.Reader(tmp_path, PROJECT, {}).follow(guide.steps(f"```console\n{page}```\n"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_make_target_that_the_readme_names_exists() -> None:
    named = set(
        re.findall(r"(?:^|`)make ([a-z]+)\b", (PROJECT / "README.md").read_text(), re.MULTILINE)
    )
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert named <= targets
