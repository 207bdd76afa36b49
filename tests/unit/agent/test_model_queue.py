"""Letting runs through to a model that was away: one probe, then more and more, in bounds."""

from hypothesis import given
from hypothesis import strategies as st

from palyra.agent.model_queue import MOST_AT_ONCE, ModelQueue
from palyra.core import wait_words
from palyra.models.reliability import LONGEST_PROBE_MS, probe_after_ms

NOW = 1_700_000_000_000


def down(now_ms: int = NOW) -> ModelQueue:
    queue = ModelQueue("p/m", "overloaded", "busy", now_ms, now_ms)
    queue.failed("first", "overloaded", "busy", now_ms=now_ms, rand=0.5)
    return queue


@given(
    attempt=st.integers(1, 200),
    rand=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.integers(0, 10**9),
)
def test_a_probe_comes_within_bounds_and_never_before_the_server_allows(
    attempt: int, rand: float, asked: int | None
) -> None:
    ms = probe_after_ms("overloaded", attempt=attempt, rand=rand, asked_ms=asked)
    assert ms >= (asked or 0)
    assert ms >= 2_500
    assert ms <= max(LONGEST_PROBE_MS, (asked or 0) + 250)


def test_pauses_grow_and_a_person_is_waited_for_more_slowly() -> None:
    pauses = [probe_after_ms("network", attempt=attempt, rand=0.0) for attempt in range(1, 8)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 2_500
    assert pauses[-1] == LONGEST_PROBE_MS // 2
    assert probe_after_ms("auth", attempt=1, rand=0.0) > pauses[-1]


def test_while_it_is_down_one_run_asks_and_only_when_it_is_time() -> None:
    queue = down()
    assert queue.free(NOW) == 0
    assert queue.free(queue.next_try_ms) == 1
    due_ms = queue.next_try_ms
    queue.let_through("probe", due_ms)
    assert queue.free(due_ms + LONGEST_PROBE_MS) == 0
    # One that hears nothing at all does not hold the others up for ever.
    assert queue.free(due_ms + 10 * 60_000) == 1


def test_an_answer_lets_two_ask_then_more_up_to_a_bound() -> None:
    queue = down()
    queue.asking.add("probe")
    windows = []
    for number in range(40):
        queue.asking.add(f"r{number}")
        queue.answered(f"r{number}")
        windows.append(queue.window)
    assert windows[:3] == [2, 3, 4]
    assert windows[-1] == MOST_AT_ONCE


def test_a_failure_while_it_comes_back_makes_all_wait_again_from_the_beginning() -> None:
    queue = down()
    for _ in range(5):
        queue.asking.add("probe")
        queue.failed("probe", "overloaded", "busy", now_ms=NOW, rand=0.0)
    assert queue.attempt == 6
    queue.asking.add("probe")
    queue.answered("probe")
    queue.asking.add("next")
    queue.failed("next", "rate_limited", "slow down", now_ms=NOW, rand=0.0, asked_ms=60_000)
    assert queue.down
    assert (queue.attempt, queue.cause) == (1, "rate_limited")
    assert queue.next_try_ms == NOW + 60_000


def test_only_the_probe_makes_the_pause_longer() -> None:
    queue = down()
    planned = queue.next_try_ms
    for number in range(20):
        queue.failed(f"late{number}", "overloaded", "busy", now_ms=NOW, rand=0.9)
    assert (queue.attempt, queue.next_try_ms) == (1, planned)


def test_what_is_said_is_short_and_exact() -> None:
    assert wait_words.sentence("overloaded", NOW + 40_000, NOW) == (
        "Model overloaded; next try in 40 s."
    )
    assert wait_words.sentence("overloaded", NOW, NOW + 1) == "Model overloaded; trying again."
    assert [wait_words.span(ms) for ms in (1, 119_000, 120_000, 6 * 3_600_000)] == [
        "1 s",
        "119 s",
        "2 min",
        "6 h",
    ]
