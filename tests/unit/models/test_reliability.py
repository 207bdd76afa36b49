"""What follows a failure, and when a provider is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.messages import FailureClass, ModelFailure
from palyra.models.reliability import (
    LONGEST_WAIT_MS,
    Breaker,
    Decision,
    NextProvider,
    NoProviderLeft,
    RetryAfter,
    after_failure,
)

PASSING: list[FailureClass] = ["rate_limited", "overloaded", "network", "timeout"]
chance = st.floats(0, 1, exclude_max=True)


def decide(
    failure: FailureClass,
    attempt: int = 1,
    *,
    wait: int | None = None,
    fallback: bool = True,
    rand: float = 0.5,
) -> Decision:
    asked = ModelFailure(failure, "x", retry_after_ms=wait)
    answers = {
        after_failure(asked, attempt=attempt, text_shown=shown, has_fallback=fallback, rand=rand)
        for shown in (False, True)
    }
    assert len(answers) == 1
    return answers.pop()


@pytest.mark.parametrize("failure", PASSING)
def test_what_passes_is_tried_three_times_then_elsewhere_then_not_at_all(
    failure: FailureClass,
) -> None:
    assert [decide(failure, attempt) for attempt in (1, 2, 3)] == [
        RetryAfter(250),
        RetryAfter(500),
        NextProvider(),
    ]
    assert decide(failure, 3, fallback=False) == NoProviderLeft()


@given(st.sampled_from(PASSING), st.integers(1, 2), chance)
def test_waits_are_spread_over_a_window_that_doubles(
    failure: FailureClass, attempt: int, rand: float
) -> None:
    match decide(failure, attempt, rand=rand):
        case RetryAfter(ms=ms):
            assert 0 <= ms < 500 * 2 ** (attempt - 1)
        case other:
            pytest.fail(f"{other} is no retry")


@given(st.integers(0, LONGEST_WAIT_MS), chance)
def test_a_wait_the_server_asks_for_is_never_cut_short(wait: int, rand: float) -> None:
    decision = decide("rate_limited", wait=wait, rand=rand)
    assert isinstance(decision, RetryAfter)
    assert wait <= decision.ms <= wait + 250


def test_a_server_that_asks_for_too_long_a_wait_is_left_for_the_next() -> None:
    assert decide("rate_limited", wait=LONGEST_WAIT_MS + 1) == NextProvider()
    assert decide("rate_limited", wait=LONGEST_WAIT_MS + 1, fallback=False) == NoProviderLeft()


@pytest.mark.parametrize("failure", ["auth", "permission", "quota", "context_too_long"])
def test_what_only_this_provider_refuses_goes_to_the_next(failure: FailureClass) -> None:
    assert decide(failure) == NextProvider()
    assert decide(failure, fallback=False) == NoProviderLeft()


@pytest.mark.parametrize("failure", ["content_blocked", "bad_request"])
def test_what_every_provider_would_refuse_is_given_up(failure: FailureClass) -> None:
    assert decide(failure) == NoProviderLeft()


def test_an_unreadable_answer_is_asked_for_once_more() -> None:
    assert [decide("malformed", attempt) for attempt in (1, 2)] == [RetryAfter(250), NextProvider()]
    assert decide("malformed", 2, fallback=False) == NoProviderLeft()


def test_the_breaker_opens_after_failures_in_a_row_and_recovers_by_itself() -> None:
    breaker = Breaker(threshold=3, cooldown_ms=100)
    for now in (1, 2, 3):
        assert breaker.allows(now)
        breaker.failed("overloaded", now)
    assert (breaker.is_open(50), breaker.allows(50)) == (True, False)
    assert not breaker.is_open(103)
    assert [breaker.allows(103), breaker.allows(104)] == [True, False]
    breaker.succeeded()
    assert [breaker.allows(105), breaker.allows(106)] == [True, True]


def test_a_failed_probe_opens_the_breaker_again_and_a_lost_one_does_not_block_it() -> None:
    breaker = Breaker(threshold=1, cooldown_ms=100)
    breaker.failed("network", 0)
    assert breaker.allows(100)
    breaker.failed("timeout", 110)
    assert not breaker.allows(209)
    assert breaker.allows(210)
    assert not breaker.allows(309)
    assert breaker.allows(310)


def test_only_failures_in_a_row_of_the_servers_own_making_count() -> None:
    breaker = Breaker(threshold=2, cooldown_ms=100)
    for failure in ("overloaded", "rate_limited", "overloaded", "auth", "network"):
        breaker.failed(failure, 0)
    assert breaker.allows(1)
