"""Setting up a channel: each kind says what it must be allowed on its platform and where to click,
and its page says the same.
"""

import re
from pathlib import Path

import pytest

from palyra.features.channels import registry
from palyra.features.channels.slack.client import SCOPES

DOCS = Path(__file__).parents[3] / "docs"
KINDS = {kind.name: kind for kind in registry.everything()}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_what_it_needs_and_its_page_names_every_setting(name: str) -> None:
    kind = KINDS[name]
    page = (DOCS / kind.docs).read_text()
    assert kind.permissions
    assert len(kind.steps) >= 3
    assert [
        each.name
        for each in kind.settings
        if f"`{each.name}`" not in page and f"{each.name}=" not in page
    ] == []
    assert all(each.words for each in kind.settings)


@pytest.mark.parametrize("name", ["discord", "slack"])
def test_where_permissions_have_names_exactly_those_are_asked_for_and_on_the_page(
    name: str,
) -> None:
    kind = KINDS[name]
    page = (DOCS / kind.docs).read_text()
    named = [
        part.strip() for each in kind.permissions for part in each.rpartition(": ")[2].split(",")
    ]
    # What is a sentence and no name stands there in other words.
    names = [each for each in named if not each.startswith(("on", "Messages Tab", "and people"))]
    assert len(names) >= 6
    assert [each for each in names if each not in page] == []
    if name == "slack":
        asked = {each for each in names if re.fullmatch(r"[a-z]+:[a-z]+", each)}
        assert asked == {*SCOPES, "connections:write"}
