"""The splitter sees the same events in the same bytes, however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.models.sse import EventTooLarge, Splitter

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"), max_size=12)
EVENTS = st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=6)


def split(stream: bytes, cuts: list[int]) -> list[bytes]:
    splitter = Splitter()
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    found: list[bytes] = []
    for start, end in pairwise(places):
        found += splitter.feed(stream[start:end])
    return [data.strip(b" ") for data in found + splitter.end()]


@given(
    EVENTS,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=12),
    st.booleans(),
)
def test_any_chunking_and_any_line_ending_gives_the_events_that_were_written(
    events: list[list[str]], newline: str, cuts: list[int], marked: bool
) -> None:
    written = ("\ufeff" if marked else "") + "".join(
        f": a comment{newline}event: x{newline}"
        + "".join(f"data: {line}{newline}" for line in lines)
        + newline
        for lines in events
    )
    assert split(written.encode(), cuts) == [
        "\n".join(lines).strip(" ").encode() for lines in events
    ]


@given(st.lists(st.integers(0, 200), max_size=8))
def test_comments_keep_alives_and_unknown_fields_are_no_events(cuts: list[int]) -> None:
    stream = b": OPENROUTER PROCESSING\n\n\n\ndata: 1\n\nid: 7\nretry: 10\n\n\ndata:2\n\nevent: ping\n\ndata: 3"
    assert split(stream, cuts) == [b"1", b"2", b"3"]


def test_an_event_is_given_out_as_soon_as_its_blank_line_is_there() -> None:
    splitter = Splitter()
    assert splitter.feed(b"data: 1\r\n\r") == [b" 1"]
    assert splitter.feed(b"\ndata: 2\n") == []
    assert splitter.feed(b"\n") == [b" 2"]
    assert splitter.end() == []


def test_an_endless_event_is_given_up() -> None:
    splitter = Splitter(limit=100)
    splitter.feed(b"data: " + b"x" * 90)
    with pytest.raises(EventTooLarge):
        splitter.feed(b"x" * 10)
