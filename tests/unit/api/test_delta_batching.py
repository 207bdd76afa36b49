"""Pieces put together say what they said apart, in the same order."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from palyra.api import streams
from palyra.core.events import LiveEvent, ModelDelta, ToolProgress
from palyra.core.ids import RunId

_RUNS = st.sampled_from(["r1", "r2"])
_DELTAS = st.builds(
    ModelDelta,
    run_id=_RUNS,
    turn=st.integers(1, 2),
    text=st.sampled_from(["", "a", "bc"]),
    reasoning=st.sampled_from(["", "", "x", "yz"]),
    call=st.sampled_from(["", "", "", "fs.read"]),
    whole=st.sampled_from([False, False, False, True]),
)
_PROGRESS = st.builds(ToolProgress, run_id=_RUNS, call_id=st.just("c"), text=st.text(max_size=3))
# (number, event): an entry has one, and is nobody's to change.
_BATCHES = st.lists(st.one_of(_DELTAS, _DELTAS, _PROGRESS, st.integers(1, 9)), max_size=30)


def _heard(batch: list[tuple[int, bytes]]) -> list[object]:
    """What somebody has heard in the end, by turn, and everything else in between as it came."""
    heard: list[object] = []
    said: dict[tuple[str, int], list[str]] = {}
    for number, wire in batch:
        event = wire if number else msgspec.json.decode(wire, type=LiveEvent)
        if isinstance(event, ModelDelta):
            if event.whole:
                said[(event.run_id, event.turn)] = ["", ""]
            words = said.setdefault((event.run_id, event.turn), ["", ""])
            words[0] += event.text
            words[1] += event.reasoning
            if event.call:
                heard.append((event.run_id, event.turn, event.call, *words))
        else:
            heard.append(
                (event, {turn: tuple(words) for turn, words in said.items() if any(words)})
            )
    return [*heard, {turn: tuple(words) for turn, words in said.items() if any(words)}]


@given(events=_BATCHES)
def test_whoever_listens_has_heard_the_same_at_every_other_event(events: list[object]) -> None:
    batch = [
        (each, b"{}") if isinstance(each, int) else (0, msgspec.json.encode(each))
        for each in events
    ]
    fewer = list(streams.wires(batch))
    assert _heard(fewer) == _heard(batch)
    assert len(fewer) <= len(batch)


def test_words_of_one_turn_become_one() -> None:
    pieces = [
        (0, msgspec.json.encode(ModelDelta(run_id=RunId("r"), turn=1, text=word)))
        for word in ("all ", "of ", "it")
    ]
    (only,) = streams.wires(pieces)
    assert msgspec.json.decode(only[1], type=ModelDelta).text == "all of it"
