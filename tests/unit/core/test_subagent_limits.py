"""What a subagent may: a part of what is left, the tools it was given, and not too deep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import subagent_limits
from palyra.core.events import Asker, Budgets, Commission
from palyra.core.ids import CallId, RunId, SessionId
from palyra.core.next_step import SPAWN


def commission(tools: tuple[str, ...] | None = None, depth: int = 1) -> Commission:
    place = SessionId("s"), RunId("r"), CallId("c")
    return Commission(
        session_id=place[0],
        run_id=place[1],
        call_id=place[2],
        root=SessionId("root"),
        depth=depth,
        task="t",
        tools=tools,
    )


amounts = st.integers(0, 200)
asked = st.builds(Budgets, turns=amounts, calls=amounts, active_ms=st.integers(0, 10**7))
left = st.builds(
    Budgets,
    turns=st.integers(-5, 100),
    calls=st.integers(-5, 200),
    active_ms=st.integers(-5, 10**7),
)


@given(left, st.integers(1, 8), asked)
def test_shares_together_are_never_more_than_what_is_left_and_a_turn_stays_with_the_parent(
    have: Budgets, among: int, wanted: Budgets
) -> None:
    given_ = subagent_limits.share(have, among, wanted)
    if given_ is None:
        return
    assert given_.turns * among <= have.turns - 1
    assert given_.calls * among <= have.calls
    assert given_.active_ms * among <= have.active_ms
    assert given_.turns <= (wanted.turns or given_.turns)


@pytest.mark.parametrize(
    ("given_", "tool", "allowed"),
    [
        (None, "fs.read", True),
        (None, SPAWN, True),
        (commission(), "fs.read", True),
        (commission(("fs.read",)), "fs.read", True),
        (commission(("fs.read",)), "fs.write", False),
        (commission(()), "fs.read", False),
        (commission(depth=2), SPAWN, True),
        (commission(depth=3), SPAWN, False),
        (commission((SPAWN,), depth=3), SPAWN, False),
    ],
)
def test_a_tool_is_given_or_it_is_not(given_: Commission | None, tool: str, allowed: bool) -> None:
    assert (subagent_limits.not_given(given_, tool) == "") is allowed


def test_without_a_wish_a_subagent_has_its_parents_tools() -> None:
    assert subagent_limits.narrowed(None, ()) is None
    assert subagent_limits.narrowed(commission(("a", "b")), ()) == ("a", "b")
    assert subagent_limits.narrowed(commission(("a", "b")), ("b", "b")) == ("b",)


def test_who_asks_is_said_in_a_line() -> None:
    assert subagent_limits.asker(None) is None
    assert subagent_limits.asker(commission()) == Asker("t", 1, SessionId("root"))
    assert subagent_limits.shortened("a\n  b") == "a b"
    assert len(subagent_limits.shortened("x" * 1_000)) == 300
