"""Labels only join upwards, and a label that names many sources never forgets one: it names them
together.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import labels
from palyra.core.labels import CLEAN, MOST_SOURCES, Label, join, merge, private, untrusted

parts = st.text("ab.", min_size=1, max_size=2)
places = st.lists(parts, min_size=1, max_size=4).map("/".join)
sources = st.builds(str.__add__, st.sampled_from(["file:", "https://", "mail:", ""]), places)
some = st.builds(
    Label,
    integrity=st.sampled_from(["trusted", "untrusted"]),
    confidentiality=st.sampled_from(["public", "private", "secret"]),
    sources=st.lists(sources, max_size=6).map(tuple),
    private_sources=st.lists(sources, max_size=6).map(tuple),
)


@given(st.lists(some, max_size=12))
def test_a_joined_label_is_as_bad_as_the_worst_and_names_every_source(given: list[Label]) -> None:
    found = join(given)
    assert (found.integrity == "untrusted") == any(each.integrity == "untrusted" for each in given)
    assert labels.secrecy(found) == max((labels.secrecy(each) for each in given), default=0)
    for each in given:
        assert all(
            any(labels.names(shown, source) for shown in found.sources) for source in each.sources
        )
        assert all(
            any(labels.names(shown, source) for shown in found.private_sources)
            for source in each.private_sources
        )
    assert len(found.sources) <= MOST_SOURCES
    assert len(found.private_sources) <= MOST_SOURCES


@given(some, some)
def test_joining_what_is_already_in_a_label_changes_nothing_and_makes_nothing(
    one: Label, other: Label
) -> None:
    both = merge(one, other)
    assert merge(both, one) is both
    assert merge(both, other) is both
    assert merge(both, CLEAN) is both


def test_many_files_are_named_by_their_folders_and_few_by_their_names() -> None:
    few = join(private(f"file:src/{number}.py") for number in range(16))
    assert few.private_sources[-1] == "file:src/15.py"
    many = merge(few, private("file:src/16.py"))
    assert many.private_sources == ("file:src/…",)
    assert merge(many, private("file:src/17.py")) is many
    assert merge(many, private("file:docs/a.md")).private_sources == (
        "file:src/…",
        "file:docs/a.md",
    )


def test_many_hosts_are_named_as_far_as_there_is_room_and_the_rest_is_said_to_be_there() -> None:
    found = join(untrusted(f"https://h{number}.example/page") for number in range(40))
    assert found.sources[0] == "https://h0.example/…"
    assert found.sources[-1] == "…"
    assert len(found.sources) == MOST_SOURCES


@pytest.mark.parametrize("name", ["file:…", "…", "https://a.example/…"])
def test_a_tool_cannot_give_a_name_that_stands_for_others(name: str) -> None:
    assert not any(map(labels.is_several, private(name).private_sources))


def test_a_long_name_is_shortened_to_what_it_begins_with() -> None:
    (name,) = untrusted("https://a.example/" + "x" * 500).sources
    assert len(name) < 200
    assert labels.names(name, "https://a.example/" + "x" * 500)
