"""Honest work under each preset: everything that the preset lets be done is done, with as many
prompts as the docs say.
"""

import asyncio

import pytest

from tests.injection import figures
from tests.injection.attacks import PRESETS
from tests.injection.honest import Done, do_all
from tests.material import ROOT

# Everything is done once, before the first of them.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def done() -> dict[str, Done]:
    return {preset: asyncio.run(do_all(preset)) for preset in PRESETS}


def test_every_task_is_done_where_a_person_can_be_asked(done: dict[str, Done]) -> None:
    for preset in ("default", "coding", "research"):
        assert (done[preset].tasks, done[preset].whole) == (24, 24)


def test_the_docs_state_how_many_prompts_that_takes(done: dict[str, Done]) -> None:
    page = (ROOT / "docs" / "reference" / "labels.md").read_text()
    for preset, each in done.items():
        assert (
            figures.line((f"`{preset}`", str(each.tasks), str(each.whole), str(each.prompts)))
            in page
        )


def test_looking_and_reading_never_asks(done: dict[str, Done]) -> None:
    for preset in ("default", "coding", "research"):
        asked = done[preset].by_task
        assert [
            asked[name]
            for name in ("what is in this folder", "read three files", "summarise a mail")
        ] == [0, 0, 0]


def test_looking_something_up_after_reading_a_file_asks_even_where_fetching_is_free(
    done: dict[str, Done],
) -> None:
    asked = done["research"].by_task
    assert (asked["summarise a page"], asked["look something up for my code"]) == (0, 1)
