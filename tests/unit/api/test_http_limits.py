"""Limits are per caller, bounded in memory, and never hit those who did nothing wrong."""

import asyncio

import pytest

from palyra.api import limits
from palyra.api.limits import Failures, OpenStreams, Rates
from palyra.core.errors import LimitExceeded


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr("palyra.api.limits.time.monotonic", lambda: now[0])
    return now


def taken(rates: Rates, caller: str, most: int = 1_000) -> int:
    for count in range(most):
        try:
            rates.take(caller)
        except LimitExceeded:
            return count
    return most


def test_two_seconds_worth_at_once_then_the_rate(clock: list[float]) -> None:
    rates = Rates(10)
    assert taken(rates, "a") == 20
    assert taken(rates, "b") == 20
    clock[0] += 0.35
    assert taken(rates, "a") == 3
    clock[0] += 3_600
    assert taken(rates, "a") == 20


def test_a_refusal_says_how_long_to_wait_and_waiting_helps(clock: list[float]) -> None:
    rates = Rates(10)
    taken(rates, "a")
    with pytest.raises(LimitExceeded) as refused:
        rates.take("a")
    clock[0] += refused.value.details["retry_after_ms"] / 1000
    rates.take("a")


def test_callers_who_are_quiet_are_forgotten(clock: list[float]) -> None:
    rates = Rates(10)
    for caller in range(10_000):
        rates.take(str(caller))
        clock[0] += 0.01
    assert len(rates._full_at) <= limits._MOST_CALLERS + 1


def test_ten_different_wrong_tokens_then_wait_and_a_minute_later_again(clock: list[float]) -> None:
    failures = Failures()
    for number in range(10):
        failures.note("here", bytes([number]))
    with pytest.raises(LimitExceeded) as refused:
        failures.note("here", b"one more")
    failures.note("here", bytes([3]))
    failures.note("elsewhere", b"one more")
    clock[0] += refused.value.details["retry_after_ms"] / 1000
    failures.note("here", b"one more")


def test_addresses_are_forgotten_after_their_minute(clock: list[float]) -> None:
    failures = Failures()
    for number in range(10_000):
        failures.note(str(number), b"wrong")
        clock[0] += 0.1
    assert len(failures._by_address) <= limits._MOST_CALLERS + 1


def test_streams_are_counted_by_token_and_ended_by_token() -> None:
    async def scenario() -> None:
        streams = OpenStreams(2)
        with streams.open("a") as first, streams.open("a") as second, streams.open("b") as other:
            assert streams.count == 3
            with pytest.raises(LimitExceeded), streams.open("a"):
                pass
            streams.end("a")
            assert (first.is_set(), second.is_set(), other.is_set()) == (True, True, False)
            streams.close()
            assert other.is_set()
        assert streams.count == 0
        with streams.open("late") as late:
            assert late.is_set()

    asyncio.run(scenario())
