"""Which stretches of a tape count, and what the fold makes of being taken back."""

from hypothesis import given
from hypothesis import strategies as st

from palyra.core.events import FileChange, RunCompleted, SessionRestored
from palyra.core.run_progress import ModelTurn, UserTurn
from palyra.core.visible_ranges import Return, surviving
from tests.tapes import accepted, assembled, fold, replied


def test_without_a_return_everything_counts() -> None:
    assert surviving([], 9) == [(1, 9)]


def test_what_lies_before_a_return_and_behind_its_aim_is_passed_over() -> None:
    assert surviving([Return(6, 3)], 9) == [(1, 3), (6, 9)]


def test_a_return_behind_the_entry_that_is_asked_for_does_not_count_yet() -> None:
    assert surviving([Return(6, 3)], 5) == [(1, 5)]


def test_going_back_to_before_a_return_passes_over_the_return() -> None:
    assert surviving([Return(6, 3), Return(8, 5)], 9) == [(1, 5), (8, 9)]


def test_a_return_into_a_stretch_that_was_left_counts_as_it_was_there() -> None:
    assert surviving([Return(6, 3), Return(10, 7), Return(12, 4)], 13) == [(1, 4), (12, 13)]
    assert surviving([Return(6, 3), Return(10, 7)], 11) == [(1, 3), (6, 7), (10, 11)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0, 1, exclude_max=True)), max_size=8),
    st.integers(0, 5),
)
def test_it_is_what_one_gets_by_keeping_a_copy_at_every_entry(
    steps: list[tuple[int, float]], more: int
) -> None:
    """A model that remembers the whole list of counting entries after each entry."""
    kept: list[list[int]] = [[]]
    returns: list[Return] = []
    for entries, share in steps:
        for _ in range(entries):
            kept.append([*kept[-1], len(kept)])
        to = 1 + int(share * (len(kept) - 1))
        returns.append(Return(len(kept), to))
        kept.append([*kept[to], len(kept)])
    for _ in range(more):
        kept.append([*kept[-1], len(kept)])
    for upto in range(1, len(kept)):
        assert [
            seq for first, last in surviving(returns, upto) for seq in range(first, last + 1)
        ] == kept[upto]


TALK = (*accepted("first"), assembled(3), replied(text="answer"), RunCompleted(text="answer"))


def test_turns_behind_the_entry_are_gone_and_what_was_said_before_it_stays_said() -> None:
    folded = fold(*TALK)
    folded.apply(7, "", 70, SessionRestored(to_seq=4))
    assert [type(turn) for turn in folded.turns] == [UserTurn]
    cut = fold(*TALK[:3])
    cut.apply(9, "", 90, SessionRestored(to_seq=3))
    assert [type(turn) for turn in cut.turns] == [UserTurn]
    assert cut.runs == {}


def test_only_what_the_model_cannot_see_for_itself_is_told_to_it() -> None:
    change = FileChange("a.txt", "restored")
    notes = []
    for event in (
        SessionRestored(to_seq=6, changes=(change,)),
        SessionRestored(to_seq=6, changes=(change,), conversation=False),
        SessionRestored(to_seq=6, files=False),
        SessionRestored(to_seq=6, left=("b.txt",)),
    ):
        folded = fold(*TALK)
        folded.apply(7, "", 70, event)
        assert isinstance(folded.turns[-1], ModelTurn)
        notes.append(folded.notes)
    assert notes[0] == []
    assert "a.txt" in notes[1][0]
    assert "still in them" in notes[2][0]
    assert "b.txt" in notes[3][0]
