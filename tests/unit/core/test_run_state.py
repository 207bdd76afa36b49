"""The run's state machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import run_state
from palyra.core.errors import IllegalTransition, InvalidInput
from palyra.core.events import KINDS

ALL = sorted(KINDS)


def test_the_table_speaks_only_of_kinds_and_states_that_exist() -> None:
    for state, rows in run_state.TRANSITIONS.items():
        assert set(rows) <= KINDS, state
        assert set(rows.values()) <= {state for state in run_state.TRANSITIONS if state}


def test_the_first_terminal_event_wins() -> None:
    for state in run_state.TERMINAL:
        assert run_state.TRANSITIONS[state] == {}
        for kind in ("run.completed", "run.failed", "run.cancelled", "tool.started"):
            with pytest.raises(IllegalTransition):
                run_state.advance(state, kind)


@pytest.mark.parametrize("state", ["accepted", "in_progress", "waiting"])
def test_a_run_can_be_cancelled_in_every_unfinished_state(state: run_state.RunState) -> None:
    assert run_state.advance(state, "run.cancelled") == "cancelled"


def test_no_effect_starts_while_a_run_waits_or_before_it_began() -> None:
    for state in ("accepted", "waiting", None):
        with pytest.raises(IllegalTransition):
            run_state.advance(state, "tool.started")  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(ALL), max_size=30))
def test_whatever_happens_a_run_is_in_one_known_state(kinds: list[str]) -> None:
    state: run_state.RunState | None = None
    for kind in kinds:
        try:
            state = run_state.advance(state, kind)
        except IllegalTransition:
            continue
    assert state in run_state.TRANSITIONS


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("Pending", "accepted"),
        ("Queued", "accepted"),
        ("Running", "in_progress"),
        ("Streaming", "in_progress"),
        ("Waiting", "waiting"),
        ("Completed", "done"),
        ("Aborted", "cancelled"),
        ("Expired", "failed"),
        ("InProgress", "in_progress"),
        ("in_progress", "in_progress"),
    ],
)
def test_other_documents_names_are_understood(name: str, state: str) -> None:
    assert run_state.parse(name) == state


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(InvalidInput):
        run_state.parse("sleeping")
